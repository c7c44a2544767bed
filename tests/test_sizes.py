"""Large programs: what is made of them grows with their size at most, no kernel grows with it, and values are right.

What is counted: nodes of graphs, launches, codes, and of the kernels' values and texts. No seconds.
"""
from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import size_forms
from size_forms import FORMS, START

import mxc as mx
from mxc.compiler import planning
from mxc.compiler.kernel import interpret, ir
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import CallKernel, LoopKernel
from mxc.compiler.lowering.copy_kernels import placing_kernel
from mxc.compiler.lowering.launches import Storage
from mxc.compiler.lowering.plan_memory import Interval, largest_live_set, place
from mxc.compiler.passes import infer_dtype
from mxc.compiler.targets.cpu.target import cpu_target

VALUES = 2500  # of the largest kernel that any form needs, and lines of its text
LINES = 3500
SMALL, LARGE = 32, 96
FAST = ("chain", "choices", "rotated", "terms", "stacked_multiples")  # whose gradients are looked at each time


@dataclass
class Counts:
    """launches: of all; codes: different ones; values, lines: of the largest kernel, and the sums over all codes."""

    launches: int
    codes: int
    most_values: int
    most_lines: int
    values: int
    lines: int


def counted(symbol, args: dict[str, np.ndarray], train: bool) -> Counts:
    target = cpu_target()
    planned = planning.plan_graph(symbol.graph, {name: a.shape for name, a in args.items()}, {},
                                  dict.fromkeys(args, "write") if train else {}, train, target, True)
    kernels = [k for k in planned.kernels.values() if isinstance(k, LoopKernel | CallKernel)]
    values = [sum(1 for _ in ir.walk(kernel.roots())) for kernel in kernels]
    lines = [target.source(kernel).count("\n") for kernel in kernels if isinstance(kernel, LoopKernel)]
    return Counts(len(planned.plan.steps), len(planned.kernels), max(values, default=0), max(lines, default=0),
                  sum(values), sum(lines))


@pytest.mark.parametrize(("name", "train"), [
    *((name, False) for name in FORMS),
    *(pytest.param(name, True, marks=() if name in FAST else pytest.mark.slow) for name in FORMS)])
def test_growth(name, train):
    """Three times as large makes three times as much at most, and no kernel is larger than a bound."""
    small, large = (counted(*FORMS[name](n)[:2], train) for n in (SMALL, LARGE))
    assert large.most_values <= VALUES and large.most_lines <= LINES, large
    growth = LARGE / SMALL
    for what in ("launches", "codes", "values", "lines"):
        # what a bound has not cut yet is made in one piece: a few kernels' worth is no growth
        allowed = {"launches": 60, "codes": 40, "values": 2 * VALUES, "lines": 2 * LINES}[what]
        assert getattr(large, what) <= growth * getattr(small, what) + allowed, (what, small, large)


def checked(name: str, n: int) -> None:
    symbol, args, expected = FORMS[name](n)
    found = symbol.eval(ctx=mx.cpu(), **{k: mx.nd.array(v) for k, v in args.items()})
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("n", [1, 30])
def test_values(name, n):
    checked(name, n)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("n", [1000, 5000])
def test_values_of_large_ones(name, n):
    checked(name, n)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "terms", "rotated", "stacked_multiples", "parts"])
def test_ten_thousand(name):
    checked(name, 10_000)


def _trained(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of z = z x + 0.5, n times, and NumPy's."""
    symbol, _, _ = size_forms.chain(n)
    executor = symbol.simple_bind(mx.cpu(), x=START.shape)
    executor.arg_dict["x"][:] = START
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones(START.shape)])
    return executor.grad_dict["x"].asnumpy(), _slope(n)


def _slope(n: int) -> np.ndarray:
    z, slope, x = START.astype("float64"), np.ones(START.shape), START.astype("float64")
    for _ in range(n):
        z, slope = z * x + 0.5, slope * x + z
    return slope


