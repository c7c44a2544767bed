"""Arrays on GPUs, operators on them, and what cannot be done, on simulated GPUs."""
from __future__ import annotations

from cuda_runs import simulated

BEGIN = """
import numpy as np
import mxc as mx
from cuda_runs import refused
from mxc.compiler.error import MXNetError, OutOfMemoryError, TargetError
"""


def test_arrays_live_there() -> None:
    simulated(BEGIN + """
assert mx.context.num_gpus() == 2 and mx.util.get_gpu_count() == 2
free, total = mx.context.gpu_memory_info(1)
a = mx.nd.array(np.arange(1 << 12).reshape(64, 64), ctx=mx.gpu(1))
assert a.context == mx.gpu(1) and mx.context.gpu_memory_info(1) == (free - a.size * 4, total)
for dtype in ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"):
    values = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    there = mx.nd.array(values, ctx=mx.gpu(0), dtype=dtype)
    np.testing.assert_array_equal(there.asnumpy(), values)
    again = there.copyto(mx.gpu(1)).as_in_context(mx.cpu())
    assert again.context == mx.cpu() and again.asnumpy().dtype == values.dtype
    np.testing.assert_array_equal(again.asnumpy(), values)
a[3, 5:7] = -1
a[9] = a[10]
expected = np.arange(1 << 12, dtype="float32").reshape(64, 64)
expected[3, 5:7] = -1
expected[9] = expected[10]
np.testing.assert_array_equal(a.asnumpy(), expected)
np.testing.assert_array_equal((a[2:4] * 2).asnumpy(), expected[2:4] * 2)  # of a part of the allocation
part = a.reshape((4, 1024))[1]
part[:] = 7
expected.reshape(4, 1024)[1] = 7
np.testing.assert_array_equal(a.asnumpy(), expected)
one = mx.nd.zeros((1,), ctx=mx.gpu(0))
one += 3
assert one.asscalar() == 3
with mx.np_shape():
    nothing = mx.nd.zeros((0, 3), ctx=mx.gpu(0))
    assert (nothing + 1).shape == (0, 3) and nothing.asnumpy().shape == (0, 3)
""", gpus=2)


def test_operators_of_every_kind() -> None:
    """Called one by one on the CPU and on a GPU."""
    simulated(BEGIN + """
rng = np.random.default_rng(0)
x, y, w = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 6, 6), (2, 3, 6, 6), (4, 3, 3, 3)))
boxes = np.sort(rng.random((1, 5, 6)).astype("float32"), axis=2)
calls = {
    "map": lambda nd, x, y, w, b: nd.tanh(x) * y + 1, "reduction": lambda nd, x, y, w, b: x.sum(axis=(0, 2)),
    "all": lambda nd, x, y, w, b: nd.norm(x), "softmax": lambda nd, x, y, w, b: nd.softmax(x, axis=1),
    "norm": lambda nd, x, y, w, b: nd.LayerNorm(x, y[0, 0, 0], y[0, 0, 1]),
    "argmax": lambda nd, x, y, w, b: nd.argmax(x, axis=3), "dot": lambda nd, x, y, w, b: nd.dot(x[0, 0], y[0, 0]),
    "convolution": lambda nd, x, y, w, b: nd.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True),
    "pooling": lambda nd, x, y, w, b: nd.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max"),
    "take": lambda nd, x, y, w, b: nd.take(x[0, 0], nd.array([3, 1], ctx=x.context)),
    "sort": lambda nd, x, y, w, b: nd.sort(x, axis=3), "topk": lambda nd, x, y, w, b: nd.topk(x, k=2, ret_typ="value"),
    "join": lambda nd, x, y, w, b: nd.concat(x, y, dim=1), "cumsum": lambda nd, x, y, w, b: nd.cumsum(x, axis=2),
    "nms": lambda nd, x, y, w, b: nd.contrib.box_nms(b, overlap_thresh=0.1, coord_start=2, score_index=1),
}
for name, call in calls.items():
    found = []
    for place in (mx.cpu(), mx.gpu(0)):
        result = call(mx.nd, *(mx.nd.array(v, ctx=place) for v in (x, y, w, boxes)))
        assert result.context == place, name
        found.append(result.asnumpy())
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-5, err_msg=name)
""")


