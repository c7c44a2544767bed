"""include/mxc.h: artifacts run from C as from Python, and what cannot be run is refused."""
from __future__ import annotations

import json
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from commands import command
from documents import blocks
from test_artifact import CHANGES, bound, changed, inputs_of

import mxc as mx
from mxc import artifact
from mxc.compiler import plan as plans
from mxc.compiler.functions import faults
from mxc.compiler.targets import host
from mxc.runtime import artifact_file, runner, step_table

TESTS = Path(__file__).parent
HEADER = TESTS.parent / "include" / "mxc.h"
COMPILERS = {"c": shutil.which("gcc") or shutil.which("clang") or shutil.which("cc"),
             "c++": shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")}
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
OK_C, UNREADABLE, DAMAGED, OTHER_VERSION, OTHER_CPU, UNSUPPORTED, ARGUMENT, NO_MEMORY, FAILED = range(9)
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux") or platform.machine() != "x86_64"
                                or None in COMPILERS.values(), reason="needs a C compiler on Linux on x86-64")


def built(folder: Path, name: str, *flags: str, language: str = "c", source: Path = TESTS / "c_loader.c") -> Path:
    """A program of a source file that includes the header."""
    compiler = COMPILERS[language]
    assert compiler is not None
    words = ["-x", language, *flags, f"-I{HEADER.parent}", "-o", str(folder / name), str(source), "-pthread", "-ldl"]
    done = subprocess.run([compiler, *words], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / name


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("program"), "c_loader", "-std=c99", "-O2", *WARNINGS)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with checks of every access to memory, where the compiler can do that."""
    folder = tmp_path_factory.mktemp("guarded")
    try:
        return built(folder, "guarded", "-std=c99", "-O1", "-g", "-fsanitize=address,undefined",
                     "-fno-sanitize-recover=all")
    except AssertionError:
        pytest.skip("the compiler has no sanitizers")


def ran(program: Path, *words: object, code: int = 0) -> str:
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr[-3000:]) == (code, ""), done.stdout[-3000:]
    return done.stdout


def of_c(program: Path, path: Path, inputs: dict[str, np.ndarray], plan: int = 0, threads: int = 1,
         count: int = 1) -> dict[str, np.ndarray]:
    """What the program computes: the outputs of `count` runs, along a new first axis."""
    loaded = mx.load(path)
    folder = path.parent / f"{path.stem}-{plan}-{threads}"
    folder.mkdir()
    for name, array in inputs.items():
        dtype = loaded.input_dtypes.get(name) or loaded._artifact.plans[0].dtypes[name]
        (folder / f"{name}.in").write_bytes(np.ascontiguousarray(array).astype(dtype).tobytes())
    ran(program, "run", path, plan, threads, folder, count)
    shapes = loaded.output_shapes[plan]
    return {name: np.frombuffer((folder / f"{name}.out").read_bytes(), dtype).reshape(count, *shapes[name])
            for name, dtype in loaded.output_dtypes.items()}


def assert_same(program: Path, path: Path, inputs: dict[str, np.ndarray], plan: int = 0) -> None:
    """The same bits as in Python, with one thread and with three, and in the second run as in the first."""
    wanted = mx.load(path).predict(**inputs)
    for threads in (1, 3):
        for name, found in of_c(program, path, inputs, plan, threads, 2).items():
            assert wanted[name].tobytes() == found[0].tobytes() == found[1].tobytes(), (name, threads)


def saved(path: Path, symbol: Any, *names: str, dtype: str | None = None, **shapes: tuple[int, ...]) -> Path:
    """The artifact of a symbol with random parameters."""
    artifact.save(path, [bound(symbol, dtype=dtype, **shapes)], names or list(shapes), keep_params=True)
    return path


def best_of_softmax() -> Any:
    scores = mx.sym.softmax(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=12, name="fc"), name="shares")
    return mx.sym.Group([scores, mx.sym.topk(scores, k=3, ret_typ="both", dtype="int32", name="best"),
                         mx.sym.argsort(scores, name="order")])


def recurrent() -> Any:
    stack = mx.rnn.FusedRNNCell(5, num_layers=2, mode="lstm", prefix="lstm_")
    outputs, _ = stack.unroll(4, mx.sym.Variable("data"), merge_outputs=True, layout="TNC")
    return outputs


def nested_loops() -> Any:
    """A loop in a loop, and one that ends when a test says so, both with states."""
    def rows(row: Any, states: Any) -> Any:
        inner, last = mx.sym.contrib.foreach(lambda x, s: (x * s[0], [s[0] + x]), row, [states[0]])
        return mx.sym.broadcast_add(mx.sym.sum(inner, axis=0), row), [last[0]]

    outputs, states = mx.sym.contrib.foreach(rows, mx.sym.Variable("data"), [mx.sym.Variable("start")])
    _, ends = mx.sym.contrib.while_loop(lambda v, n: mx.sym.sum(v) < 100, lambda v, n: ([v], [v * 2, n + 1]),
                                        [mx.sym.abs(states[0]) + 1, mx.sym.zeros((1,))], max_iterations=30)
    return mx.sym.Group([outputs, states[0], *ends])


NETWORKS: dict[str, tuple[Callable[[], Any], dict[str, tuple[int, ...]]]] = {
    "lenet": (networks.lenet, {"data": (2, 1, 8, 8)}),
    "resnet": (networks.cifar_resnet20, {"data": (1, 3, 32, 32)}),
    "mobile": (networks.small_mobile, {"data": (1, 3, 32, 32)}),
    "softmax and topk": (best_of_softmax, {"data": (4, 7)}),
    "recurrent": (recurrent, {"data": (4, 2, 3)}),
    "loops": (nested_loops, {"data": (3, 4), "start": (1,)}),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_bits_as_python(name: str, program: Path, tmp_path: Path):
    make, shapes = NETWORKS[name]
    executor = bound(make(), **shapes)
    artifact.save(tmp_path / "net.mxc", [executor], list(shapes))
    assert_same(program, tmp_path / "net.mxc", inputs_of(executor, *shapes))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8"])
def test_other_dtypes(dtype: str, program: Path, tmp_path: Path):
    x = mx.sym.Variable("x")
    saved(tmp_path / "net.mxc", mx.sym.Group([x * 3 + 1, mx.sym.Cast(x, "float32") / 7]), dtype=dtype, x=(5, 3))
    assert_same(program, tmp_path / "net.mxc", {"x": np.arange(15).reshape(5, 3)})


def test_plans_are_listed_and_chosen_by_shape(program: Path, tmp_path: Path):
    first = bound(networks.perceptron(), data=(2, 64))
    second = first.reshape(partial_shaping=True, allow_up_sizing=True, data=(5, 64))
    artifact.save(tmp_path / "net.mxc", [first, second], ["data"])
    assert ran(program, "list", tmp_path / "net.mxc").splitlines() == [
        "plan 0", "input data float32 0 2 64", "input softmax_label float32 1 2",
        "output softmax_output float32 0 2 10", "found 0", "found 0",
        "plan 1", "input data float32 0 5 64", "input softmax_label float32 1 5",
        "output softmax_output float32 0 5 10", "found 1", "found 1", "nothing 0 0"]
    data = np.random.default_rng(0).standard_normal((5, 64)).astype("float32")
    assert_same(program, tmp_path / "net.mxc", {"data": data}, plan=1)
    assert ran(program, "run", tmp_path / "net.mxc", 2, 1, tmp_path, 1, code=1) == (
        f"{ARGUMENT} {tmp_path}/net.mxc: there is no plan 2; there are 2\n")
    said = ran(program, "run", tmp_path / "net.mxc", 0, 0, tmp_path, 1, code=1)
    assert "expected from 1 to 1024 threads, got 0" in said


def test_outputs_that_are_inputs_or_parameters_or_there_twice(program: Path, tmp_path: Path):
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w", shape=(2, 3))
    y = mx.sym.broadcast_mul(x, w)
    saved(tmp_path / "net.mxc", mx.sym.Group([x, y, y, w]), "x", x=(2, 3))
    assert_same(program, tmp_path / "net.mxc", {"x": np.arange(6).reshape(2, 3)})


def test_parameters_that_are_prepared_at_the_start(program: Path, tmp_path: Path):
    """Where the file has not what prepare steps make."""
    executor = bound(networks.cifar_resnet20(), data=(1, 3, 32, 32))
    artifact.save(tmp_path / "net.mxc", [executor], ["data"], keep_params=True)
    path = changed(tmp_path / "net.mxc", tmp_path / "bare.mxc", lambda m: m["plans"][0].update(prepared={}))
    assert mx.load(path)._artifact.plan(mx.load(path)._artifact.plans[0]).steps_of("prepare")
    assert_same(program, path, inputs_of(executor, "data"))


def test_random_numbers_are_those_of_a_new_process(program: Path, tmp_path: Path):
    path = saved(tmp_path / "net.mxc", mx.sym.random.normal(shape=(50,)) + mx.sym.Variable("x"), "x", x=(50,))
    (found,) = of_c(program, path, {"x": np.zeros(50)}, count=2).values()
    text = ("import sys, mxc\nloaded = mxc.load(sys.argv[1])\n"
            "for _ in range(2): sys.stdout.buffer.write(next(iter(loaded.predict(x=[0] * 50).values())).tobytes())")
    done = subprocess.run([sys.executable, "-c", text, str(path)], capture_output=True, timeout=120)
    assert done.stdout == found.tobytes() and (found[0] != found[1]).any()


def test_sessions_run_at_the_same_time(program: Path, tmp_path: Path):
    path = saved(tmp_path / "net.mxc", networks.cifar_resnet20(), data=(1, 3, 32, 32))
    np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype("float32").tofile(tmp_path / "data.in")
    for threads in (1, 2):
        assert ran(program, "together", path, 0, threads, tmp_path) == "0 differences\n"


def test_a_function_of_the_models_own_may_raise(program: Path, tmp_path: Path):
    @mx.operator.kernel("c_checked")
    def checked(x, out):
        for i in range(x.shape[0]):
            if x[i, 0] < 0:
                raise ValueError("it must not be negative")
            out[i, int(x[i, 0])] = 1

    path = saved(tmp_path / "net.mxc", mx.sym.c_checked(mx.sym.Variable("x") * 1, name="chosen") + 1, "x", x=(2, 3))
    assert_same(program, path, {"x": np.array([[1, 0, 0], [2, 0, 0]])})
    for number, value in enumerate((-1.0, 7.0)):
        x = np.array([[1, 0, 0], [value, 0, 0]], np.float32)
        folder = tmp_path / str(number)
        folder.mkdir()
        x.tofile(folder / "x.in")
        status, _, message = ran(program, "run", path, 0, 1, folder, 1, code=1).partition(" ")
        with pytest.raises(mx.MXNetError) as raised:
            mx.load(path).predict(x=x)
        assert int(status) == FAILED and message.strip() == f"{path}: {raised.value}"


def refused(program: Path, path: Path) -> tuple[int, str]:
    """The status and the message of a file that is refused."""
    status, _, message = ran(program, "check", path).strip("\n").partition(" ")
    head, _, reason = message.partition(": ")
    assert head == str(path)
    return int(status), reason


def test_what_refuses_indices_is_refused(program: Path, tmp_path: Path):
    net = mx.sym.take(mx.sym.Variable("table") * 2, mx.sym.Variable("index"), mode="raise", name="rows") + 1
    saved(tmp_path / "net.mxc", net, "table", "index", table=(4, 3), index=(2,))
    status, reason = refused(program, tmp_path / "net.mxc")
    assert status == UNSUPPORTED and reason.startswith("it has layers that refuse indices, as take with mode='raise'")


def test_what_python_runs_is_refused_by_name(program: Path, tmp_path: Path):
    net = mx.sym.linalg.potrf(mx.sym.Variable("data"), name="factor") + 1
    saved(tmp_path / "net.mxc", net, "data", data=(3, 3))
    status, reason = refused(program, tmp_path / "net.mxc")
    assert status == UNSUPPORTED and reason.startswith("it has operators that only Python runs: 'factor' (")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "small.mxc"
    return saved(path, networks.perceptron(), "data", data=(2, 64))


def test_refusals(program: Path, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = small.read_bytes()

    def of(content: bytes) -> tuple[int, str]:
        (tmp_path / "other.mxc").write_bytes(content)
        return refused(program, tmp_path / "other.mxc")

    assert refused(program, small.parent / "none.mxc") == (UNREADABLE, "it cannot be read: No such file or directory")
    assert refused(program, tmp_path) == (DAMAGED, "it is no artifact, and no regular file")
    assert of(b"") == (DAMAGED, "it is no artifact: it has only 0 bytes")
    assert of(b"<html>" + whole[6:]) == (DAMAGED, "it is no artifact of mxc: it does not begin with mxcmodl")
    assert of(whole[:8] + b"\x09" + whole[9:]) == (
        OTHER_VERSION, "it has version 9 of the format of artifacts, this mxc.h reads version "
        f"{artifact_file.VERSION}: compile the model again, or take the mxc.h of the mxc that compiled it")
    assert of(whole[:-4096]) == (DAMAGED, f"it has {len(whole) - 4096} bytes, but should have {len(whole)}: it was cut "
                                 "off or is damaged")
    assert of(whole[:100] + b"~" + whole[101:]) == (DAMAGED, "its head or manifest is damaged: the checksum does not "
                                                    "match")
    assert of(whole[:-9000] + bytes([whole[-9000] ^ 1]) + whole[-8999:])[1].startswith("its section ")
    lacks = "it was compiled for a CPU with features that this one lacks: amx9000, sse77; compile the model for a " \
            "lower level, as with --target cpu:x86-64-v2"
    assert refused(program, changed(small, tmp_path / "a.mxc", lambda m: m["parts"].update(
        features=f"amx9000 {m['parts']['features']} sse77"))) == (OTHER_CPU, lacks)
    status, reason = refused(program, changed(small, tmp_path / "b.mxc", lambda m: m["parts"].update(cpu="abacus")))
    assert status == OTHER_CPU and reason.startswith("it was compiled for the CPU abacus, and this is ")
    arm = changed(small, tmp_path / "c.mxc", lambda m: m["parts"].update(machine="aarch64"))
    assert refused(program, arm) == (OTHER_CPU, "it was compiled for linux on aarch64, and this is Linux on x86-64")
    artifact.save(tmp_path / "d.mxc", [bound(networks.perceptron(), data=(2, 64))], ["data"], with_params=False)
    status, reason = refused(program, tmp_path / "d.mxc")
    assert status == UNSUPPORTED and reason.startswith("it was compiled without values of fc1_")
    monkeypatch.setattr("mxc.compiler.targets.cpu.build.image.is_native", lambda: False)
    status, reason = refused(program, saved(tmp_path / "e.mxc", networks.perceptron(), "data", data=(2, 64)))
    assert status == UNSUPPORTED and reason.startswith("its code has the form objects, which this loader does not run")


def test_a_level_of_cpus(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    networks.perceptron().save("net-symbol.json")
    executor = bound(networks.perceptron(), data=(2, 64))
    mx.nd.save("net-0000.params", {f"arg:{name}": array for name, array in executor.arg_dict.items()
                                   if name.startswith("fc")})
    made = command("compile", "net-symbol.json", "--shape", "data=2,64", "--target", "cpu:x86-64-v2", "-o", "net.mxc")
    assert (made.returncode, made.stderr) == (0, "")
    monkeypatch.setenv("MXC_CPU", "x86-64-v2")
    found = of_c(program, tmp_path / "net.mxc", inputs_of(executor, "data"))
    wanted = mx.load("net.mxc").predict(**inputs_of(executor, "data"))
    assert found["softmax_output"][0].tobytes() == wanted["softmax_output"].tobytes()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_that_makes_no_sense_is_refused(change: Any, guarded: Path, small: Path, tmp_path: Path):
    status, _ = refused(guarded, changed(small, tmp_path / "other.mxc", change))
    assert status in (DAMAGED, UNSUPPORTED)


def other_plan(source: Path, target: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A file with another first plan, its checksums right."""
    contents = artifact_file.read(source)
    plan = json.loads(bytes(contents.sections["plan 0"]).rstrip(b"\0"))
    change(plan)
    manifest = {key: value for key, value in contents.manifest.items() if key != "sections"}
    sections = {name: [bytes(data)] for name, data in contents.sections.items()}
    artifact_file.write(target, manifest, {**sections, "plan 0": [json.dumps(plan).encode()]})
    return target


