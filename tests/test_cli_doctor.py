"""`mxc doctor`: what it finds where all is well, and where something is not."""
from __future__ import annotations

import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from commands import command

from mxc.cli import doctor, requirements, tables
from mxc.cli.main import FAILED, OK, main
from mxc.runtime import runner

NEEDED = ["numpy", "llvmlite", "numba", "pyyaml", "rich"]
WHAT = ["Python", "mxc", *NEEDED, "CPU", "code generators", "threads", "cache", "a model", "extra image",
        "extra plot", "extra scipy", "extra s3", "extra hdfs", "extra onnx", "extra safetensors", "extra dist",
        "extra cuda", "extra cuda libraries", "extra nccl", "GPUs"]
# Of all distributions that are installed, importlib.metadata finds those in THERE.
ALONE = """
from importlib import metadata
found = metadata.distribution
def distribution(name):
    if name.lower() not in THERE:
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.distribution = distribution
"""


def findings(program: str = "", **variables: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Exit code, and the findings by what they are of; these are all that there are, whatever is missing."""
    done = command("doctor", "--json", program=program, **variables)
    assert done.stderr == ""
    found = json.loads(done.stdout)["findings"]
    return done.returncode, {each["what"]: each for each in found}


def test_all_is_well():
    done = command("doctor", "--json")
    assert (done.returncode, done.stderr) == (OK, "")
    found = json.loads(done.stdout)
    assert [each["what"] for each in found["findings"]] == WHAT
    states = {each["what"]: each["state"] for each in found["findings"]}
    assert all(states[what] == "ok" for what in (*WHAT[:7], "a model"))
    assert found["machine"]["cpus"] >= 1


def test_what_is_needed_is_what_the_project_declares():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    needed = [requirements.parse(text) for text in project["dependencies"]]
    assert [each.name for each in needed] == NEEDED
    code, found = findings()
    assert code == OK
    for each in needed:
        assert found[each.name]["found"] == f"{metadata.version(each.name)} (needs {each.versions})"


def test_only_what_is_declared_is_there():
    others = "".join(f"sys.modules[{name!r}] = None\n" for name in ("numba_cuda", "cv2", "s3fs", "scipy"))
    code, found = findings(f"THERE = {['mxc-compiler', *NEEDED]}{ALONE}{others}")
    assert code == OK and list(found) == WHAT
    assert all(found[what]["state"] == "ok" for what in (*NEEDED, "CPU", "a model"))
    assert all(found[f"extra {extra}"]["state"] == "missing" for extra in doctor.EXTRAS)


def test_an_environment_for_artifacts_alone():
    """As of `pip install --no-deps`: what is left out is told, and nothing failed."""
    program = f"THERE = ['mxc-compiler', 'numpy']{ALONE}for name in ('llvmlite', 'numba', 'yaml', 'rich'):\n"
    code, found = findings(f"{program}    sys.modules[name] = None\n")
    assert code == OK and list(found) == WHAT
    assert {what for what, each in found.items() if each["state"] == "missing"} >= {
        "llvmlite", "numba", "pyyaml", "rich", "code generators", "a model"}
    assert found["pyyaml"]["found"].startswith("left out (needs >=6.0): graphs are not read")
    assert "artifacts" in found["a model"]["found"] and "pip install mxc-compiler" in found["a model"]["advice"]
    assert found["numpy"]["state"] == found["CPU"]["state"] == "ok"


@pytest.mark.parametrize("missing", NEEDED)
def test_a_package_that_is_not_there(missing: str):
    there = ["mxc-compiler", *(name for name in NEEDED if name != missing)]
    module = {"pyyaml": "yaml"}.get(missing, missing)
    code, found = findings(f"THERE = {there}{ALONE}sys.modules[{module!r}] = None\n")
    assert code == FAILED and list(found) == WHAT
    assert found[missing]["state"] == "failed" and found[missing]["found"].startswith("not installed (needs >=")
    assert found[missing]["advice"].startswith(f"pip install --upgrade '{missing}>=")
    assert found["threads"]["state"] in ("ok", "note") and found["CPU"]["state"] in ("ok", "note")
    failed = {what for what, each in found.items() if each["state"] == "failed"} - {missing}
    failed -= {"numba"} if missing in ("numpy", "llvmlite") else set()  # which it needs
    assert failed <= {"a model"} and ("a model" in failed) == (missing in ("numpy", "pyyaml", "llvmlite"))


def test_a_package_that_is_too_old_or_broken():
    code, found = findings("from importlib import metadata\nversion = metadata.version\nmetadata.version = "
                           "lambda name: '1.26.4' if name == 'numpy' else version(name)\nsys.modules['rich'] = None")
    assert code == FAILED and list(found) == WHAT
    assert found["numpy"]["state"] == "failed" and found["numpy"]["found"] == "1.26.4 (needs >=2.0)"
    assert found["rich"]["state"] == "failed" and "cannot be imported" in found["rich"]["found"]
    assert found["a model"]["state"] == "ok"


def test_numba_that_cannot_be_imported():
    """It is required, so its own line says so too."""
    for variables, state in (({}, "note"), ({"MXC_CODEGEN": "numba"}, "failed")):
        code, found = findings(NUMBA_NUM_THREADS="-1", MXC_CACHE_DIR="", **variables)
        made = found["code generators"]
        assert code == FAILED and list(found) == WHAT and found["numba"]["state"] == "failed"
        assert made["state"] == state and "Numba cannot be imported (Number of threads" in made["found"]
        assert "pip install --force-reinstall numba" in made["advice"]
        assert found["a model"]["state"] == ("failed" if variables else "ok")
    assert "or unset MXC_CODEGEN" in made["advice"]


def test_a_code_generator_that_there_is_not():
    code, found = findings(MXC_CODEGEN="nmba")
    made = found["code generators"]
    assert code == FAILED and made["state"] == "failed"
    assert made["found"].endswith("code generator 'nmba'; expected llvm or numba, or nothing for llvm; "
                                  "did you mean 'numba'?")


BROKEN = {"raise ImportError('no libjpeg')": "no libjpeg", "import os; os._exit(1)": "Python ends, or waits"}


@pytest.mark.parametrize(("text", "reason"), BROKEN.items(), ids=["raises", "ends Python"])
def test_an_extra_that_cannot_be_imported(text: str, reason: str, tmp_path: Path):
    (tmp_path / "cv2").mkdir()
    (tmp_path / "cv2/__init__.py").write_text(text)
    code, found = findings(PYTHONPATH=str(tmp_path))
    image = found["extra image"]
    assert code == OK and list(found) == WHAT and image["state"] == "missing"
    assert "cv2 cannot be imported: " + reason in image["found"]
    assert image["advice"] == "pip install --force-reinstall 'mxc-compiler[image]'"


def test_a_checkout_without_metadata():
    code, found = findings(f"THERE = {NEEDED}{ALONE}")
    assert code == OK and list(found) == WHAT and found["numpy"]["found"].endswith("(needs >=2.0)")


def test_nothing_says_what_is_needed():
    code, found = findings(f"THERE = {NEEDED}{ALONE}import tomllib\ntomllib.loads = lambda text: {{}}")
    assert code == OK and list(found) == [*WHAT[:2], "packages", *WHAT[7:]]
    assert found["packages"]["state"] == "note" and "not known" in found["packages"]["found"]


def test_another_python(monkeypatch: pytest.MonkeyPatch):
    declared = requirements.Declared(">=3.11", ())
    monkeypatch.setattr("platform.python_version", lambda: "3.10.13")
    assert (doctor.python(declared).state, doctor.python(declared).found) == ("failed", "3.10.13 (needs >=3.11)")
    monkeypatch.setattr("platform.python_version", lambda: "3.14.0rc1")
    assert doctor.python(declared).state == "ok"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit there")
def test_a_disk_that_is_full(tmp_path: Path):
    """A limit on the size of files refuses what a full disk does."""
    program = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))"
    done = command("doctor", "--json", program=program, MXC_CACHE_DIR=str(tmp_path))
    found = {each["what"]: each for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == OK and list(found) == WHAT
    assert found["cache"]["state"] == "note" and "cannot be written to" in found["cache"]["found"]
    assert f"{tmp_path}: File too large" in found["cache"]["advice"] and "MXC_CACHE_DIR" in found["cache"]["advice"]
    assert found["a model"]["state"] == "ok"
    assert not list(tmp_path.glob("*.try"))


def test_a_terminal_without_rich(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(tables, "on_terminal", lambda: True)
    for name in ("rich.console", "rich.table", "rich.text"):
        monkeypatch.setitem(sys.modules, name, None)
    tables.print_table(("", "what"), [("failed", "rich")])
    assert capsys.readouterr().out.split() == ["what", "failed", "rich"]


@pytest.mark.parametrize(("formula", "text"), [("data", "computes wrong numbers"), ("data +", "Error")])
def test_a_compiler_that_is_wrong(formula: str, text: str):
    fault = f"from mxc.compiler.ops import table\ntable.get('tanh').expr = {formula!r}"
    done = command("doctor", "--json", program=fault, MXC_CACHE_DIR="")
    assert (done.returncode, done.stderr) == (FAILED, "")
    model = next(each for each in json.loads(done.stdout)["findings"] if each["what"] == "a model")
    assert model["state"] == "failed" and text in model["found"] and "report it" in model["advice"]


@pytest.mark.parametrize("setting", ["", "file"])
def test_no_cache(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    monkeypatch.setattr("mxc.compiler.cache._warned", set())
    monkeypatch.setenv("MXC_CACHE_DIR", setting and str(tmp_path / "file"))
    found = doctor.cache()
    assert (found.state, found.found) == ("note", "none: each process compiles anew")
    assert "MXC_CACHE_DIR" in found.advice


def test_settings_that_cost_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(runner, "_current", None)  # what these settings make is not for other tests
    monkeypatch.setenv("MXC_NUM_THREADS", "200")
    monkeypatch.setenv("MXC_RUNNER", "portable")
    found = doctor.threads()
    assert found.state == "note" and "200 on" in found.found and "portable runner" in found.found
    assert "unset MXC_RUNNER" in found.advice
    assert main(["doctor"]) == OK
    assert "threads: " in capsys.readouterr().out