@pytest.mark.parametrize("n", [30, *(pytest.param(n, marks=pytest.mark.slow) for n in (970, 10_000))])
def test_gradient_of_a_long_chain(n):
    np.testing.assert_allclose(*_trained(n), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [24, 202, 1500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_sum_of_many_arrays(n, dtype):
    """Added one after the other, as MXNet does: the same bits for small and for large arrays, called and in graphs."""
    values = [np.full((3,), (i % 11 - 5) * (0.3 if dtype == "float32" else 1), dtype) for i in range(n)]
    expected = values[0]
    for each in values[1:]:
        expected = expected + each
    arrays = [mx.nd.array(v, dtype=dtype) for v in values]
    assert (mx.nd.add_n(*arrays).asnumpy() == expected).all()
    names = [mx.sym.Variable(f"v{i}") for i in range(n)]
    found, = mx.sym.add_n(*names).eval(ctx=mx.cpu(), **{f"v{i}": a for i, a in enumerate(arrays)})
    assert (found.asnumpy() == expected).all() and found.dtype == arrays[0].dtype


def test_sum_of_many_large_arrays():
    arrays = [mx.nd.full((1 << 18,), 0.1 * (i % 3)) for i in range(50)]
    expected = np.float32(0)
    for i in range(50):
        expected = expected + np.float32(0.1 * (i % 3))
    assert (mx.nd.add_n(*arrays).asnumpy() == expected).all()


@pytest.mark.parametrize("n", [202, pytest.param(10_000, marks=pytest.mark.slow)])
def test_recorded_loop(n):
    """A weight that every step of a recorded loop uses; the graph is freed afterwards."""
    rng = np.random.default_rng(1)
    x = mx.nd.array(rng.standard_normal((n, 2, 3)))
    W, U, c = (mx.nd.array(rng.standard_normal(shape) / 4) for shape in ((4, 3), (4, 4), (1, 4)))
    for each in (W, U, c):
        each.attach_grad()
    with mx.autograd.record():
        h = mx.nd.zeros((2, 4))
        for t in range(n):
            h = mx.nd.tanh(mx.nd.dot(x[t], W.T) + mx.nd.dot(h, U.T) + c)
    h.backward()
    states, flows = [np.zeros((2, 4))], np.ones((2, 4))
    given = [a.asnumpy().astype("float64") for a in (x, W, U, c)]
    for t in range(n):
        states.append(np.tanh(given[0][t] @ given[1].T + states[-1] @ given[2].T + given[3]))
    dW, dU, dc = np.zeros((4, 3)), np.zeros((4, 4)), np.zeros((1, 4))
    for t in reversed(range(n)):
        inner = flows * (1 - states[t + 1] ** 2)
        dW, dU, dc = dW + inner.T @ given[0][t], dU + inner.T @ states[t], dc + inner.sum(0, keepdims=True)
        flows = inner @ given[2]
    for array, expected in ((W, dW), (U, dU), (c, dc)):
        np.testing.assert_allclose(array.grad.asnumpy(), expected, rtol=1e-3, atol=1e-4)


def test_gradient_of_a_long_gradient():
    """create_graph over 300 recorded steps."""
    x = mx.nd.array([0.5, -0.25])
    x.attach_grad()
    with mx.autograd.record():
        z = x
        for _ in range(300):
            z = z * x + 0.5
        slope, = mx.autograd.grad(z, x, create_graph=True)
        total = slope.sum()
    total.backward()
    at = x.asnumpy().astype("float64")
    np.testing.assert_allclose(slope.asnumpy(), 0.5 / (1 - at) ** 2, rtol=1e-4)  # the limit is 0.5 / (1 - x)
    np.testing.assert_allclose(x.grad.asnumpy(), 1 / (1 - at) ** 3, rtol=1e-4)


@pytest.mark.parametrize("n", [5000])
def test_a_recorded_loop_is_let_go(n):
    """Tapes of thousands of steps go without a call for each step on the stack."""
    x = mx.nd.ones((3,))
    x.attach_grad()
    with mx.autograd.record():
        z = x
        for _ in range(n):
            z = z * 0.5 + x
    value = z.asnumpy()
    del z
    np.testing.assert_allclose(value, 2, rtol=1e-6)


@pytest.mark.parametrize("call", [
    lambda arrays: mx.nd.concat(*arrays, dim=0), lambda arrays: mx.nd.concatenate(arrays),
    lambda arrays: mx.nd.stack(*arrays).reshape((-1,))])
def test_joins_compile_nothing(call, monkeypatch):
    """Called joins and divisions of many arrays are NumPy's: no code for each number of arrays."""
    monkeypatch.setattr("mxc.runtime.eager.compiled", lambda *args: pytest.fail("compiled"))
    for n in (50, 61):
        arrays = [mx.nd.full((3000,), i) for i in range(n)]
        assert (call(arrays).asnumpy() == np.repeat(np.arange(n), 3000)).all()
    parts = mx.nd.split(mx.nd.array(np.arange(180_000)), num_outputs=60, axis=0)
    assert (parts[59].asnumpy() == np.arange(177_000, 180_000)).all()


def test_copies_to_a_place_are_canonical():
    """They need not be brought to the canonical form one by one."""
    shapes = [(1,), (5,), (2, 3), (1, 3), (2, 1), (1, 1), (2, 3, 4), (1, 3, 1), (2, 1, 4), (3, 1, 1)]
    for shape in shapes:
        for joined in range(len(shape)):
            for start, extent in ((0, shape[joined]), (0, 9), (1, 9), (4, 9)):
                whole = (*shape[:joined], extent, *shape[joined + 1:])
                kernel = placing_kernel("float32", shape, whole, joined, start, "write")
                assert canonical(kernel) == kernel
                part, result = np.arange(np.prod(shape), dtype=np.float32), np.zeros(np.prod(whole), np.float32)
                interpret.run(kernel, [part, result])
                place = (slice(None),) * joined + (slice(start, start + shape[joined]),)
                assert (result.reshape(whole)[place] == part.reshape(shape)).all() and result.sum() == part.sum()


@pytest.mark.parametrize("mode", ["write", "add"])
def test_wide_join_as_gradient(mode):
    """The gradient of an array that is divided into many is a join of many; its parts may be missing."""
    n = 40
    x = mx.sym.Variable("x")
    found = list(mx.sym.SliceChannel(x, num_outputs=n, axis=1))
    symbol = mx.sym.Group([found[i] * float(i) for i in range(0, n, 2)])
    executor = symbol.simple_bind(mx.cpu(), x=(3, n), grad_req=mode)
    executor.grad_dict["x"][:] = 1
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((3, 1))] * len(executor.outputs))
    expected = np.where(np.arange(n) % 2, 0, np.arange(n)) + (mode == "add")
    assert (executor.grad_dict["x"].asnumpy() == expected).all()


