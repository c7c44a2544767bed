"""Sums over several GPUs by NCCL, for which a stand-in comes in the simulator; without it they are added up one by one.
On GPUs it is unseen."""
from __future__ import annotations

import pytest
from cuda_runs import simulated
from test_gpu_networks import BEGIN, TRAINING

STAND_IN = """
import nccl_stand_in as nccl
from mxc.compiler.targets.cuda import collectives
collectives.bindings = lambda: nccl
"""
ARRAYS = """
import numpy as np
import mxc as mx
from cuda_runs import refused

def on_gpus(value, dtype="float32"):
    return [mx.nd.array(np.full((3, 5), value + i), ctx=mx.gpu(i), dtype=dtype) for i in range(3)]
"""


def test_a_store_sums_many_arrays_at_once() -> None:
    simulated(STAND_IN + ARRAYS + """
store = mx.kv.create("device")
dtypes = ("float32", "float16", "int32")
store.init([0, 1, 2], [mx.nd.zeros((3, 5), dtype=dtype) for dtype in dtypes])
given = [on_gpus(i, dtype) for i, dtype in enumerate(dtypes)]
store.pushpull([0, 1, 2], given)
assert nccl.calls == ["comm_init_all", "group_start", *["all_reduce"] * 9, "group_end 9"], nccl.calls
for i, arrays in enumerate(given):
    for place, array in enumerate(arrays):
        assert array.context == mx.gpu(place) and array.dtype == np.dtype(dtypes[i])
        assert (array.asnumpy() == 3 * i + 3).all()
out = mx.nd.zeros((3, 5))
store.pull(1, out, ignore_sparse=False)
assert (out.asnumpy() == 6).all(), "the store has the sum"
del nccl.calls[:]
pushed = on_gpus(1)
store.push(0, pushed)
assert nccl.calls == ["group_start", *["reduce"] * 3, "group_end 3"], nccl.calls
assert [int(array.asnumpy()[0, 0]) for array in pushed] == [1, 2, 3], "what is pushed stays as it is"
del nccl.calls[:]
targets = [*on_gpus(0), mx.nd.zeros((3, 5))]
store.pull(0, targets)
store.pull(0, targets[:3])
assert all((array.asnumpy() == 6).all() for array in targets)
assert nccl.calls == ["group_start", *["broadcast"] * 3, "group_end 3"], nccl.calls
twice = store.push(0, [*on_gpus(1), mx.nd.ones((3, 5), ctx=mx.gpu(0))])  # two on one GPU, which NCCL does not take
store.pull(0, out)
assert (out.asnumpy() == 7).all() and nccl.calls[-1] == "group_end 3"
collectives.MOST = 6
store.pushpull([0, 1, 2], given)
assert nccl.calls[-6:] == ["group_end 6", "group_start", *["all_reduce"] * 3, "group_end 3"], nccl.calls
assert (given[2][1].asnumpy() == 27).all()
""", gpus=3)


def test_an_update_is_where_the_weight_is() -> None:
    simulated(ARRAYS + """
places = (mx.gpu(0), mx.gpu(1), mx.cpu())
for home in places:
    store = mx.kv.create("device")
    store.init("w", mx.nd.ones((2,), ctx=home))
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, wd=0))
    out = [mx.nd.zeros((2,), ctx=place) for place in places]
    for i, place in enumerate(places):
        store.push("w", mx.nd.ones((2,), ctx=place))
        store.pull("w", out)
        assert all((array.asnumpy() == 0.5 - 0.5 * i).all() for array in out), (home, place)
""", gpus=2)


def test_what_nccl_refuses_is_an_error() -> None:
    simulated(STAND_IN + ARRAYS + """
store = mx.kv.create("device")
store.init(0, mx.nd.zeros((3, 5)))
nccl.failing = "comm_init_all"
given = on_gpus(0)
store.pushpull(0, given)
refused(given[1].asnumpy, "all-reduce", "NCCL cannot connect gpu(0), gpu(1), gpu(2)", "unhandled cuda error")
nccl.failing = ""
given = on_gpus(0)
store.pushpull(0, given)
assert (given[1].asnumpy() == 3).all()
nccl.failing = "all_reduce"
store.pushpull(0, given)
refused(given[2].asnumpy, "NCCL cannot begin all-reduce on gpu(0), gpu(1), gpu(2)", "unhandled cuda error")
assert not nccl._groups
nccl.failing = ""
nccl._asked.clear()
given = on_gpus(0)
store.pushpull(0, given)
mx.nd.waitall()
from mxc.compiler.targets.cuda import devices
devices.collective_group((0, 1, 2))._parts[1].error = 3
given = on_gpus(0)
store.pushpull(0, given)
refused(given[2].asnumpy, "NCCL has failed on gpu(0), gpu(1), gpu(2): error 3")
""", gpus=3)


def test_a_trainer() -> None:
    """It asks for all gradients in one group, whether the store updates the parameters or the trainer does."""
    simulated(STAND_IN + BEGIN + TRAINING + """
agrees(trainer)
assert nccl.calls.count("group_end 12") == 6 and "all_reduce" not in nccl.calls, nccl.calls
del nccl.calls[:]
made = gluon.Trainer
gluon.Trainer = lambda *given, **more: made(*given, **more, update_on_kvstore=False)
agrees(trainer)
assert nccl.calls.count("group_end 12") == 3 and "all_reduce" in nccl.calls and "reduce" not in nccl.calls, nccl.calls
""", gpus=2)


@pytest.mark.slow
def test_a_module() -> None:
    simulated(STAND_IN + BEGIN + TRAINING + """
agrees(module)
assert nccl.calls.count("group_end 8") >= 8 and {"reduce", "broadcast"} <= {*nccl.calls}, nccl.calls
""", gpus=2)
