"""`mxc compile` and `mxc run`: what they print, and their exit codes."""
from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import BAD_FILE, COMMANDS, INTERNAL, INTERRUPTED, NO_TARGET, OK, UNSUPPORTED, USAGE, main
from mxc.cli.run import describe, save
from mxc.compiler.error import TargetError

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4) / 4
BIAS = np.array([0.5, 0, -0.5], np.float32)
Y = X @ WEIGHT.T + BIAS
FACTS = ["nodes", "kernels", "distinct kernels", "prepare steps", "host steps", "arena bytes",
         "arena bytes before planning", "packed parameter bytes", "cache hits", "cache misses", "seconds"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with a model, its parameters and inputs, and files that are something else."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    net.save("net-symbol.json")
    net.save("bare-symbol.json")
    parameters = {"arg:fc_weight": mx.nd.array(WEIGHT), "arg:fc_bias": mx.nd.array(BIAS)}
    mx.nd.save("net-0001.params", {name: array * 0 for name, array in parameters.items()})
    mx.nd.save("net-0012.params", parameters)
    mx.nd.save("part.params", {"arg:fc_weight": parameters["arg:fc_weight"]})
    mx.nd.save("wide.params", {**parameters, "arg:fc_bias": mx.nd.ones((7,))})
    mx.nd.save("list.params", list(parameters.values()))
    np.save("x.npy", X)
    np.save("x64.npy", X.astype(np.float64))
    np.save("cube.npy", np.ones((2, 4, 1, 2), np.float32))
    np.save("words.npy", np.array(["a", "b"]))
    np.save("empty.npy", np.zeros((0, 4), np.float32))
    np.savez("many.npz", x=X)
    graph = json.loads(Path("net-symbol.json").read_text())
    unknown = json.loads(json.dumps(graph).replace("FullyConnected", "FullyConected"))
    unknown["nodes"].append({**unknown["nodes"][-1], "op": "NoSuch", "name": "other"})
    Path("unknown-symbol.json").write_text(json.dumps(unknown))
    Path("attribute-symbol.json").write_text(json.dumps(graph).replace("num_hidden", "num_hiden"))
    Path("page-symbol.json").write_text("<!DOCTYPE html><html><body>Not found</body></html>")
    return tmp_path


COMPILE = ["compile", "net-symbol.json", "--shape", "data=2,4"]
RUN = ["run", "net-symbol.json", "--input", "data=x.npy"]


def test_compile_prints_facts(capsys: pytest.CaptureFixture[str]):
    assert main(COMPILE) == OK
    printed = capsys.readouterr()
    assert [line.split(": ")[0] for line in printed.out.splitlines()] == FACTS
    assert "\x1b" not in printed.out and printed.err == ""
    assert main([*COMPILE, "--json"]) == OK
    facts = json.loads(capsys.readouterr().out)
    assert list(facts) == [name.replace(" ", "_") for name in FACTS]
    assert (facts["nodes"], facts["kernels"], facts["host_steps"], facts["cache_misses"]) == (1, 1, 0, 0)


def test_compile_needs_no_parameters(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", "bare-symbol.json", "--shape", "data=2,4", "--dtype", "data=float32"]) == OK
    assert "kernels: 1\n" in capsys.readouterr().out


def test_run_prints_the_largest_values(capsys: pytest.CaptureFixture[str]):
    assert main([*RUN, "--top", "2"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "fc_output: shape (2, 3), float32"
    assert lines[1:] == [f"  row {i}: " + ", ".join(f"{n}: {row[n]:.6g}" for n in np.argsort(-row)[:2])
                         for i, row in enumerate(Y)]


@pytest.mark.parametrize("name", ["x.npy", "x64.npy"])
def test_run_saves_and_prints_json(name: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "net-symbol.json", "--input", f"data={name}", "--output", "out.npz", "--json"]) == OK
    report = json.loads(capsys.readouterr().out)["fc_output"]
    assert (report["shape"], report["dtype"], len(report["top"]), len(report["top"][0])) == ([2, 3], "float32", 2, 3)
    np.testing.assert_allclose(np.load("out.npz")["fc_output"], Y, rtol=1e-6)


def test_an_input_with_only_a_shape_is_zeros(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "net-symbol.json", "--shape", "data=1,4", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["fc_output"]["top"] == [[[0, 0.5], [1, 0.0], [2, -0.5]]]


def test_parameters_without_prefix_go_where_the_model_has_their_name(capsys: pytest.CaptureFixture[str]):
    mx.sym.BatchNorm(mx.sym.Variable("data"), name="bn", fix_gamma=False, eps=0.0).save("bn-symbol.json")
    values = {"bn_gamma": 2, "bn_beta": 1, "bn_moving_mean": 3, "bn_moving_var": 4}
    mx.nd.save("bn-0000.params", {name: mx.nd.full((4,), value) for name, value in values.items()})
    np.save("fives.npy", np.full((1, 4), 5, np.float32))
    assert main(["run", "bn-symbol.json", "--input", "data=fives.npy", "--top", "1"]) == OK
    assert capsys.readouterr().out.splitlines()[1] == "  row 0: 0: 3"


@pytest.mark.parametrize(("arguments", "advice"), [
    (["run", "nosuch.json"], "check the path"), ([*RUN, "--params", "."], "check the path"),
    ([*RUN, "--output", "nosuch/out.npz"], "check the path"), (["run", "page-symbol.json"], "something else"),
    (["run", "net-symbol.json", "--shape", f"data={2**50},4"], "smaller shapes"),
    (["compile", "net-symbol.json", "--shape", "data=2,5"], "with --shape")])
def test_advice_is_on_what_is_wrong(arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == BAD_FILE
    assert advice in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command_line", ["compile", "run", "verify", "bench", "profile", "inspect", "run net.mxc"])
def test_a_runner_that_there_is_not(command_line: str):
    assert main([*COMPILE, "-o", "net.mxc"]) == OK
    name, file = [*command_line.split(), "net-symbol.json"][:2]
    done = command(name, file, "--shape", "data=2,4", MXC_RUNNER="foo")
    first, last = done.stderr.splitlines()
    assert done.returncode == USAGE and done.stdout == ""
    assert "MXC_RUNNER: there is no runner 'foo'" in first and last == "correct or unset that environment variable"


@pytest.mark.parametrize(("target", "text"), [
    ("cpu:x86-64-v9", "there is no level 'x86-64-v9'; expected one of x86-64-v2, x86-64-v3, x86-64-v4, or cpu"),
    ("cpu:", "there is no level ''; expected")])
def test_a_level_that_there_is_not(target: str, text: str, capsys: pytest.CaptureFixture[str]):
    assert main([*COMPILE, "--target", target]) == USAGE
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"mxc compile: --target {target}: {text}") and "--help" in last and "MXC_CPU" not in first


@pytest.mark.parametrize("name", ["MXC_SKIP", "MXC_PRINT"])
def test_environment_variables_that_mean_nothing(name: str, monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv(name, "fusee")
    assert main(COMPILE) == USAGE
    first, last = capsys.readouterr().err.splitlines()
    assert name in first and "did you mean 'fuse'?" in first and "environment variable" in last


ABSENT = "class Gone:\n    def find_spec(self, name, *_):\n        if name.split('.')[0] == {0!r}:\n            " \
    "raise {1}\nsys.meta_path.insert(0, Gone())"


@pytest.mark.parametrize(("package", "command_line"), [
    ("numpy", ["run", "net-symbol.json"]), ("numpy", ["compile", "net-symbol.json"]),
    ("numpy", ["bench", "net-symbol.json"]), ("numpy", ["verify", "net-symbol.json"]),
    ("numpy", ["profile", "net-symbol.json"]), ("yaml", ["ops"]), ("yaml", ["inspect", "net-symbol.json"]),
    ("llvmlite", ["compile", "net-symbol.json"])], ids=lambda value: value if isinstance(value, str) else value[0])
def test_a_required_package_that_cannot_be_imported(package: str, command_line: list[str]):
    given = [*command_line, "--shape", "data=2,4"] if "compile" in command_line else command_line
    for error in (f"ModuleNotFoundError('No module named {package}')", "ImportError('a broken file')"):
        done = command(*given, program=ABSENT.format(package, error))
        first, last = done.stderr.splitlines()
        assert done.returncode == NO_TARGET and done.stdout == ""
        assert f"the required package {'py' * (package == 'yaml')}{package}: " in first
        assert "cannot be imported: " in first
        assert last.startswith("pip install") and "`mxc doctor`" in last


def test_another_package_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def fail(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'nosuch'", name="nosuch")

    monkeypatch.setattr("mxc.cli.compile.bind_read", fail)
    assert main(COMPILE) == INTERNAL and "internal error" in capsys.readouterr().err


def test_describe():
    assert describe(np.array([1, 200, 3], np.uint8), 2)["top"] == [[(1, 200), (2, 3)]]
    values = np.array([np.nan, -np.inf, 1, np.inf])
    assert describe(values, 9)["top"] == [[(3, "inf"), (2, 1.0), (1, "-inf"), (0, "nan")]]
    assert describe(np.array([[True], [False]]), 1)["top"] == [[(0, True)], [(0, False)]]
    assert describe(np.zeros((0, 3)), 1)["top"] == []
    assert len(describe(np.zeros((50, 2, 2)), 3)["top"]) == 8


RUN_WITH = ["run", "net-symbol.json", "--input"]
REFUSED = {
    "form of a shape": (USAGE, ["compile", "net-symbol.json", "--shape", "data"], "--shape data: expected NAME=VALUE"),
    "words as a shape": (USAGE, ["compile", "net-symbol.json", "--shape", "data=a,b"], "expected numbers"),
    "0 as a dimension": (USAGE, ["compile", "net-symbol.json", "--shape", "data=0,4"], "at least 1"),
    "a shape twice": (USAGE, [*COMPILE, "--shape", "data=2,4"], "was given already"),
    "a dtype": (USAGE, [*COMPILE, "--dtype", "data=float3"], "dtype 'float3' is not supported"),
    "a name": (USAGE, ["compile", "net-symbol.json", "--shape", "dat=2,4"], "did you mean 'data'?"),
    "no shape": (USAGE, ["compile", "net-symbol.json"], "the shape of data is not known"),
    "no input": (USAGE, ["run", "net-symbol.json"], "--input"),
    "two shapes": (USAGE, [*RUN, "--shape", "data=3,4"], "its shape is (2, 4); --shape says (3, 4)"),
    "an empty input": (USAGE, [*RUN_WITH, "data=empty.npy"], "got the shape (0, 4)"),
    "a shape that does not fit": (BAD_FILE, ["compile", "net-symbol.json", "--shape", "data=2,5"], "'fc'"),
    "an input that does not fit": (BAD_FILE, [*RUN_WITH, "data=cube.npy"], "(2, 4, 1, 2)"),
    "no graph": (BAD_FILE, ["compile", "nosuch.json"], "nosuch.json: cannot be read: No such file"),
    "a directory": (BAD_FILE, ["compile", "."], "Is a directory"),
    "a web page": (BAD_FILE, ["compile", "page-symbol.json"], "HTML"),
    "parameters as a graph": (BAD_FILE, ["compile", "net-0012.params"], "not a JSON graph"),
    "no parameters": (BAD_FILE, [*RUN, "--params", "nosuch.params"], "nosuch.params: cannot be read"),
    "a graph as parameters": (BAD_FILE, [*RUN, "--params", "net-symbol.json"], "not a parameter file"),
    "no parameters beside": (BAD_FILE, ["run", "bare-symbol.json", "--input", "data=x.npy"], "fc_weight, fc_bias"),
    "a part of the parameters": (BAD_FILE, [*RUN, "--params", "part.params"], "it holds no value for fc_bias"),
    "other parameters": (BAD_FILE, [*RUN, "--params", "wide.params"], "input bias (fc_bias) = (7,)"),
    "parameters without names": (BAD_FILE, [*RUN, "--params", "list.params"], "a list of arrays without names"),
    "no array": (BAD_FILE, [*RUN_WITH, "data=nosuch.npy"], "nosuch.npy: cannot be read: No such file"),
    "a directory as an array": (BAD_FILE, [*RUN_WITH, "data=."], "expected a folder of pictures"),
    "a text as an array": (BAD_FILE, [*RUN_WITH, "data=net-symbol.json"], "NumPy's .npy format"),
    "an array of an archive": (USAGE, [*RUN_WITH, "data=many.npz:nosuch"], "many.npz has no array 'nosuch'; it has "),
    "words": (BAD_FILE, [*RUN_WITH, "data=words.npy"], "expected an array of numbers, got the dtype <U1"),
    "no place": (BAD_FILE, [*RUN, "--output", "nosuch/out.npz"], "nosuch/out.npz: cannot be written"),
    "fewer CPUs than none": (USAGE, ["launch", "-n", "1", "--cpus", "-1", "true"], "--cpus: expected a number from 0"),
    "a store too small": (USAGE, ["launch", "-n", "1", "--store", "1M", "true"], "has at least 75 MiB"),
    "operators": (UNSUPPORTED, ["compile", "unknown-symbol.json"], "did you mean 'FullyConnected'?"),
    "attributes": (UNSUPPORTED, ["compile", "attribute-symbol.json"], "did you mean 'num_hidden'?"),
}


@pytest.mark.parametrize(("code", "arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == code
    printed = capsys.readouterr()
    assert printed.out == "" and text in printed.err and printed.err.startswith(f"mxc {arguments[0]}: ")
    assert len(printed.err.splitlines()) >= 2 and "Traceback" not in printed.err


def test_all_unknown_operators_are_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", "unknown-symbol.json"]) == UNSUPPORTED
    printed = capsys.readouterr().err
    assert "'FullyConected'" in printed and "'NoSuch'" in printed


@pytest.mark.parametrize("arguments", [[], ["nosuch"], ["compile"], [*RUN, "--top", "0"], [*RUN, "--top", "x"]])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == USAGE and "usage: mxc" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code"), [
    (TargetError("no device"), NO_TARGET), (ZeroDivisionError("x"), INTERNAL), (KeyboardInterrupt(), INTERRUPTED)])
def test_other_exit_codes(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch,
                          capsys: pytest.CaptureFixture[str]):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("mxc.cli.compile.bind_read", fail)
    assert main(COMPILE) == code
    assert "Traceback" not in capsys.readouterr().err
    assert main(["--debug", *COMPILE]) == code
    assert ("Traceback" in capsys.readouterr().err) == (code != INTERRUPTED)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(name: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"] if name else ["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == OK and "exit codes: 0 done" in text
    assert all(f"\n    {other} " in text for other in COMMANDS) if not name else f"examples:\n  mxc {name}" in text
    assert ("--json" in text) == (name not in ("", "completion", "launch"))  # others read what these print


def test_all_help_is_light():
    """Neither the help of all commands together nor a wrong option imports what a model needs."""
    program = f"""
import contextlib, sys
from mxc.cli.main import main
for name in {list(COMMANDS)}:
    for arguments in ([name, "--help"], [name, "--nosuch"]):
        with contextlib.suppress(SystemExit):
            main(arguments)
print(*sys.modules)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numba", "llvmlite", "yaml", "rich", "numpy", "mxc.symbol", "mxc.compiler.api"}


def test_the_version():
    """It is the project's, and is printed without what a model needs; what programs compare is MXNet's."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    for start in (["-m", "mxc"], ["-X", "importtime", "-c", "from mxc.cli import start\nstart()"]):
        done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (OK, f"mxc {project['version']}\n")
        assert " numpy" not in done.stderr and " llvmlite" not in done.stderr
    assert project["version"] == mx.VERSION
    assert mx.__version__ == "1.9.1"


@pytest.mark.parametrize("arguments", [["--debug", *COMPILE], [*COMPILE, "--debug"]])
def test_debug_before_and_after_the_command(arguments: list[str], monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mxc.cli.compile.bind_read", fail)
    assert main(arguments) == INTERNAL and "Traceback" in capsys.readouterr().err


def test_a_warning_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def warn(*_: object) -> int:
        warnings.warn("mxc: something is slow", RuntimeWarning, stacklevel=1)
        return OK

    monkeypatch.setattr("mxc.cli.run.run", warn)
    assert main(RUN) == OK
    assert capsys.readouterr().err == "mxc run: something is slow\n"


def closed_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(("stream", "code"), [
    (closed_pipe, OK), (lambda: os.open("/dev/full", os.O_WRONLY), BAD_FILE)], ids=["closed", "full"])
def test_output_that_cannot_be_written(stream: Callable[[], int], code: int):
    program = f"import sys\nfrom mxc.cli.main import main\nsys.exit(main({RUN!r}))"
    descriptor = stream()
    done = subprocess.run([sys.executable, "-c", program], stdout=descriptor, stderr=subprocess.PIPE, text=True)
    os.close(descriptor)
    assert done.returncode == code and "Traceback" not in done.stderr and "ignored" not in done.stderr, done.stderr


def on_a_terminal(**variables: str) -> str:
    """What `mxc compile` prints to a terminal, standard error too."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    program = f"import sys\nfrom mxc.cli.main import main\nsys.exit(main({COMPILE!r}))"
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen([sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs,
                               env={**environment, "TERM": "xterm", **variables})
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
        while part := os.read(ours, 4096):
            text += part
    os.close(ours)
    assert process.wait() == OK
    return text.decode()


def test_a_terminal_gets_progress_and_a_table():
    colour = re.compile(r"\x1b\[(?:\d+;)*3\d(?:;\d+)*m")
    plain, coloured = on_a_terminal(NO_COLOR="1"), on_a_terminal()
    for text in (plain, coloured):
        assert "compiling net-symbol.json" in text and re.search(r"kernels +1 ", text)
    assert colour.search(coloured) and not colour.search(plain)


def test_names_of_any_kind(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for number, name in enumerate(("a=b c", "größe", "self", "ctx", "grad_req", "in/put")):
        data = mx.sym.Variable(name)
        mx.sym.Group([data * 2, mx.sym.BlockGrad(data + 1, name="file")]).save("named-symbol.json")
        shape, path = ["--shape", f"{name}=2,4"], f"named-{number}.mxc"
        np.save("a=b.npy", X)
        assert main(["compile", "named-symbol.json", *shape, *shape, "-o", path]) == USAGE
        assert main(["compile", "named-symbol.json", *shape, "--dtype", f"{name}=float64", "-o", path]) == OK
        for model in ("named-symbol.json", path):
            assert main(["run", model, "--input", f"{name}=@a=b.npy", "--output", "named.npz"]) == OK
            np.testing.assert_allclose(np.load("named.npz")["file_output"], X + 1, rtol=1e-6)
        capsys.readouterr()


def test_an_output_that_is_called_as_a_parameter_of_savez():
    save("out.npz", {"file": X, "allow_pickle": BIAS})
    with np.load("out.npz") as saved:
        np.testing.assert_array_equal(saved["file"], X)
        np.testing.assert_array_equal(saved["allow_pickle"], BIAS)


def test_an_artifact_by_any_name(capsys: pytest.CaptureFixture[str]):
    assert main([*COMPILE, "-o", ""]) == USAGE
    assert main([*COMPILE, "-o", "net.bin"]) == OK
    capsys.readouterr()
    assert main(["run", "net.bin", "--input", "data=x.npy"]) == OK
    assert main(["compile", "net.bin"]) == USAGE
    assert "is compiled already" in capsys.readouterr().err


@pytest.mark.parametrize("shape", ["data=1,,4", "data=,", "data=1,4,,"])
def test_shapes_with_gaps(shape: str, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", "net-symbol.json", "--shape", shape]) == USAGE
    assert "expected numbers" in capsys.readouterr().err


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell in which MXC is the command."""
    program = f"{sys.executable} -m mxc"
    return subprocess.run(["sh", "-c", line.replace("MXC", program)], capture_output=True, text=True,
                          env={**os.environ, **variables})


def test_an_encoding_that_lacks_a_names_letters():
    mx.sym.relu(mx.sym.Variable("größe"), name="ü").save("named-symbol.json")
    for name in ("run", "inspect"):
        done = shell(f"MXC {name} named-symbol.json --shape größe=2,3", PYTHONIOENCODING="ascii")
        assert done.returncode == OK and "\\xfc" in done.stdout, done.stderr


@pytest.mark.parametrize("line", ["MXC run none.mxc 2>&-", "MXC run none.mxc 2>/dev/full",
                                  "MXC --debug run none.mxc 2>/dev/full"])
def test_no_standard_error(line: str):
    done = shell(line)
    assert (done.returncode, done.stdout) == (BAD_FILE, "")


def test_an_interrupt_inside_of_an_exec():
    program = """
import sys, mxc.cli.run
from mxc.cli.main import main
mxc.cli.run.run = lambda _: exec("raise KeyboardInterrupt")
sys.exit(main(["run", "net-symbol.json"]))"""
    Path("interrupted.py").write_text(program)
    done = subprocess.run([sys.executable, "-m", "interrupted"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "mxc run: interrupted\n")
