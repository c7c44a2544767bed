"""Graphs that are called as operators (runtime/cached_op.py): the same numbers as operator by operator, whatever came
between, and what a call keeps and gives back."""
from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest

import mxc as mx
from mxc import autograd
from mxc.base import MXNetError
from mxc.ndarray import NDArray
from mxc.runtime import engine
from mxc.runtime.cached_op import CachedOp

NAMES = ["data", "weight", "bias", "gamma", "beta", "mean", "var"]
SHAPES = [(2, 3, 5, 5), (4, 3, 3, 3), (4,), (4,), (4,), (4,), (4,)]


def compute(F, data, weight, bias, gamma, beta, mean, var):
    """A convolution, a BatchNorm and dropout, of arrays or symbols."""
    x = F.Convolution(data, weight, bias, kernel=(3, 3), num_filter=4, pad=(1, 1))
    x = F.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False)
    x = F.Dropout(F.Activation(x, act_type="relu"), p=0.3)
    return F.mean(x * x, axis=(1, 2, 3))


def op_of(symbol: mx.sym.Symbol, learned: tuple[str, ...] = ()) -> CachedOp:
    return CachedOp(symbol.graph, symbol.list_inputs(), learned)


def call(op: CachedOp, *arrays: NDArray) -> list[NDArray]:
    return [NDArray(made) for made in op([array._array for array in arrays])]


def arrays(seed: int) -> list[NDArray]:
    generator = np.random.RandomState(seed)
    made = [mx.nd.array(generator.uniform(-1, 1, shape)) for shape in SHAPES]
    made[-1][:] = mx.nd.array(generator.uniform(0.5, 1.5, 4))
    return made


@pytest.fixture
def op() -> CachedOp:
    symbol = compute(mx.sym, *map(mx.sym.var, NAMES))
    return CachedOp(symbol.graph, NAMES, NAMES[1:])


def close(ours: NDArray, theirs: NDArray) -> None:
    np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), rtol=1e-5, atol=1e-6)


def trained(run: Callable[..., NDArray], given: list[NDArray], seed: int) -> None:
    """One recorded call and its backward."""
    mx.random.seed(seed)
    with autograd.record():
        out = run(*given)
        total = (out * out).sum()
    total.backward()


def test_training_is_the_same_as_operator_by_operator(op: CachedOp):
    ours, theirs = arrays(0), arrays(0)
    for array in (*ours[:5], *theirs[:5]):
        array.attach_grad()
    for seed in range(3):
        trained(lambda *given: call(op, *given)[0], ours, seed)
        trained(lambda *given: compute(mx.nd, *given), theirs, seed)
        for one, other in zip(ours, theirs, strict=True):
            close(one, other)
        for one, other in zip(ours[:5], theirs[:5], strict=True):
            close(one.grad, other.grad)
    close(call(op, *ours)[0], compute(mx.nd, *theirs))


def test_calls_that_were_recorded_together_have_memory_of_their_own(op: CachedOp):
    given, others = arrays(0), arrays(1)
    given[1].attach_grad()
    with autograd.predict_mode(), autograd.record(train_mode=False):
        outs = [call(op, data, *given[1:])[0] for data in (given[0], others[0], given[0] + 1)]
        total = (outs[0] + outs[1] * outs[2]).sum()
    total.backward()
    found = given[1].grad.copy()
    with autograd.record(train_mode=False):
        outs = [compute(mx.nd, data, *given[1:]) for data in (given[0], others[0], given[0] + 1)]
        total = (outs[0] + outs[1] * outs[2]).sum()
    total.backward(train_mode=False)
    close(found, given[1].grad)


def test_places_come_back(op: CachedOp):
    given = arrays(0)
    given[1].attach_grad()
    for ends_with_backward in (True, False, True):
        with autograd.record():
            out = call(op, *given)[0]
        if ends_with_backward:
            out.backward()
        del out
    gc.collect()
    assert len(op.pool_of(mx.cpu())._free) == 1


def test_backward_again_computes_forward_again(op: CachedOp):
    given = arrays(0)
    given[1].attach_grad()
    with autograd.record():
        out = call(op, *given)[0]
    out.backward(retain_graph=True)
    first = given[1].grad.copy()
    states = [array.copy() for array in given[5:]]
    out.backward(retain_graph=True)
    np.testing.assert_array_equal(first.asnumpy(), given[1].grad.asnumpy())
    assert any((array != state).sum().asscalar() for array, state in zip(given[5:], states, strict=True))


