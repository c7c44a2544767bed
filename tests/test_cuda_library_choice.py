"""Where NVIDIA's libraries are taken: trials, what is remembered, addresses, whole networks; in Numba's simulator, with
stand-ins for the libraries."""
from __future__ import annotations

from typing import Any

from cuda_runs import simulated

PROGRAM = """
import os, warnings
import numpy as np
from cuda_runs import Plain, run, target_of
from library_cases import WINDOWS, GEMMS, check, convolution_case, gemm_case
from nvidia_stand_ins import CublasLt, Cudnn
from mxc.compiler.targets.cuda.simulator import SimulatedGpu
from mxc.compiler.targets.cuda.blocks import SIMULATED
lt, dnn, plain = CublasLt(), Cudnn(), Plain()
SimulatedGpu.libraries = {"nvmath.bindings.cublasLt": lt, "cudnn": dnn}
warnings.simplefilter("error")

class Runs:
    def run(self, call, arrays):
        run(call, arrays)

def product(m=5, n=6, k=7):
    return gemm_case((1, m, n, k, "float32", False, True, False), plain)
"""


def test_call_sites_are_tried_and_taken() -> None:
    """Each form is tried once; what is wrong, treats NaN in another way or is not there leaves mxc's kernel."""
    simulated(PROGRAM + """
check(*product(), Runs())
assert len(lt.calls) == 3, lt.calls  # twice in the trial, for the numbers and for NaN
check(*product(), Runs())
assert len(lt.calls) == 4
check(*convolution_case("data", WINDOWS["one pixel"], "float32", plain, packed=False), Runs())
assert dnn.calls == ["float32 data"] * 3
memory = target_of(SIMULATED).launcher.memory
memory.info()  # which takes back what was given
assert not memory._held, "trials give their memory back"

lt.lacks = True
check(*product(m=4), Runs())
lt.lacks = False
assert len(lt.calls) == 4
lt.scaled = 1.001
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    check(*product(n=4), Runs())
assert "cuBLASLt float32 4x5x7" in str(told[0].message) and "differs by 0.001" in str(told[0].message)
lt.scaled = 1.0
count = len(lt.calls)
check(*product(n=4), Runs())
assert len(lt.calls) == count

from dataclasses import replace
from mxc.compiler.kernel import ir
def clipped(k):
    call, arrays = product(k=k)
    value = ir.apply("max", ir.acc(0, "float32"), ir.const(0.0, "float32"))
    return replace(call, stores=(replace(call.stores[0], value=value),)), arrays
check(*clipped(8), Runs())
assert lt.calls[-1].endswith("epilogue 2"), lt.calls
lt.clips_nan = True
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    check(*clipped(9), Runs())
assert "treats NaN in another way" in str(told[0].message)

matmul = lt.matmul
def refuse(*rest):
    raise lt.cuBLASLtError("no such thing")
lt.matmul = refuse
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    check(*product(k=11), Runs())
assert "a trial failed: cuBLASLt float32 6x5x11" in str(told[0].message) and "no such thing" in str(told[0].message)
lt.matmul = matmul
""", settings={"MXC_CUDA_LIBRARIES": "always"})


FRESH = """
from mxc.compiler.targets.cuda.allocator import Allocator
from mxc.compiler.targets.cuda.nvidia.choice import Libraries
from mxc.compiler.targets.cuda.target import SimulatedTarget
import cuda_runs

def fresh(cache=None):  # as in another process
    target = SimulatedTarget(Allocator(SimulatedGpu(0)))
    target.launcher.libraries = libraries = Libraries(target.launcher.memory, cache)
    cuda_runs.target_of = lambda blocks: target
    lt.calls.clear()
    return libraries
"""


def test_the_faster_one_is_taken_and_remembered(tmp_path: Any) -> None:
    tmp_path.chmod(0o700)
    simulated(PROGRAM + FRESH + f"""
from pathlib import Path
from mxc.compiler.cache import Cache
from mxc.compiler.targets.cuda.nvidia import trial

for m, times in ((5, (2.0, 1.0)), (6, (1.0, 2.0))):
    seconds = trial.Trial._seconds
    trial.Trial._seconds = lambda self, times=times: (seconds(self), times)[1]
    for attempt in range(2):
        fresh(Cache(Path({str(tmp_path)!r})))
        check(*product(m=m), Runs())
        tried = len(lt.calls) - (m == 5)
        assert tried > 5 if attempt == 0 else tried == 0, (m, attempt, lt.calls)
    trial.Trial._seconds = seconds
""")


