"""Artifacts for GPUs: written by a machine without one, read where one is.

The GPU is a simulated one that takes machine code: it finds the kernel that the code is of by its symbol, and runs that
kernel's source.
"""
from __future__ import annotations

import json
from pathlib import Path

import networks
import numpy as np
import pytest
from cuda_runs import simulated

import mxc as mx
from mxc.cli.main import main
from mxc.compiler.error import ArgumentError, MXNetError, TargetError
from mxc.compiler.targets.cuda.ahead import CudaTarget
from mxc.compiler.targets.cuda.blocks import SIMULATED
from mxc.runtime import artifact_cuda, artifact_file

pytest.importorskip("numba_cuda", reason="the extra cuda is not installed")

GPU = """
import json, os, warnings
import numpy as np
import mxc as mx
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cuda import devices, simulator
from mxc.compiler.targets.cuda.ahead import CudaTarget
from mxc.compiler.targets.cuda.allocator import Allocator
from mxc.compiler.targets.cuda.blocks import SIMULATED
from mxc.compiler.targets.cuda.kernels import function_of
from mxc.compiler.targets.launch import symbol
from mxc.runtime.artifact import Artifact

CudaTarget.blocks = SIMULATED
taken, kernels = [], {}

class Loading:
    def __init__(self, arch):
        self.device, self.arch = simulator.SimulatedGpu(0), arch

    def __getattr__(self, name):
        return getattr(self.device, name)

    def function(self, code, name):
        taken.append(bytes(code[:4]))
        return simulator.function(function_of(kernels[name], SIMULATED, None, simulator.SharedArrays()))

def gpu(arch):
    devices._found[0], devices._owner = Allocator(Loading(arch)), os.getpid()
    from mxc.compiler.targets.cuda.target import gpu_target
    gpu_target.cache_clear()

def known(path, arch, train=False):
    for stored in Artifact(path, mx.VERSION).plans:
        planned = plan_graph(mx.sym.load("net-symbol.json").graph, stored.shapes, stored.dtypes, stored.grad_req,
                             stored.mode == "training", CudaTarget(arch), True)
        kernels.update({symbol(key): kernel for key, kernel in planned.kernels.items()})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a network, its parameters, and a place for compiled code; kernels get few threads."""
    monkeypatch.setenv("MXC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(CudaTarget, "blocks", SIMULATED)
    monkeypatch.chdir(tmp_path)
    net, rng = networks.perceptron(), np.random.default_rng(0)
    net.save("net-symbol.json")
    shapes, _, _ = net.infer_shape(data=(2, 64))
    mx.nd.save("net-0000.params", {f"arg:{name}": mx.nd.array(rng.uniform(-0.5, 0.5, shape)) for name, shape in
                                   zip(net.list_arguments(), shapes, strict=True) if name.startswith("fc")})
    return tmp_path


def ran(folder: Path, program: str) -> str:
    """What a program prints that has the GPU."""
    return simulated(f"import os; os.chdir({str(folder)!r})\n{GPU}{program}")


@pytest.mark.parametrize("arch", ["sm_80", pytest.param("sm_90", marks=pytest.mark.slow)])
def test_a_model_runs_from_a_file_on_a_gpu(arch: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "net-symbol.json", "--shape", "data=2,64", "--target", "cuda:sm_80", "-o", "net.mxc"]) == 0
    capsys.readouterr()
    text = ran(folder, f"""
warnings.simplefilter("error")
x = np.random.default_rng(1).random((3, 64), np.float32)
net, values = mx.sym.load("net-symbol.json"), mx.nd.load("net-0000.params")
here = net.simple_bind(mx.cpu(), data=(3, 64))
here.copy_params_from({{name[4:]: value for name, value in values.items()}})
want = here.forward(data=x)[0].asnumpy()
gpu({arch!r})
known("net.mxc", "sm_80")
model = mx.load("net.mxc")
assert model.params.keys() == {{name[4:] for name in values}}
np.testing.assert_allclose(model.predict(data=x)["softmax_output"], want, 1e-5, 1e-6)
executor = model.executor(data=(2, 64), ctx=mx.gpu(0))
np.testing.assert_allclose(executor.forward(data=x[:2])[0].asnumpy(), want[:2], 1e-5, 1e-6)
print(json.dumps([code.decode("latin1") for code in taken]))
gpu("sm_75")
print(Artifact("net.mxc", mx.VERSION).stale)
""").splitlines()
    # the machine code of its own architecture, PTX on a newer one
    assert {code == "\x7fELF" for code in json.loads(text[0])} == {arch == "sm_80"}
    assert text[1] == "it has code for sm_80 and newer, and this GPU is sm_75"


