"""Artifacts in processes of their own: what a start imports, several at once, and writers that are killed."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from artifact_cases import changed

import mxc as mx
from mxc import artifact
from mxc.runtime import artifact_file

DATA = np.linspace(-1, 1, 2 * 64, dtype=np.float32).reshape(2, 64)
PREDICT = """
import sys
import numpy as np
import mxc
data = np.linspace(-1, 1, 2 * 64, dtype=np.float32).reshape(2, 64)
output = mxc.load(sys.argv[1]).predict(data=data)["softmax_output"]
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    executor = networks.perceptron().simple_bind(mx.cpu(), grad_req="null", data=(2, 64))
    for name, array in executor.arg_dict.items():
        array[:] = np.random.default_rng(len(name)).standard_normal(array.shape)
    made = tmp_path_factory.mktemp("artifact") / "net.mxc"
    artifact.save(made, [executor], ["data"])
    return made


@pytest.fixture(scope="module")
def want(path: Path) -> np.ndarray:
    return mx.load(path).predict(data=DATA)["softmax_output"]


def start(program: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, **variables})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems load objects by LLVM")
def test_a_start_imports_neither_llvm_nor_the_compiler(path: Path, want: np.ndarray, tmp_path: Path):
    program = PREDICT + "print(output.tobytes().hex(), *sys.modules)"
    out, error = start(program, str(path), MXC_CACHE_DIR=str(tmp_path / "none")).communicate(timeout=120)
    result, *modules = out.split()
    assert bytes.fromhex(result) == want.tobytes(), error
    foreign = ("numba", "llvmlite", "yaml", "rich", "mxc.compiler.api", "mxc.compiler.passes", "mxc.compiler.graph",
               "mxc.compiler.kernel", "mxc.compiler.ops.table", "mxc.symbol", "mxc.ndarray",
               "mxc.compiler.targets.cpu.target", "mxc.compiler.targets.protocol")
    assert not [name for name in modules for other in foreign if name == other or name.startswith(f"{other}.")]
    assert not (tmp_path / "none").exists()  # it needs no cache


NO_COMPILER = """
import sys
for name in ("llvmlite", "numba", "yaml", "rich"):
    sys.modules[name] = None
import mxc
loaded = None
for path in sys.argv[1:]:
    try:
        loaded = mxc.load(path)
        loaded.executor()
    except mxc.MXNetError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems load objects by LLVM")
def test_where_there_is_no_compiler_that_is_told(path: Path, tmp_path: Path):
    """Of a file for another CPU when it is loaded, of others when something is asked for that is not in them."""
    def for_another(manifest: dict[str, Any]) -> None:
        manifest["parts"] |= {"cpu": "another CPU", "features": f"{manifest['parts']['features']} avx9000"}

    other = changed(path, tmp_path / "other.mxc", for_another)
    out, error = start(NO_COMPILER, str(other), str(path)).communicate(timeout=120)
    first, advice, second, _ = out.splitlines()
    assert first.startswith(f"TargetError {other}: the model was compiled for something else (cpu: 'another CPU' then")
    assert "features that this CPU lacks: avx9000" in first
    assert first.endswith("and this environment has no compiler (llvmlite and pyyaml are not installed)")
    assert advice.startswith("compile it again with `mxc compile") and not error
    assert second.startswith(f"TargetError {path}: an executor is asked for, and this environment has no compiler")


def test_the_portable_runner_runs_it(path: Path, want: np.ndarray):
    out, error = start(PREDICT + "print(output.tobytes().hex())", str(path),
                       MXC_RUNNER="portable").communicate(timeout=120)
    assert bytes.fromhex(out) == want.tobytes(), error


def test_several_at_once(path: Path, want: np.ndarray):
    processes = [start(PREDICT + "print(output.tobytes().hex())", str(path)) for _ in range(3)]
    results: list[np.ndarray] = []

    def work() -> None:
        loaded = mx.load(path)
        results.extend(loaded.predict(data=DATA)["softmax_output"] for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(6)]
    shared = mx.load(path)
    threads += [threading.Thread(target=lambda: results.append(shared.predict(data=DATA)["softmax_output"]))
                for _ in range(6)]
    threads += [threading.Thread(target=lambda own: results.extend(own.predict(data=DATA)["softmax_output"]
                                                                   for _ in range(20)), args=(shared.clone(),))
                for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 186 and all(np.array_equal(result, want) for result in results)
    for process in processes:
        out, error = process.communicate(timeout=120)
        assert bytes.fromhex(out) == want.tobytes(), error


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_goes_on(path: Path):
    program = PREDICT + """
import os
child = os.fork()
loaded = mxc.load(sys.argv[1])
again = loaded.predict(data=data)["softmax_output"]
if child == 0:
    os._exit(0 if np.array_equal(again, output) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), np.array_equal(again, output))
"""
    out, error = start(program, str(path)).communicate(timeout=120)
    assert out.split() == ["0", "True"], error


WRITE = """
import sys
import numpy as np
from mxc.runtime import artifact_file
rng = np.random.default_rng(0)
number = int(sys.argv[2])
while True:
    number += 1
    pieces = [np.full(1 << 20, number + i) for i in range(3)]
    print("writing", flush=True)
    artifact_file.write(sys.argv[1], {"number": number}, {"some": pieces, "none": []})
"""


def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path):
    target, seen = tmp_path / "made.mxc", 0
    rng = np.random.default_rng(0)
    for _ in range(4):
        process = start(WRITE, str(target), str(seen))
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
        contents = artifact_file.read(target)
        assert contents.manifest["number"] > seen
        seen = contents.manifest["number"]
        values = np.frombuffer(contents.sections["some"], np.int64)
        assert values[0] == seen and values[-1] == seen + 2 and len(contents.sections["none"]) == 0