def test_what_the_loader_does_not_know_is_refused(program: Path, small: Path, tmp_path: Path):
    for number, change in enumerate((lambda p: p.update(streams=2), lambda p: p["steps"][-1].update(stream=1),
                                     lambda p: p["buffers"][0].update(strides=[1]))):
        status, reason = refused(program, other_plan(small, tmp_path / f"{number}.mxc", change))
        assert status == OTHER_VERSION and "which this version of mxc.h does not know" in reason


def test_damage_is_never_a_crash(guarded: Path, small: Path, tmp_path: Path):
    """Bytes of the file changed, pieces cut out or repeated: nothing is taken, and nothing outside of it is read."""
    rng = np.random.default_rng(0)
    whole = small.read_bytes()
    paths = []
    for number in range(300):
        content = bytearray(whole)
        kind = number % 4
        where = int(rng.integers(len(content)) if number % 3 else rng.integers(200))
        if kind == 0:
            content[where] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del content[where:]
        elif kind == 2:
            del content[where:where + int(rng.integers(1, 9000))]
        else:
            content[where:where + 64] = rng.integers(0, 256, 64, np.uint8).tobytes()
        paths.append(tmp_path / f"{number}.mxc")
        paths[-1].write_bytes(content)
    lines = ran(guarded, "check", *paths).splitlines()
    assert len(lines) == len(paths) and not [line for line in lines if line.startswith(f"{OK_C} ")]


