"""Copies beside computing, on simulated GPUs whose streams do their work as late as they can, or as soon: either way
values are what they are in one order. All but the smallest arrays go in pieces of a few bytes."""
from __future__ import annotations

import pytest
from cuda_runs import simulated

BEGIN = """
import numpy as np
import mxc as mx
from mxc.compiler.targets.cuda import allocator, devices, pinned, simulator, staging
from mxc.compiler.targets.cuda.device import Stream

allocator.IN_ORDER, staging.PIECE = 64, 512  # bytes
simulator.PROMPT.clear()
simulator.PROMPT.update(Stream[name] for name in PROMPT)
there = mx.gpu(0)

def waiting(stream, number=0):
    # pieces of work that the stream has yet to do, without events
    work = devices.memory(number).device._streams[stream]
    return sum(callable(each) for each in work)
"""
PROMPT = {"late": (), "sends first": ("SEND",), "computes first": ("COMPUTE",), "copies first": ("FETCH", "SEND")}


def each_way(*short: str) -> pytest.MarkDecorator:
    """In each of these ways; all but the short ones are left to `make test-all`."""
    return pytest.mark.parametrize("prompt", [
        pytest.param(prompt, id=name, marks=[] if name in short else [pytest.mark.slow])
        for name, prompt in PROMPT.items()])


def run(prompt: tuple[str, ...], program: str, gpus: int = 1) -> str:
    return simulated(f"PROMPT = {prompt!r}\n{BEGIN}{program}", gpus)


@each_way("late", "sends first")
def test_arrays_that_are_written_again_and_again(prompt: tuple[str, ...]) -> None:
    """Memory that is overwritten by the host, computed with, read, let go of and used by other arrays."""
    run(prompt, """
rng = np.random.default_rng(0)
batches = [rng.random((10, 30)).astype("f") for _ in range(8)]
x, total, kept = mx.nd.zeros((10, 30), ctx=there), mx.nd.zeros((10, 30), ctx=there), []
for i, batch in enumerate(batches):
    x[:] = batch                                   # while the last one may be computed with
    total += x
    fresh = mx.nd.array(batch, ctx=there)          # in memory that was let go of while it was used
    kept.append(fresh * 2 + x[2:3])
    unused = mx.nd.array(batch + 7, ctx=there)     # whose memory kernels write next
    del unused
    here = mx.nd.array(batch)
    here.copyto(x)
    here[:] = -1                                   # once it is copied, it is the host's
    kept.append(x + 0)
    batch[:] = np.nan                              # so is NumPy's memory
    if i % 3 == 1:
        kept.append(mx.nd.array(kept[-1].asnumpy() * 2, ctx=there) + kept[-2])
rng = np.random.default_rng(0)
batches = [rng.random((10, 30)).astype("f") for _ in range(8)]
wanted, right = sum(batches), []
for i, batch in enumerate(batches):
    right += [batch * 2 + batch[2:3], batch]
    if i % 3 == 1:
        right.append(right[-1] * 2 + right[-2])
for found, value in zip([total, *kept], [wanted, *right], strict=True):
    np.testing.assert_allclose(found.asnumpy(), value, 1e-6)
""")


@each_way("late", "sends first")
def test_memory_that_is_let_go_of(prompt: tuple[str, ...]) -> None:
    """It is used again at once: by a copy, while a kernel has yet to read it, and by a kernel, while a copy to it that
    nobody wants has yet to come. Each size is one of which no other array is kept."""
    run(prompt, """
from mxc.runtime import engine
allocator.IN_ORDER, staging.PIECE = 1024, 1 << 16  # no copy waits for a block
a = mx.nd.array(np.full((11, 300), 2), ctx=there)
with mx.autograd.train_mode():  # so that it begins at once
    b = a * 3
    engine.wait_to_read(b._array.variable)
place = a._array.address
del a
c = mx.nd.array(np.full((11, 300), 5), ctx=there)
assert c._array.address == place and (b.asnumpy() == 6).all() and (c.asnumpy() == 5).all()
source = mx.nd.array(np.full((23, 300), 4), ctx=there)
unused = mx.nd.array(np.full((23, 300), 2), ctx=there)
place = unused._array.address
del unused
with mx.autograd.train_mode():
    d = source * 3
    engine.wait_to_read(d._array.variable)
later = mx.nd.array(np.full((43, 300), 1), ctx=there) + 0
assert d._array.address == place and (later.asnumpy() == 1).all() and (d.asnumpy() == 12).all()
""")


@each_way("late")  # other tests do the sends first
def test_training(prompt: tuple[str, ...]) -> None:
    """Steps of a trainer on batches that come while the last step may run, and of an executor whose arrays are written
    again in each step: what comes out is what it is on the CPU."""
    run(prompt, """
from mxc import autograd, gluon

def trained(place):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(12, activation="relu", in_units=9), gluon.nn.Dense(3, in_units=12))
    net.initialize(ctx=mx.cpu())
    rng = np.random.default_rng(1)
    for param in net.collect_params().values():
        param.set_data(mx.nd.array(rng.uniform(-0.5, 0.5, param.shape)))
    net.collect_params().reset_ctx(place)
    net.hybridize()
    steps = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    loss, losses = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for batch in gluon.data.DataLoader(gluon.data.ArrayDataset(rng.random((30, 9)).astype("f"),
                                                               rng.integers(0, 3, 30).astype("f")), 5, pin_memory=True):
        x, y = (part.as_in_context(place) for part in batch)
        with autograd.record():
            losses.append(loss(net(x), y))
        losses[-1].backward()
        steps.step(5)
    return [each.asnumpy() for each in (*losses, *(p.data(place) for p in net.collect_params().values()))]

def bound(place):
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="f"), name="softmax")
    executor = net.simple_bind(place, data=(6, 20))
    rng = np.random.default_rng(2)
    found = []
    for _ in range(4):
        for name, array in executor.arg_dict.items():
            array[:] = rng.integers(0, 4, array.shape) if "label" in name else rng.random(array.shape)
        executor.forward(is_train=True)
        executor.backward()
        found += [executor.outputs[0].copy(), *(g.copy() for n, g in executor.grad_dict.items() if "label" not in n)]
    return [each.asnumpy() for each in found]

for program in (trained, bound):
    for found, right in zip(program(there), program(mx.cpu()), strict=True):
        np.testing.assert_allclose(found, right, 1e-4, 1e-5)
""")


