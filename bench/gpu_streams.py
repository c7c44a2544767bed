"""The parts `overlap` and `sums` of bench/gpu.py."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.rows import REHEARSED, Check, Row, timed


def beside(name: str, nbytes: int, copy: Callable[[], object], begin: Callable[[], object]) -> Row:
    """Time a copy, computing of about as long, and both at once. begin: begins some computing, and does not wait."""
    import mxc as mx

    def many() -> None:
        for _ in range(count):
            begin()
        mx.nd.waitall()

    def both() -> None:
        for _ in range(count):
            begin()
        copy()
        mx.nd.waitall()

    count = 1
    alone = timed({"copy": lambda: (copy(), mx.nd.waitall()), "computing": many})
    count = 1 if REHEARSED else max(1, round(alone["copy"] / alone["computing"]))
    seconds = timed({"copy": lambda: (copy(), mx.nd.waitall()), "computing": many, "both": both})
    apart = seconds["copy"], seconds["computing"]
    hidden = (sum(apart) - seconds["both"]) / min(apart)
    return Row("overlap", name, ms=seconds["both"] * 1e3, note=(
        f"{nbytes / seconds['copy'] / 1e9:.1f} GB/s; apart: the copy {apart[0] * 1e3:.3f} ms, computing "
        f"{apart[1] * 1e3:.3f} ms; {hidden:.0%} of the shorter is hidden"))


def overlapped() -> Iterator[Check]:
    """Copies to the GPU, from pageable and from page-locked memory, and back, beside kernels; and steps of training on
    batches that come from the host, beside steps on one that is there."""
    import numpy as np

    import mxc as mx

    there, size = mx.gpu(0), 20_000 if REHEARSED else 1 << 26
    x = mx.sym.Variable("x")
    executor = mx.sym.sin(mx.sym.exp(x * 0.5)).bind(there, {"x": mx.nd.ones((size,), ctx=there)}, grad_req="null")
    right = float(np.sin(np.exp(0.5)))

    def checked(row: Row, *values: Any) -> Row:
        if any(abs(float(value) - wanted) > 1e-4 for value, wanted in values):
            row.verdict = "WRONG"
        return row

    def to(place: Any, name: str) -> Row:
        source, got = mx.nd.full((size,), 7, ctx=place), list[Any]()
        row = beside(name, 4 * size, lambda: got.__setitem__(slice(None), [source.as_in_context(there)]),
                     executor.forward)
        return checked(row, (got[0][size - 1].asscalar(), 7), (executor.outputs[0][0].asscalar(), right))

    def back(name: str) -> Row:
        source, got = mx.nd.full((size,), 7, ctx=there), list[Any]()
        target = mx.nd.zeros((size,), ctx=mx.cpu_pinned())
        row = beside(name, 4 * size, lambda: got.__setitem__(slice(None), [source.copyto(target)]), executor.forward)
        return checked(row, (target[size - 1].asscalar(), 7), (executor.outputs[0][0].asscalar(), right))

    for name, place in (("to the GPU", mx.cpu()), ("to the GPU, page-locked", mx.cpu_pinned())):
        yield name, lambda name=name, place=place: to(place, name)
    yield "back, page-locked", lambda: back("back, page-locked")
    yield "batches of a loader", fed


def fed() -> Row:
    """Steps of training on batches from a DataLoader, beside steps on a batch that is on the GPU."""
    import numpy as np

    import mxc as mx
    from mxc import autograd, gluon

    there, rows, width, steps = mx.gpu(0), *((4, 8, 2) if REHEARSED else (4096, 4096, 16))
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(width // 2, activation="relu"), gluon.nn.Dense(8))
    net.initialize(mx.init.Xavier(), ctx=there)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4})
    data = gluon.data.ArrayDataset(np.random.default_rng(0).random((rows * steps, width), np.float32))
    loader = gluon.data.DataLoader(data, rows, pin_memory=True)
    batches = list(loader)

    def step(batch: Any) -> None:
        with autograd.record():
            loss = mx.nd.square(net(batch)).mean()
        loss.backward()
        trainer.step(1)

    def over(given: Any) -> None:
        for batch in given:
            step(batch.as_in_context(there))
        mx.nd.waitall()

    resident = batches[0].as_in_context(there)
    seconds = timed({"there": lambda: over([resident] * steps), "fed": lambda: over(batches),
                     "copies": lambda: ([b.as_in_context(there) for b in batches], mx.nd.waitall())})
    each = {name: 1e3 * value / steps for name, value in seconds.items()}
    return Row("overlap", "batches of a loader", ms=each["fed"], note=(
        f"a step; on a batch that is there {each['there']:.3f} ms, the copy alone {each['copies']:.3f} ms"))


def summed() -> Iterator[Check]:
    """Gradients of ResNet-50's number summed over all GPUs by a store of type device, by NCCL and by copies."""
    import mxc as mx
    from mxc.runtime import device_sums

    places = [mx.gpu(i) for i in range(mx.context.num_gpus())]
    numbers = range(len(places))
    if len(places) < 2:
        yield "NCCL", lambda: Row("sums", "NCCL", "not reached", note="there is one GPU")
        return

    def row(name: str, is_used: bool) -> Row:
        if is_used and not device_sums.is_there(numbers):
            from mxc.compiler import targets

            return Row("sums", name, "not reached", note=targets.gpus().collectives().fault())
        keys, size = (2, 9) if REHEARSED else (160, 160_000)
        store, there = mx.kv.create("device"), device_sums.is_there
        device_sums.is_there = there if is_used else lambda numbers: False
        try:
            store.init([*range(keys)], [mx.nd.zeros((size,), ctx=places[0]) for _ in range(keys)])
            given = [[mx.nd.ones((size,), ctx=place) for place in places] for _ in range(keys)]

            def run() -> None:
                store.pushpull([*range(keys)], given)
                for arrays in given:
                    for array in arrays:
                        array *= 1 / len(places)
                mx.nd.waitall()

            seconds = timed({"sum": run})["sum"]
            right = all(abs(arrays[-1][size - 1].asscalar() - 1) < 1e-4 for arrays in given)
        finally:
            device_sums.is_there = there
        return Row("sums", name, "ok" if right else "WRONG", seconds * 1e3, note=(
            f"{keys} arrays of {4 * size:,} bytes on each of {len(places)} GPUs, {4 * keys * size / seconds / 1e9:.1f} "
            "GB/s; with a multiplication each"))

    for name, is_used in (("NCCL", True), ("copies and sums", False)):
        yield name, lambda name=name, is_used=is_used: row(name, is_used)