def test_addresses_that_libraries_do_not_take() -> None:
    """A call site has the library's call or mxc's kernel, by the addresses of a run; graphs follow."""
    simulated(PROGRAM + FRESH + """
from mxc.compiler.error import MXNetError
fresh()
target = cuda_runs.target_of(SIMULATED)
memory, (call, arrays) = target.launcher.memory, product()
launch = target.launch(call)
code = target.load({launch.key: call}).address(launch.key)
places = [memory.allocate(each.nbytes + 4) for each in arrays]
rows = [(code, [*places, *launch.values], launch.units)] * 2
table = target.launcher.table(rows)
lt.calls.clear()
change = SimulatedGpu.change

def refused(self, graph, number, launch):
    raise MXNetError("no such change")

for moved, called, changing in ((0, 2, change), (0, 2, change), (4, 1, change), (0, 2, change), (0, 2, refused)):
    SimulatedGpu.change = changing
    target.launcher.put(table, 1, 2, places[2] + moved)
    for place, values in zip((*places[:2], places[2] + moved), arrays):
        memory.write(place, values)
    target.launcher.run(table)
    memory.device.wait()
    assert len(lt.calls) == called, (moved, lt.calls)
    lt.calls.clear()
    found = np.zeros_like(arrays[2])
    memory.read(places[2] + moved, found)
    expected = arrays[0].reshape(5, 7) @ arrays[1].reshape(6, 7).T
    np.testing.assert_allclose(found.reshape(5, 6), expected, rtol=1e-5, atol=1e-5)

SimulatedGpu.graph = lambda self, launches: refused(self, None, 0, None)
table = target.launcher.table(rows)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(3):
        target.launcher.run(table)
memory.device.wait()
assert len(lt.calls) == 6 and len(told) == 1 and "one by one: no such change" in str(told[0].message)
""", settings={"MXC_CUDA_LIBRARIES": "always"})


def test_without_libraries() -> None:
    simulated(PROGRAM + FRESH + """
libraries = fresh()
libraries.way = "never"
check(*product(), Runs())
assert not lt.calls and not libraries.has(product()[0])
SimulatedGpu.libraries = {"cudnn": dnn}
libraries = fresh()
check(*product(), Runs())
assert libraries.missing == {"cuBLASLt": "nothing stands in for nvmath.bindings.cublasLt"}
SimulatedGpu.libraries = {"nvmath.bindings.cublasLt": lt, "cudnn": dnn}

def create():
    raise OSError("libcublasLt.so.13 is broken")

lt.create = create
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    fresh()
    check(*product(), Runs())
assert "cuBLASLt cannot be used, so mxc's kernels are: OSError: libcublasLt.so.13 is broken" in str(told[0].message)
""", settings={"MXC_CUDA_LIBRARIES": "always"})


def test_a_network_is_trained_by_libraries() -> None:
    """Inference and gradients of a small network, against the CPU; its call sites, in their order."""
    simulated("""
import numpy as np
from nvidia_stand_ins import CublasLt, Cudnn
from mxc.compiler.targets.cuda.simulator import SimulatedGpu
lt, dnn = CublasLt(), Cudnn()
SimulatedGpu.libraries = {"nvmath.bindings.cublasLt": lt, "cudnn": dnn}
import mxc as mx

data = mx.sym.var("data")
net = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, pad=(1, 1), name="conv")
net = mx.sym.Activation(net, act_type="relu")
net = mx.sym.FullyConnected(net, num_hidden=5, name="fc")
shapes = {"data": (2, 3, 5, 5)}
rng = np.random.default_rng(0)
arrays = {name: rng.standard_normal(shape).astype("float32") for name, shape in zip(
    net.list_arguments(), net.infer_shape(**shapes)[0])}
found = []
for place in (mx.cpu(), mx.gpu(0)):
    args = {name: mx.nd.array(value, ctx=place) for name, value in arrays.items()}
    grads = {name: mx.nd.zeros(value.shape, ctx=place) for name, value in arrays.items()}
    run = net.bind(place, args, args_grad=grads)
    for _ in range(3):  # the second and the third run are graphs of launches
        lt.calls.clear(), dnn.calls.clear()
        out = run.forward(is_train=True)[0]
        run.backward(mx.nd.ones(out.shape, ctx=place))
        mx.nd.waitall()
    found.append([out.asnumpy(), *(grads[name].asnumpy() for name in sorted(grads))])
for a, b in zip(*found):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
assert len(lt.calls) == 3, lt.calls
assert dnn.calls == ["float32 forward bias relu", "float32 data", "float32 weight"] or sorted(dnn.calls) == sorted(
    ["float32 forward bias relu", "float32 weight", "float32 data"]), dnn.calls
""", settings={"MXC_CUDA_LIBRARIES": "always"})


def test_the_checks_for_a_gpu() -> None:
    """tests/gpu_check.py's, of which some are run here."""
    simulated(PROGRAM + """
import gpu_check
names = []
for name, check in gpu_check.by_libraries(("cuBLASLt", "cuDNN")):
    names.append(name)
    if name in ("cuBLASLt (1, 64, 64, 16) float16 (False, True)", "cuDNN 1d forward float32, bias, relu",
                "cuDNN 1d weight float16"):
        check()
assert len(names) == len(set(names)) > 60 and len(lt.calls) == 3 and len(dnn.calls) == 6
assert not list(gpu_check.by_libraries(()))
""", settings={"MXC_SIMULATED_GPUS": "1"})
