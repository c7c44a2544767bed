"""Reductions to few points in two kernels."""
from __future__ import annotations

import math

import numpy as np
import pytest

from mxc.compiler.kernel import interpret
from mxc.compiler.kernel.canonical import lanes
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, acc, apply, axis, const, load
from mxc.compiler.lowering import split_reduction as module
from mxc.compiler.lowering.launches import Storage
from mxc.compiler.targets.preferences import Reductions

FEW, LONG, PART = 16, 1 << 15, 1 << 13


def two_sums(kernel, storages):
    return module.two_sums(Reductions(FEW, LONG, PART), kernel, storages)


def flat(shape: tuple[int, ...]):
    position = const(0, "index")
    for i, extent in enumerate(shape):
        position = apply("add", apply("mul", position, const(extent, "index")), axis(i))
    return position


def reduction(domain: tuple[int, ...], reduce: tuple[int, ...], combine: str = "sum", final=None, dtype="float32"):
    """(kernel, storages): out[domain] = final(combine of x[domain + reduce])."""
    body = load(0, flat((*domain, *reduce)), dtype)
    result = acc(0, "int64" if combine.startswith("arg") else dtype)
    kernel = LoopKernel("r", (dtype, result.dtype), domain, reduce, (Accumulator(combine, body),),
                        (Store(1, flat(domain), final(result) if final else result),))
    return kernel, [Storage("argument", dtype, (*domain, *reduce), "x"),
                    Storage("output", result.dtype, domain, "0")]


def run(parts, x: np.ndarray) -> np.ndarray:
    memory: dict[Storage, np.ndarray] = {}
    for kernel, storages in parts:
        arrays = []
        for storage in storages:
            if storage.pool == "argument":
                memory[storage] = x.ravel()
            arrays.append(memory.setdefault(storage, np.zeros(max(1, math.prod(storage.shape)), storage.dtype)))
        interpret.run(kernel, arrays)
    return next(a for s, a in memory.items() if s.pool == "output")


@pytest.mark.parametrize("combine", ("sum", "max", "min", "prod"))
@pytest.mark.parametrize(("domain", "reduce"), [((), (LONG,)), ((2,), (1, LONG)), ((3,), (64, 1024)),
                                                ((), (LONG + 1,)), ((1, 2), (5, 3, LONG))])
def test_two_kernels_give_the_same(combine, domain, reduce):
    kernel, storages = reduction(domain, reduce, combine, lambda v: apply("add", v, const(1.0, "float64")), "float64")
    parts = two_sums(kernel, storages)
    x = 1 + np.random.default_rng(0).uniform(-1, 1, (*domain, *reduce)) / (1 << 16)
    np.testing.assert_allclose(run(parts, x), run([(kernel, storages)], x), 1e-12)
    assert len(parts) == 2
    (first, one), (second, two) = parts
    partial = next(s for s in one if s.pool == "arena")
    assert partial in two and math.prod(partial.shape) == math.prod(first.domain)
    assert math.prod(first.reduce) * math.prod(first.domain) == math.prod(domain) * math.prod(reduce)
    assert math.prod(second.domain) == math.prod(domain)


def test_lanes_stay_last():
    """A sum over the first axis of (LONG, 8): its parts are contiguous."""
    body = load(0, apply("add", apply("mul", axis(1), const(8, "index")), axis(0)), "float64")
    kernel = LoopKernel("r", ("float64", "float64"), (8,), (LONG,), (Accumulator("sum", body),),
                        (Store(1, axis(0), acc(0, "float64")),))
    storages = [Storage("argument", "float64", (LONG, 8), "x"), Storage("output", "float64", (8,), "0")]
    (first, one), (second, two) = two_sums(kernel, storages)
    assert lanes(first) == 8 and first.domain[-1] == 8
    x = np.random.default_rng(0).uniform(-1, 1, (LONG, 8))
    np.testing.assert_allclose(run([(first, one), (second, two)], x), x.sum(0), 1e-9)


WHOLE = {
    "short": reduction((), (LONG - 1,)),
    "many points": reduction((FEW,), (LONG,)),
    "a position depends on the order": reduction((), (LONG,), "argmax"),
    "no reduction": (LoopKernel("m", ("float32",), (4,), (), (), (Store(0, axis(0), const(1.0, "float32")),)),
                     [Storage("output", "float32", (4,), "0")]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_left_whole(name):
    kernel, storages = WHOLE[name]
    assert two_sums(kernel, storages) == [(kernel, storages)]


def test_kernels_with_a_second_sweep_are_left_whole():
    kernel, storages = reduction((), (LONG,))
    spread = Store(2, axis(0), apply("sub", load(0, axis(0), "float32"), acc(0, "float32")))
    again = LoopKernel("s", ("float32",) * 3, (), (LONG,), kernel.accumulators, (*kernel.stores, spread))
    assert len(two_sums(again, [*storages, Storage("output", "float32", (LONG,), "1")])) == 1
    second = Accumulator("sum", apply("sub", kernel.accumulators[0].body, acc(0, "float32")))
    twice = LoopKernel("t", kernel.buffers, (), (LONG,), (*kernel.accumulators, second), kernel.stores)
    assert len(two_sums(twice, storages)) == 1


def test_parts_do_not_depend_on_threads_and_are_of_a_size(monkeypatch):
    for threads in ("1", "64"):
        monkeypatch.setenv("MXC_NUM_THREADS", threads)
        (first, _), _ = two_sums(*reduction((), (LONG * 8,)))
        assert (first.domain, first.reduce) == ((LONG * 8 // PART,), (PART,))