def mutated(value: Any, rng: np.random.Generator) -> Any:
    """JSON data with one thing in it changed."""
    strange = [None, True, -1, 0, 1, 7, 2**31, 2**46, 2**62, 2**63, -2**63, 0.5, "", "arena", "0", [], {}, [[]],
               "\u20ac"]
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        if isinstance(value, int) and rng.random() < 0.5:
            return value + int(rng.integers(-70, 70))
        return strange[int(rng.integers(len(strange)))]
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[int(rng.integers(len(keys)))]
    other = dict(value) if isinstance(value, dict) else list(value)
    if rng.random() < 0.1:
        del other[key]
    else:
        other[key] = mutated(other[key], rng)
    return other


@pytest.mark.parametrize("name", ["perceptron", "loops"])
@pytest.mark.parametrize("part", ["manifest", "plan"])
def test_plans_that_make_no_sense_are_never_a_crash(name: str, part: str, guarded: Path, small: Path, tmp_path: Path):
    """With right checksums: what is read of a file is checked, whatever it is. Machine code is not run."""
    source = small
    if name == "loops":
        make, shapes = NETWORKS["loops"]
        source = saved(tmp_path / "loops.mxc", make(), **shapes)
    rng = np.random.default_rng(1)

    def change(data: dict[str, Any]) -> None:
        other = mutated(data, rng)
        data.clear()
        data.update(other if isinstance(other, dict) else {})

    make_file = changed if part == "manifest" else other_plan
    paths = [make_file(source, tmp_path / f"{number}.mxc", change) for number in range(250)]
    lines = ran(guarded, "check", *paths).splitlines()
    statuses = [int(line.split()[0]) for line in lines]
    assert len(lines) == len(paths) and {*statuses} > {OK_C, DAMAGED}