def test_numbers_where_python_raises() -> None:
    """Poles, numbers outside of domains and beyond the range, integers' powers, and truth values."""
    simulated(BEGIN + """
def compare(name, call, *values):
    found = [call(*(mx.nd.array(v, ctx=place, dtype=v.dtype) for v in values)).asnumpy()
             for place in (mx.cpu(), mx.gpu(0))]
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-6, err_msg=name)

special = np.array([np.nan, np.inf, -np.inf, 0, -1, 1, -1000, 1000, 2.5], "float32")
for name in ("sqrt", "log", "log1p", "exp", "expm1", "sinh", "cosh", "sin", "arccos", "arccosh", "arctanh", "gamma",
             "gammaln", "rsqrt"):
    compare(name, getattr(mx.nd, name), special)
pairs = [v.ravel() for v in np.meshgrid(special, special)]
compare("mod", mx.nd.broadcast_mod, *pairs)
for dtype in ("int8", "uint8", "int32"):
    pairs = [v.ravel() for v in np.meshgrid(*[np.array([0, 1, 2, 3, 7, 127, -1, -2], "int64").astype(dtype)] * 2)]
    compare(f"power of {dtype}", mx.nd.broadcast_power, *pairs)
truth = np.random.default_rng(0).random((3, 20)) > 0.7
compare("dot", mx.nd.dot, truth, truth.T.copy())
compare("topk", lambda x: mx.nd.topk(x, k=4), truth)
compare("argsort", lambda x: mx.nd.argsort(x, is_ascend=False), truth)
""")


def test_random_numbers_are_the_cpus() -> None:
    simulated(BEGIN + """
drawn = {}
for place in (mx.cpu(), mx.gpu(0)):
    mx.random.seed(5, ctx=place)
    with place:
        drawn[place] = [mx.nd.random.uniform(shape=(3, 50)), mx.nd.random.normal(shape=(70,)),
                        mx.nd.random.randint(0, 1000, shape=(40,)), mx.nd.random.gamma(2.0, 1.0, shape=(20,)),
                        mx.nd.Dropout(mx.nd.ones((60,)), p=0.4, mode="always")]
for one, other in zip(*drawn.values()):
    assert other.context == mx.gpu(0)
    exact = one.asnumpy().dtype == np.int32 or one.shape in ((3, 50), (60,))
    if exact:
        np.testing.assert_array_equal(other.asnumpy(), one.asnumpy())
    else:  # by functions of the device's library
        np.testing.assert_allclose(other.asnumpy(), one.asnumpy(), 1e-6, 1e-6)
""")


def test_updates_by_rates_that_are_computed_there() -> None:
    simulated(BEGIN + """
found = []
for place in (mx.cpu(), mx.gpu(0)):
    rates = mx.nd.array([0.1, 0.2], ctx=place)
    weights, slopes = [[mx.nd.full((3,), i + n, ctx=place) for i in range(2)] for n in (1, 3)]
    for _ in range(3):
        rates = rates * 0.5
        mx.nd.preloaded_multi_sgd_update(weights[0], slopes[0], weights[1], slopes[1], rates, rates * 0, num_weights=2,
                                         out=weights)
    found.append([w.asnumpy() for w in weights] + [rates.asnumpy()])
for right, value in zip(*found):
    np.testing.assert_allclose(value, right, 1e-6)
""")


def test_devices_are_not_mixed() -> None:
    simulated(BEGIN + """
here, there, further = (mx.nd.ones((2, 2), ctx=c) for c in (mx.cpu(), mx.gpu(0), mx.gpu(1)))
refused(lambda: here + there, "broadcast_add", "the first is on cpu(0), number 2 on gpu(0)", "as_in_context")
refused(lambda: there + here, "the first is on gpu(0), number 2 on cpu(0)")
refused(lambda: mx.nd.dot(there, further), "operator dot", "gpu(1)")
x = mx.sym.Variable("x")
refused(lambda: mx.sym.exp(x).bind(mx.gpu(0), {"x": here}), "'x' is on cpu(0)", "bound on gpu(0)")
refused(lambda: mx.sym.exp(x).bind(mx.gpu(0), {"x": there}, args_grad={"x": here}), "is on cpu(0)", "bound on gpu(0)")
refused(lambda: mx.sym.exp(x).bind(mx.cpu(), {"x": there}), "'x' is on gpu(0)", "bound on cpu(0)")
refused(lambda: np.asarray(there), "shares no memory", "asnumpy")
refused(lambda: mx.nd.ones((2,), ctx=mx.gpu(2)), "gpu(2): there are 2", "num_gpus", kind=TargetError)
""", gpus=2)