def test_work_begins_before_earlier_work_is_done() -> None:
    """The next batch's copy is done while the step before has not run; a value that is read waits for what it needs."""
    run(("SEND",), """
allocator.IN_ORDER, staging.PIECE = 1024, 1 << 14  # what kernels are told is less, and waits for no block
x = mx.nd.array(np.ones((20, 20)), ctx=there)
from mxc.runtime import engine
with mx.autograd.train_mode():  # elsewhere small work is gathered first
    y = mx.nd.dot(x, x)
    first = (y * 2).sum()
    engine.wait_to_read(first._array.variable)
    begun = waiting(Stream.COMPUTE)
    assert begun >= 2, "it has begun, and is not done"
    following = mx.nd.array(np.full((40, 20), 3), ctx=there)  # in memory that nobody used
    assert not waiting(Stream.SEND) and waiting(Stream.COMPUTE) == begun, "its copy is done, and nothing was computed"
    second = following[:20] + y
    assert y.asnumpy()[0, 0] == 20 and 0 < waiting(Stream.COMPUTE) < begun + 1, "what comes behind y has not run"
assert second.asnumpy()[0, 0] == 23 and first.asscalar() == 16000
mx.nd.waitall()
assert not waiting(Stream.COMPUTE)
y += 1
y.wait_to_read()
assert not waiting(Stream.COMPUTE)
""")


def test_memory_that_others_see_is_waited_for() -> None:
    """When a call returns, what it writes to memory that is shared is there; so it is where nothing is queued."""
    run((), """
x = mx.nd.zeros((10, 30), ctx=there)
facts = x.__cuda_array_interface__
view = devices.memory(0).device.view(facts["data"][0], "float32")[:300]
x += 4
assert (view == 4).all() and not waiting(Stream.COMPUTE)
x[:] = np.full((10, 30), 5)
y = x + 1
assert (view == 5).all()
mx.nd.waitall()
from mxc.runtime import engine
engine._engine.naive = True
z = y + 1
assert not waiting(Stream.COMPUTE) and z.asnumpy()[0, 0] == 7
""")


def test_page_locked_arrays() -> None:
    """Those of cpu_pinned are copied without blocks, as long as this process does not fork."""
    run(("SEND",), """
import os
from mxc.runtime import storage
storage.LOCKED = 512
before = mx.nd.ones((20, 20), ctx=mx.cpu_pinned())  # this process uses no GPU yet
x = mx.nd.zeros((20, 20), ctx=there)
device, blocks = devices.memory(0).device, []
make = device.staging
device.staging = lambda nbytes: blocks.append(nbytes) or make(nbytes)
here = mx.nd.array(np.arange(400).reshape(20, 20), ctx=mx.cpu_pinned())
assert len(device.locked) == 1 and here._array.address in device.locked
there_too = here.as_in_context(there)
assert not blocks and there_too.asnumpy()[3, 1] == 61
blocks.clear()
back = mx.nd.zeros((20, 20), ctx=mx.cpu_pinned())
(there_too + 1).copyto(back)
assert not blocks and back.asnumpy()[3, 1] == 62
del blocks[:]
devices.memory(0).release_free()
before.copyto(x)
assert blocks and x.asnumpy().sum() == 400
child = os.fork()
if child == 0:
    os._exit(0 if not device.locked and here.asnumpy()[3, 1] == 61 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not device.locked and not devices.memory(0).staging._made
del blocks[:]
here += 1
here.copyto(x)
assert blocks and x.asnumpy()[3, 1] == 62
again = mx.nd.array(np.ones((20, 20)), ctx=mx.cpu_pinned())
assert again._array.address in device.locked
del again, here, back, before
mx.cpu_pinned().empty_cache()
assert not device.locked
""")


def test_without_page_locked_memory_and_at_exit() -> None:
    said = run(("SEND",), """
import atexit, warnings
memory = devices.memory(0)
memory.device.staging = lambda nbytes: None
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    x = mx.nd.array(np.arange(400).reshape(20, 20), ctx=there)
    y = mx.nd.array(np.arange(400).reshape(20, 20), ctx=there) + x
    assert y.asnumpy()[3, 1] == 122
assert ["locks no pages" in str(each.message) for each in told] == [True], told
del memory.device.staging
mx.gpu(0).empty_cache()
assert (y + mx.nd.array(np.ones((20, 20)), ctx=there)).asnumpy()[3, 1] == 123 and memory.staging._made
try:
    mx.nd.zeros((1 << 50,))
except mx.MXNetError as error:
    assert "out of memory" in str(error)
assert not memory.staging._made, "the host's memory was short"
assert (y + mx.nd.array(np.ones((20, 20)), ctx=there)).asnumpy()[3, 1] == 123 and memory.staging._made
devices._close()  # as at exit, before the engine has done its last work
assert not memory.staging._made
assert (y + mx.nd.array(np.ones((20, 20)), ctx=there)).asnumpy()[3, 1] == 123 and not memory.staging._made
print("done")
""")
    assert said == "done\n"