@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++20")])
def test_it_compiles_without_a_warning(language: str, standard: str, tmp_path: Path):
    source = tmp_path / "whole"
    source.write_text('#define MXC_IMPLEMENTATION\n#include "mxc.h"\n#include "mxc.h"\n'
                      'int main(void) { return mxc_load("none", NULL) != NULL; }\n')
    warnings = WARNINGS if language == "c" else [flag for flag in WARNINGS if flag != "-Wconversion"]
    program = built(tmp_path, "whole.out", f"-std={standard}", "-O2", *warnings, language=language, source=source)
    assert ran(program) == ""


def test_several_files_may_include_it(tmp_path: Path):
    (tmp_path / "one.c").write_text('#include "mxc.h"\nint main(void) { mxc_free(NULL); mxc_close(NULL); return 0; }\n')
    (tmp_path / "two.c").write_text('#define MXC_IMPLEMENTATION\n#include "mxc.h"\n')
    assert COMPILERS["c"] is not None
    subprocess.run([COMPILERS["c"], f"-I{HEADER.parent}", "one.c", "two.c", "-o", "both", "-pthread", "-ldl"],
                   cwd=tmp_path, check=True, timeout=300)
    assert ran(tmp_path / "both") == ""


def test_the_example_in_cpp(tmp_path: Path):
    example = built(tmp_path, "run_artifact", "-std=c++11", "-O1", "-Wall", "-Wextra", "-Werror", language="c++",
                    source=TESTS.parent / "examples" / "run_artifact.cpp")
    executor = bound(best_of_softmax(), data=(1, 7))
    artifact.save(tmp_path / "net.mxc", [executor], ["data"])
    inputs = inputs_of(executor, "data")
    np.save(tmp_path / "data.npy", inputs["data"])
    lines = ran(example, tmp_path / "net.mxc", f"data={tmp_path / 'data.npy'}").splitlines()
    shares = mx.load(tmp_path / "net.mxc").predict(**inputs)["shares_output"][0]
    assert lines[0] == "shares_output float32 1x12"
    assert [int(line.split()[0]) for line in lines[1:6]] == np.argsort(-shares)[:5].tolist()
    assert [float(line.split()[1]) for line in lines[1:6]] == pytest.approx(sorted(shares)[:-6:-1], rel=1e-5)
    np.save(tmp_path / "wide.npy", np.zeros((1, 8), np.float32))
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{" + bytes(100))
    for word, said in ((f"data={tmp_path / 'wide.npy'}", "expected float32 (1, 7), in C order"),
                       (f"data={tmp_path / 'bad.npy'}", "expected float32 (1, 7)"), ("dta=x", "expected INPUT=FILE"),
                       (f"data={tmp_path / 'none.npy'}", "cannot be read")):
        done = subprocess.run([example, tmp_path / "net.mxc", word], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and said in done.stderr, done


def test_the_guides_program(tmp_path: Path):
    (block,) = blocks("docs/c-loader.md", "c")
    (tmp_path / "program.c").write_text(block)
    guide = built(tmp_path, "program", "-Wall", "-Werror", source=tmp_path / "program.c")
    saved(tmp_path / "net.mxc", networks.lenet(), "data", data=(2, 1, 8, 8))
    outputs = mx.load(tmp_path / "net.mxc").predict(data=np.zeros((2, 1, 8, 8)))
    done = subprocess.run([guide], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    (name, values), = outputs.items()
    assert done.stdout == f"{name}: {values[0, 0]:g}, {values[0, 1]:g}, ...\n"
    (tmp_path / "net.mxc").write_bytes(b"")
    done = subprocess.run([guide], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "net.mxc: it is no artifact: it has only 0 bytes\n")


def test_the_guide_has_every_status():
    names = re.findall(r"^    (MXC_[A-Z_]+)", HEADER.read_text(), re.M)
    guide = (TESTS.parent / "docs" / "c-loader.md").read_text()
    assert len(names) == 9 and [name for name in names if name not in guide] == []


def test_it_knows_what_this_mxc_writes():
    """Where this fails: change the header too, and raise artifact_file.VERSION if older headers would run new files
    wrongly."""
    text = HEADER.read_text()
    words = host().runner()
    numbers = dict(re.findall(r"^#define MXC__(\w+) \(?(\d+)", text, re.M))
    assert {name: int(numbers[name]) for name in (
        "VERSION", "HEAD_BYTES", "PAGE", "TABLE_HEAD", "ROW", "TAKES", "BRANCH", "ADVANCE", "RESET", "POOL_BYTES",
        "QUIT", "WORD", "SYSCALL", "FUTEX", "YIELD", "SPINS", "SPIN_ROUNDS", "OFFSETS_PER_RUN", "FAULT_SHIFT")} == {
        "VERSION": artifact_file.VERSION, "HEAD_BYTES": artifact_file.HEAD.size, "PAGE": artifact_file.PAGE,
        "TABLE_HEAD": step_table.HEAD, "ROW": step_table.ROW, "TAKES": step_table.TAKES, "BRANCH": step_table.BRANCH,
        "ADVANCE": step_table.ADVANCE, "RESET": step_table.RESET, "POOL_BYTES": words.POOL_BYTES, "QUIT": words.QUIT,
        "WORD": words.WORD, "SYSCALL": words.SYSCALL, "FUTEX": words.FUTEX, "YIELD": words.YIELD, "SPINS": words.SPINS,
        "SPIN_ROUNDS": runner.SPINS, "OFFSETS_PER_RUN": plans.OFFSETS_PER_RUN, "FAULT_SHIFT": faults.SHIFT}
    assert f"#define MXC__CHUNK ({artifact_file.CHUNK >> 20} << 20)" in text
    lists = [set(re.findall(r'"(\w+)"', found)) for found in re.findall(r"KEYS\[\] = \{(.*?)\};", text, re.S)]
    for kind in (plans.Plan, plans.Step, plans.Buffer, plans.Loop):
        fields = {*getattr(kind, "_fields", ())} or {*kind.__dataclass_fields__}
        assert fields in lists, kind
    kinds = re.search(r"KINDS\[\] = \{(.*?)\};", text, re.S)
    assert kinds is not None and "".join(re.findall(r'"([^"]*)"', kinds[1])) == "".join(faults.KINDS)
    places = re.search(r"PLACES\[\] = \{(.*?)NULL", text, re.S)
    assert places is not None and set(re.findall(r'"(\w+)"', places[1])) == {
        "argument", "aux", "output", "seed", "arena", "prepared", "status", "outside"}
    assert struct.calcsize("P") == step_table.WORD