def test_memory_that_is_not_there() -> None:
    """The error names who holds most; what is free is given back before it is raised, and all goes on afterwards."""
    simulated(BEGIN + """
from mxc.compiler.targets.cuda import simulator
simulator.SimulatedGpu.__init__.__defaults__ = (8 << 20,)
big = mx.nd.ones((1 << 20,), ctx=mx.gpu(0))
mx.nd.waitall()
small = [mx.nd.ones((100, 100), ctx=mx.gpu(0)) for _ in range(3)]
refused(lambda: mx.nd.ones((1 << 20,), ctx=mx.gpu(0)), "out of memory: gpu(0) has no 4,194,304 bytes left",
        "left for arrays of float32 (1048576,)", "8,388,608 bytes", "4,194,304 bytes in arrays of float32 (1048576,)",
        "in arrays of float32 (100, 100) (x3)", kind=OutOfMemoryError)
del small
mx.nd.waitall()
again = mx.nd.ones((900000,), ctx=mx.gpu(0))  # in what the small ones left, given back under pressure
assert again.sum().asscalar() == 900000 and big.sum().asscalar() == 1 << 20
del big, again
mx.nd.waitall()
free, total = mx.context.gpu_memory_info(0)
mx.gpu(0).empty_cache()
assert free > total * 0.9
""")


def test_a_kernel_that_fails() -> None:
    """Its name is told where its result is waited for; later work is done as ever."""
    simulated(BEGIN + """
from mxc.compiler.targets.cuda import simulator
compute, failing = simulator.SimulatedGpu.compute, []

def failed(self, one):
    if failing:
        raise IndexError("index 9 is out of bounds")
    compute(self, one)

simulator.SimulatedGpu.compute = failed
a = mx.nd.ones((2, 2), ctx=mx.gpu(0))
executor = mx.sym.exp(mx.sym.Variable("a"), name="e").bind(mx.gpu(0), {"a": a})
mx.nd.waitall()
failing.append(True)
executor.forward()
refused(lambda: executor.outputs[0].asnumpy(), "gpu(0): kernel exp", "failed: IndexError: index 9", "had begun")
executor.forward()
refused(executor.outputs[0].wait_to_read, "gpu(0): kernel exp", "failed: IndexError: index 9")
executor.forward()
refused(mx.nd.waitall, "gpu(0): kernel exp", "failed: IndexError: index 9")
failing.clear()
assert abs(executor.forward()[0].asnumpy()[0, 0] - np.e) < 1e-6
""")


def test_what_runs_again_is_one_graph_that_follows_its_arrays() -> None:
    simulated(BEGIN + """
from mxc.compiler.targets.cuda import simulator
begin, change, compute, calls = (*(getattr(simulator.SimulatedGpu, name) for name in ("begin", "change", "compute")),
                                 [])
simulator.SimulatedGpu.begin = lambda self, graph: (calls.append(len(graph)), begin(self, graph))
simulator.SimulatedGpu.change = lambda self, graph, number, one: (calls.append("change"),
                                                                  change(self, graph, number, one))
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(3, activation="relu"), mx.gluon.nn.Dense(2))
net.initialize(ctx=mx.gpu(0))
net.hybridize(static_alloc=True)
given = [mx.nd.array(np.full((2, 4), i), ctx=mx.gpu(0)) for i in range(4)]
results = [net(x).asnumpy() for x in given]
assert 2 in calls and "change" in calls, calls
parameters = [p.data().asnumpy() for p in net.collect_params().values()]
for x, result in zip(given, results):
    hidden = np.maximum(x.asnumpy() @ parameters[0].T + parameters[1], 0)
    np.testing.assert_allclose(result, hidden @ parameters[2].T + parameters[3], 1e-5, 1e-6)

def failed(self, one):
    raise IndexError("index 9 is out of bounds")

simulator.SimulatedGpu.compute = failed
refused(lambda: net(given[0]).asnumpy(), "gpu(0): kernel ", "failed: IndexError: index 9")
simulator.SimulatedGpu.compute = compute
np.testing.assert_array_equal(net(given[1]).asnumpy(), results[1])
""")