def test_gradients_are_added_where_asked(op: CachedOp):
    given = arrays(0)
    given[1].attach_grad("add")
    for _ in range(2):
        with autograd.record(train_mode=False):
            out = call(op, *given)[0]
        out.backward(train_mode=False)
    twice = given[1].grad.copy()
    given[1].attach_grad()
    with autograd.record(train_mode=False):
        out = call(op, *given)[0]
    out.backward(train_mode=False)
    close(twice, given[1].grad * 2)


def test_outputs_that_are_equal_or_inputs():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    total = a + b
    op = op_of(mx.sym.Group([total, a, total, b * 2]))
    one, two = mx.nd.array([1, 2]), mx.nd.array([3, 4])
    one.attach_grad()
    with autograd.record():
        outs = call(op, one, two)
        loss = outs[0] * 2 + outs[1] * 3 + outs[2] * 5 + outs[3]
    loss.backward()
    assert [out.asnumpy().tolist() for out in outs] == [[4, 6], [1, 2], [4, 6], [6, 8]]
    assert one.grad.asnumpy().tolist() == [10, 10]
    outs[1][:] = 0  # a new array, not the input
    assert one.asnumpy().tolist() == [1, 2]


def test_a_gradient_target_that_is_read_too_is_written_last():
    a = mx.sym.var("a")
    op, x = op_of(a * a), mx.nd.array([1.0, 2, 3])
    x.attach_grad()
    x.grad[:] = 5
    with autograd.record():
        out = call(op, x)[0]
    out.backward(x.grad)  # what flows in is the array that the gradient goes to
    assert x.grad.asnumpy().tolist() == [10, 20, 30]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_arrays_without_elements(shape: tuple[int, ...]):
    op = op_of(mx.sym.exp(mx.sym.var("a")) + 1)
    with mx.np_shape():
        assert call(op, mx.nd.zeros(shape))[0].shape == shape


def test_shapes_dtypes_and_modes_have_plans_of_their_own():
    op = op_of(mx.sym.Dropout(mx.sym.var("a") * 2, p=0.5))
    for shape in ((2, 3), (4, 3), (2, 3)):
        for dtype in ("float32", "float64", "float16"):
            out = call(op, mx.nd.ones(shape, dtype=dtype))[0]
            assert out.shape == shape and out.dtype == np.dtype(dtype) and (out.asnumpy() == 2).all()
            with autograd.train_mode():
                assert {*np.unique(call(op, mx.nd.ones(shape, dtype=dtype))[0].asnumpy())} <= {0, 4}


def test_a_weight_that_changes_its_array():
    """Packed weights are made anew for another array, and when the same one is written."""
    data, weight = mx.sym.var("data"), mx.sym.var("weight")
    op = CachedOp(mx.sym.FullyConnected(data, weight, num_hidden=64, no_bias=True).graph, ["data", "weight"],
                  ["weight"])
    x = mx.nd.ones((3, 32))
    for value in (1, 2):
        one = mx.nd.ones((64, 32)) * value
        assert (call(op, x, one)[0].asnumpy() == 32 * value).all()
        one[:] = 5
        assert (call(op, x, one)[0].asnumpy() == 160).all()


def test_threads_call_one_op_at_once(op: CachedOp):
    given = arrays(0)
    wanted = call(op, *given)[0].asnumpy()
    wrong: list[int] = []

    def work() -> None:
        for i in range(30):
            if not np.allclose(call(op, *given)[0].asnumpy(), wanted):
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_call_inside_of_other_work(op: CachedOp):
    given = arrays(0)
    wanted = call(op, *given)[0].asnumpy()
    found: list[np.ndarray] = []
    variable = engine.Variable()
    engine.push(lambda: found.append(call(op, *given)[0].asnumpy()), (), [variable], small=False)
    for _ in range(5):
        call(op, *given)
    engine.wait_to_read(variable)
    np.testing.assert_array_equal(found[0], wanted)


def test_refusals(op: CachedOp):
    with pytest.raises(MXNetError, match=r"takes 7 arrays \(data, .*\), got 1"):
        call(op, mx.nd.ones((2, 3, 5, 5)))
    with pytest.raises(MXNetError, match="no array is given for b"):
        CachedOp((mx.sym.var("a") + mx.sym.var("b")).graph, ["a"])
    with pytest.raises(MXNetError, match="weight"):
        call(op, arrays(0)[0], mx.nd.ones((4, 5, 3, 3)), *arrays(0)[2:])