@pytest.mark.slow
def test_a_training_step_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape, target = ["--shape", "data=2,64"], ["--target", "cuda:sm_90"]
    assert main(["compile", "net-symbol.json", *shape, *target, "--train", "-o", "net.mxc"]) == 0
    capsys.readouterr()
    ran(folder, """
warnings.simplefilter("error")
gpu("sm_90")
known("net.mxc", "sm_90")
x = np.random.default_rng(1).random((2, 64), np.float32)
found = []
model = mx.load("net.mxc")
here = mx.sym.load("net-symbol.json").simple_bind(mx.cpu(), data=(2, 64))
values = model.params
here.copy_params_from({name: mx.nd.array(value) for name, value in values.items()})
for executor in (model.executor(data=(2, 64)), here):
    executor.forward(is_train=True, data=x, softmax_label=np.array([1, 2]))
    executor.backward()
    found.append(executor.grad_dict[min(values)].asnumpy())
assert taken and found[0].any()
assert min(values).endswith(("weight", "bias"))
np.testing.assert_allclose(*found, 1e-4, 1e-6)
""")


def test_on_a_gpu_that_takes_no_machine_code_the_model_is_compiled(folder: Path) -> None:
    mx.artifact.save("net.mxc", [executor(folder)], ["data"], target="cuda:sm_90")
    text = simulated(f"""
import os, warnings
os.chdir({str(folder)!r})
import numpy as np, mxc as mx
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(mx.load("net.mxc").predict(data=np.ones((2, 64)))["softmax_output"].shape)
print(told[0].message)
""")
    assert text.startswith("(2, 10)") and "a simulated GPU runs no machine code" in text


def executor(folder: Path) -> mx.executor.Executor:
    """The folder's network, bound on the CPU."""
    return mx.sym.load(str(folder / "net-symbol.json")).simple_bind(mx.cpu(), data=(2, 64))


def test_without_the_gpu_an_error_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if mx.context.num_gpus():
        pytest.skip("there is a GPU")
    mx.artifact.save("net.mxc", [executor(folder)], ["data"], target="cuda:sm_90")
    with pytest.raises(TargetError, match=r"net.mxc was compiled for cuda:sm_90: gpu\(0\): there is none"):
        mx.load("net.mxc")
    with pytest.raises(ArgumentError, match=r"was compiled for GPUs, and is to run on cpu\(0\)"):
        mx.load("net.mxc", ctx=mx.cpu())
    assert main(["run", "net.mxc", "--shape", "data=2,64"]) == 5
    assert main(["inspect", "net.mxc"]) == 0
    out = capsys.readouterr().out
    assert "made for:      cuda:sm_90\n" in out and "runs here:     no: gpu(0): there is none" in out
    mx.artifact.save("cpu.mxc", [executor(folder)], ["data"])
    with pytest.raises(ArgumentError, match=r"was compiled for CPUs, and is to run on gpu\(0\)"):
        mx.load("cpu.mxc", ctx=mx.gpu(0))


def test_code_that_is_not_there_is_damage(folder: Path) -> None:
    mx.artifact.save("net.mxc", [executor(folder)], ["data"], target="cuda:sm_90")
    contents = artifact_file.read("net.mxc")
    for entry in contents.manifest["code"]["kernels"].values():
        for wrong in ([-1, 5], [0, 1 << 40], "no", None):
            kernels = {"k": {**entry, "cubin": wrong}}
            with pytest.raises((ValueError, TypeError)):
                artifact_cuda.read({"kernels": kernels}, "sm_90", contents.sections["code"])


def test_what_has_no_code_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaTarget, "lacks", lambda self, kernel: "a template")
    with pytest.raises(MXNetError, match=r"there is no code for a template on GPUs, so net.mxc cannot be written"):
        mx.artifact.save("net.mxc", [executor(folder)], ["data"], target="cuda:sm_90")
    assert not (folder / "net.mxc").exists()


def test_executors_on_a_gpu_are_not_saved() -> None:
    assert "bind them on mx.cpu()" in simulated("""
import mxc as mx
net = mx.sym.var("x") * 2
try:
    mx.artifact.save("net.mxc", [net.simple_bind(mx.gpu(0), x=(2,))], ["x"])
except mx.MXNetError as error:
    print(error)
""")
