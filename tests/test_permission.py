"""AMX by the system's leave: processes that get it, and such as do not."""
from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from refused import refuse_tiles
from test_artifact import bound
from test_c_loader import OTHER_CPU, of_c, program  # noqa: F401  # a fixture

import mxc as mx
from mxc import artifact
from mxc.compiler.targets.cpu.machine import host, permission
from mxc.compiler.targets.cpu.machine.isa import native

HERE = {"amx_tile", "amx_int8", "amx_bf16"} <= {*host._cpuinfo().get("flags", "").split()} and permission.has_tiles()
needs_tiles = pytest.mark.skipif(not HERE, reason="this CPU has no AMX, or the system refuses it")
REFUSED = """
import sys
sys.path.insert(0, "tests")
from refused import refuse_tiles
refuse_tiles()
"""
PREDICT = """
import numpy, mxc
model = mxc.load(sys.argv[1])
numpy.save(sys.argv[2], model.predict(data=numpy.load(sys.argv[3]))["out_output"])
from mxc.compiler.targets.cpu.machine.isa import native
print(native().name)
"""


def network() -> mx.sym.Symbol:
    """Layers of bfloat16 that are computed by tiles, of float32 outside."""
    x = mx.sym.Cast(mx.sym.Variable("data"), dtype="bfloat16")
    x = mx.sym.relu(mx.sym.Convolution(x, kernel=(3, 3), num_filter=32, pad=(1, 1), no_bias=True, name="first"))
    x = mx.sym.Convolution(x, kernel=(3, 3), num_filter=32, pad=(1, 1), no_bias=True, name="second")
    return mx.sym.Cast(mx.sym.FullyConnected(x, num_hidden=24, no_bias=True, name="last"), dtype="float32", name="out")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """An artifact that was made here, and its input."""
    folder = tmp_path_factory.mktemp("model")
    rng, made = np.random.default_rng(0), folder / "net.mxc"
    artifact.save(made, [bound(network(), data=(2, 16, 8, 8))], ["data"], keep_params=True)
    np.save(folder / "data.npy", data := rng.standard_normal((2, 16, 8, 8)).astype("float32"))
    return made, data


def predicted(model: Path, refused: bool, tmp_path: Path) -> tuple[np.ndarray, list[str], str]:
    """What another process computes, what it prints, and its warnings."""
    words = [sys.executable, "-c", (REFUSED if refused else "import sys") + PREDICT, str(model),
             str(tmp_path / "out.npy"), str(model.parent / "data.npy")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    return np.load(tmp_path / "out.npy"), done.stdout.split(), done.stderr


def test_a_cpu_without_amx_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission, "has_tiles", lambda: pytest.fail("asked"))
    assert permission.permitted(["avx2", "fma"]) == ["avx2", "fma"]
    assert permission.permitted(["+avx2", "-amx-fp16"]) == ["+avx2", "-amx-fp16"]


def test_what_is_refused_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission, "has_tiles", lambda: False)
    assert permission.permitted(["amx_tile", "avx2", "amx_int8"]) == ["avx2"]
    assert permission.permitted(["+amx-tile", "+avx2", "-amx-fp16"]) == ["+avx2", "-amx-fp16"]


def test_code_with_tiles_is_refused_by_name_without_them() -> None:
    then = {"cpu": "one", "features": "amx_bf16 amx_int8 amx_tile avx2"}
    assert host.differences(then, then | {"features": "avx2"}) == [
        "features that this CPU lacks, or the system refuses: amx_bf16, amx_int8, amx_tile"]


@needs_tiles
def test_a_process_that_is_refused_computes_without_tiles(model: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    """It compiles the artifact again, and says why."""
    path, _ = model
    want, form, warnings = predicted(path, False, tmp_path)
    assert form == ["amx"] and "compiled for something else" not in warnings
    found, form, warnings = predicted(path, True, tmp_path)
    assert form != ["amx"] and "features that this CPU lacks, or the system refuses: amx_bf16" in warnings
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-2 * np.abs(want).max())


@needs_tiles
def test_the_c_loader_asks_too(model: tuple[Path, np.ndarray], program: Path) -> None:  # noqa: F811
    path, data = model
    want = mx.load(path).predict(data=data)["out_output"]
    np.testing.assert_array_equal(of_c(program, path, {"data": data}, threads=2)["out_output"][0], want)
    done = subprocess.run([str(program), "check", str(path)], capture_output=True, text=True, preexec_fn=refuse_tiles)
    assert done.stdout.startswith(f"{OTHER_CPU} {path}: it was compiled for a CPU with features that this one lacks, "
                                  "or the system refuses: amx_bf16")


@needs_tiles
def test_threads_and_forked_processes_have_it_too(model: tuple[Path, np.ndarray]) -> None:
    """Threads that were there before it was asked for among them."""
    code = """
import os, sys, threading
import numpy
begin, found = threading.Event(), []
def work():
    begin.wait()
    found.append(model.predict(data=data)["out_output"])
thread = threading.Thread(target=work)
thread.start()
import mxc
model, data = mxc.load(sys.argv[1]), numpy.load(sys.argv[2])
begin.set()
thread.join()
want = model.predict(data=data)["out_output"]
child = os.fork()
if not child:
    same = (model.predict(data=data)["out_output"] == want).all() and (found[0] == want).all()
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    path, _ = model
    words = [sys.executable, "-c", code, str(path), str(path.parent / "data.npy")]
    assert subprocess.run(words, timeout=300).returncode == 0


@needs_tiles
def test_this_process_has_it() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(permission.has_tiles()))
    thread.start()
    thread.join()
    assert found == [True] and native().tiles