def test_methods_of_a_deep_symbol():
    """Listing, inference, JSON, copies and composition of 2000 steps."""
    symbol, _, _ = size_forms.chain_of_other_numbers(2000)
    assert symbol.list_arguments() == ["x"]
    assert len(symbol.get_internals().list_outputs()) == 4001
    text = symbol.tojson()
    again = mx.sym.load_json(text)
    assert again.tojson() == text == pickle.loads(pickle.dumps(symbol)).tojson() == copy.deepcopy(symbol).tojson()
    assert again.infer_shape(x=(20,))[1] == [(20,)]
    assert again.infer_type(x="float32")[1] == [np.float32]
    assert again(x=mx.sym.Variable("y")).list_arguments() == ["y"]
    assert len(symbol.attr_dict()) == 4000


def test_defaults_of_many_arguments(monkeypatch):
    """Each of many arguments whose dtype follows from nothing is looked at with what reads it, not with the graph."""
    names = [mx.sym.Variable(f"v{i}") for i in range(500)]
    weight = mx.sym.Variable("w")
    symbol = mx.sym.Group([mx.sym.Embedding(v, weight, input_dim=10, output_dim=3) for v in names])
    asked = 0

    def count(*args, _infer=infer_dtype.infer_dtypes):
        nonlocal asked
        asked += 1
        return _infer(*args)

    monkeypatch.setattr(infer_dtype, "infer_dtypes", count)
    found = infer_dtype.infer_dtype(symbol.graph, {})
    assert all(dtype == "float32" for dtypes in found for dtype in dtypes)
    assert asked <= 10 * 500


def test_places_of_many_arrays():
    """Thousands of lifetimes are placed in the order of time: apart from each other, and in little memory."""
    rng = np.random.default_rng(0)
    lifetimes = [Interval([Storage("arena", "uint8", (int(size),))], i, i + int(length))
                 for i, (size, length) in enumerate(zip(rng.integers(1, 5000, 3000), rng.integers(0, 40, 3000),
                                                        strict=True))]
    top = place(lifetimes)
    assert largest_live_set(lifetimes) <= top <= 1.5 * largest_live_set(lifetimes)
    for i, one in enumerate(lifetimes):
        assert one.offset % 64 == 0 and one.offset + one.nbytes <= top
        for other in lifetimes[i + 1:i + 41]:
            if other.first <= one.last:
                assert one.offset + one.nbytes <= other.offset or other.offset + other.nbytes <= one.offset