def test_indices_outside_are_refused() -> None:
    """As on a CPU, and in every run; what is right afterwards is computed."""
    simulated(BEGIN + """
x = mx.nd.array(np.arange(6).reshape(2, 3), ctx=mx.gpu(0))

def at(*numbers):
    return mx.nd.array(numbers, ctx=mx.gpu(0))

for _ in range(2):
    refused(lambda: mx.nd.take(x, at(0, 9), mode="raise").asnumpy(), "expected indices from 0 to 1", "got 9")
    refused(lambda: mx.nd.gather_nd(x, at(7).reshape((1, 1))).asnumpy(), "expected indices from -2 to 1", "got 7")
    assert mx.nd.take(x, at(1, 0), mode="raise").asnumpy().tolist() == [[3, 4, 5], [0, 1, 2]]
net = mx.sym.take(mx.sym.Variable("x") * 2, mx.sym.Variable("i"), mode="raise", name="taken")
executor = net.bind(mx.gpu(0), {"x": x, "i": at(0, 5)})
refused(lambda: executor.forward()[0].asnumpy(), "'taken'", "got 5")
executor.arg_dict["i"][:] = at(1, 1)
assert executor.forward()[0].asnumpy().tolist() == [[6, 8, 10]] * 2
""")


def test_a_forked_process() -> None:
    """It is told that it cannot use GPUs, and ends as ever; the parent goes on."""
    simulated(BEGIN + """
import os
a = mx.nd.ones((300, 3), ctx=mx.gpu(0)) * 2
mx.nd.waitall()
child = os.fork()
if child == 0:
    code = 1
    try:
        refused(lambda: mx.nd.zeros((2,), ctx=mx.gpu(0)), "forked", "spawn", kind=TargetError)
        refused(lambda: a.asnumpy(), "forked", kind=TargetError)
        del a
        code = 0 if (mx.nd.ones((2,)) + 1).asnumpy().sum() == 4 else 2
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert a.asnumpy().sum() == 1800
""")


def test_an_interrupted_copy() -> None:
    """An interrupt while values are copied back leaves the array as it was."""
    simulated(BEGIN + """
from mxc.compiler.targets.cuda import simulator
read, interrupts = simulator.SimulatedGpu._read, [True]

def interrupted(self, address, values):
    if interrupts:
        values[:4] = 0
        raise interrupts.pop() and KeyboardInterrupt()
    read(self, address, values)

a = mx.nd.array(np.arange(400), ctx=mx.gpu(0)) + 1
mx.nd.waitall()
simulator.SimulatedGpu._read = interrupted
refused(lambda: a.asnumpy(), kind=KeyboardInterrupt)
np.testing.assert_array_equal(a.asnumpy(), np.arange(400) + 1)
""")


def test_without_the_packages() -> None:
    """Where there is no GPU, the reason is told."""
    import pytest

    import mxc as mx
    from mxc.compiler.error import TargetError

    assert mx.context.num_gpus() == 0
    with pytest.raises(TargetError, match=r"gpu\(0\): there is none: .*(driver|packages).*use mx.cpu\(\)"):
        mx.nd.ones((2,), ctx=mx.gpu(0))


def test_memory_is_shared_with_other_libraries() -> None:
    simulated(BEGIN + """
from mxc.compiler.targets.cuda import devices

class Sent(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0].asnumpy() + 1)

@mx.operator.register("sent")
class SentProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Sent()

def there(interface, number=0):
    # the memory, as another library sees it
    view = devices.memory(number).device.view(interface["data"][0], np.dtype(interface["typestr"]).name)
    return view[:int(np.prod(interface["shape"]))].reshape(interface["shape"])

for dtype in ("float32", "float64", "float16", "int8", "int32", "bool"):
    x = mx.nd.array(np.arange(6).reshape(2, 3) % 2, ctx=mx.gpu(0), dtype=dtype)
    x = x.reshape((3, 2))
    facts = x.__cuda_array_interface__
    assert (facts["shape"], facts["version"], facts["strides"], facts["data"][1]) == ((3, 2), 3, None, False)
    np.testing.assert_array_equal(there(facts), x.asnumpy())
x = mx.nd.zeros((4,), ctx=mx.gpu(0))
twice = x * 2
memory = there(x.__cuda_array_interface__)
memory[:] = [1, 2, 3, 4]  # what others write is seen, again and again, from the host and by operators
assert x.asnumpy().tolist() == [1, 2, 3, 4] and (x * 2).asnumpy().tolist() == [2, 4, 6, 8]
memory[0] = 7
assert x.asnumpy()[0] == 7 and (x[:1] + 1).asscalar() == 8
x[:] = 5
assert memory.tolist() == [5] * 4  # at once, also what the host writes
x += 1
assert memory.tolist() == [6] * 4
x[1:3] = np.array([8, 9])
assert memory.tolist() == [6, 8, 9, 6]
mx.nd.full((2,), 3).copyto(x[2:])
assert memory.tolist() == [6, 8, 3, 3]
mx.nd.Custom(x, op_type="sent", out=x)
assert memory.tolist() == [7, 9, 4, 4]
for other in (mx.nd.ones((2,)), mx.nd.ones((2,), ctx=mx.gpu(0)).astype("bfloat16")):
    assert not hasattr(other, "__cuda_array_interface__")
""")


def test_memory_is_exchanged_by_dlpack() -> None:
    """Both ways: one array's memory is taken for another array."""
    simulated(BEGIN + """
from mxc.ndarray import NDArray
from mxc.runtime import dlpack

for dtype in ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"):
    x = mx.nd.array(np.arange(6).reshape(2, 3) % 2, ctx=mx.gpu(1), dtype=dtype).reshape((3, 2))
    assert x.__dlpack_device__() == (2, 1)
    for made in (x, x.to_dlpack_for_read(), x.to_dlpack_for_write(), x.__dlpack__(stream=1, dl_device=(2, 1))):
        taken = mx.nd.from_dlpack(made)
        assert (taken.shape, taken.dtype, taken.context) == (x.shape, x.dtype, x.context)
        np.testing.assert_array_equal(taken.astype("float32").asnumpy(), x.astype("float32").asnumpy())
x = mx.nd.ones((4,), ctx=mx.gpu(0))
taken = mx.nd.from_dlpack(x)
taken *= 10
assert x.asnumpy().tolist() == [10] * 4
taken[1:2] = 3
assert x.asnumpy().tolist() == [10, 3, 10, 10]
x[:] = 10
assert taken.asnumpy().tolist() == [10] * 4
x += 1
assert (taken + 0).asnumpy().tolist() == [11] * 4
copy = mx.nd.from_dlpack(x.__dlpack__(copy=True))
del x
taken[:] = 2
assert taken.asnumpy().tolist() == [2] * 4 and copy.asnumpy().tolist() == [11] * 4
assert mx.nd.from_dlpack(mx.nd.array(np.zeros((0, 3)), ctx=mx.gpu(0))).shape == (0, 3)
capsule = taken.to_dlpack_for_write()
mx.nd.from_dlpack(capsule)
refused(lambda: mx.nd.from_dlpack(capsule), "nobody has taken", kind=ValueError)
capsule = np.zeros((4, 2))[:, :1].__dlpack__()
dlpack._tensor(capsule).device = dlpack.CUDA
refused(lambda: mx.nd.from_dlpack(capsule), "strides (16, 8)", "copy it first", kind=ValueError)
capsule = np.zeros(2, "uint16").__dlpack__()
dlpack._tensor(capsule).device = dlpack.CUDA
refused(lambda: mx.nd.from_dlpack(capsule), "from_dlpack", "uint16", kind=ValueError)
refused(lambda: taken.__dlpack__(dl_device=(1, 0)), "on gpu(0)", "(1, 0)", kind=BufferError)
only = NDArray(taken._array, writable=False)
refused(lambda: only.__dlpack__(), "read-only", kind=BufferError)
refused(lambda: only.to_dlpack_for_write(), "read-only", kind=ValueError)
assert mx.nd.from_dlpack(only.to_dlpack_for_read()).asnumpy().tolist() == [2] * 4
""", gpus=2)
