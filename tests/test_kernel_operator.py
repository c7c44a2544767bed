"""Operators that a program writes as functions over whole arrays: values, gradients, plans."""
from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxc as mx
from mxc.base import MXNetError


def pairwise_gradient(a, b, grad_out, grad_a, grad_b, *, power):
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            for k in range(a.shape[1]):
                d = a[i, k] - b[j, k]
                g = power * abs(d) ** (power - 1.0) * grad_out[i, j]
                if d < 0:
                    g = -g
                grad_a[i, k] += g
                grad_b[j, k] -= g


@mx.operator.kernel("t_pairwise", shapes=lambda a, b: (a[0], b[0]), gradient=pairwise_gradient)
def pairwise(a, b, out, *, power=2.0):
    """The powers of the distances of rows, added up."""
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for k in range(a.shape[1]):
                total += abs(a[i, k] - b[j, k]) ** power
            out[i, j] = total


def pick_gradient(grad_out, index, grad_x):
    for i in range(index.shape[0]):
        grad_x[i, index[i]] += grad_out[i]


@mx.operator.kernel("t_pick", shapes=lambda x, index: (x[0],), gradient=pick_gradient)
def pick(x, index, out):
    for i in range(x.shape[0]):
        out[i] = x[i, index[i]]


def square(x):
    return x * x


@mx.operator.kernel("t_several", shapes=lambda x, *, count: [(x[0], count), (x[0],)], dtypes=lambda x: ["int32", bool])
def several(x, first, second, *, count=2, always=False):
    for i in range(x.shape[0]):
        for j in range(count):
            first[i, j] = int(square(x[i, j]))
        second[i] = x[i, 0] > 1 or always


@mx.operator.kernel("t_rows")
def rows(x, out):
    for i in range(0, x.shape[0], 2):
        out[i] = x[i]
        out[i, 1:] = out[i, :-1]
        out[i, 0] = np.sum(x[i])


def distances(a: np.ndarray, b: np.ndarray, power: float = 2.0) -> np.ndarray:
    return (abs(a[:, None] - b[None]).astype(np.float64) ** power).sum(-1)


def test_values_are_numpys():
    rng = np.random.default_rng(1)
    a, b = rng.random((3, 4), np.float32), rng.random((5, 4), np.float32)
    for power in (2.0, 3.0, 0.5):
        found = mx.nd.t_pairwise(mx.nd.array(a), mx.nd.array(b), power=power)
        np.testing.assert_allclose(found.asnumpy(), distances(a, b, power), rtol=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.sampled_from(["float16", "float32", "float64"]))
def test_shapes(n, m, k, dtype):
    rng = np.random.default_rng(n + 5 * m + 25 * k)
    a, b = rng.random((n, k)).astype(dtype), rng.random((m, k)).astype(dtype)
    found = mx.nd.t_pairwise(mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.asnumpy(), distances(a, b), rtol={"float16": 3e-3}.get(dtype, 2e-6), atol=1e-7)


@pytest.mark.parametrize("power", [2.0, 3.5])
def test_gradients_by_finite_differences(power):
    rng = np.random.default_rng(2)
    values = {"a": rng.random((3, 4)), "b": rng.random((5, 4))}
    symbol = mx.sym.t_pairwise(mx.sym.Variable("a"), mx.sym.Variable("b"), power=power)
    mx.test_utils.check_numeric_gradient(symbol, values, numeric_eps=1e-5, rtol=1e-4, atol=1e-6, dtype=np.float64)


def executor(req="write", **shapes):
    symbol = mx.sym.t_pairwise(mx.sym.Variable("a"), mx.sym.Variable("b"), name="d")
    bound = symbol.simple_bind(mx.cpu(), grad_req=req, a=(3, 4), b=(5, 4))
    for name, value in bound.arg_dict.items():
        value[:] = np.random.default_rng(len(name)).random(value.shape)
    return bound


@pytest.mark.parametrize("req", ["write", "add", {"a": "write", "b": "null"}, {"a": "null", "b": "add"}])
def test_every_request(req):
    bound = executor(req)
    a, b = (bound.arg_dict[n].asnumpy() for n in "ab")
    difference = 2 * (a[:, None] - b[None])
    wanted = {"a": difference.sum(1), "b": -difference.sum(0)}
    for round in (1, 2):
        bound.forward(is_train=True)
        bound.backward([mx.nd.ones((3, 5))])
        for name, how in ({"a": req, "b": req} if isinstance(req, str) else req).items():
            if how != "null":
                np.testing.assert_allclose(bound.grad_dict[name].asnumpy(),
                                           wanted[name] * (round if how == "add" else 1), rtol=1e-5)


def test_plans_have_a_kernel_and_no_host_step():
    plan = executor()._core.compiled(True).plan
    assert [(s.phase, s.host, s.label) for s in plan.steps] == [("forward", None, "t_pairwise"),
                                                                ("backward", None, "_backward_t_pairwise")]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_recorded_gradients(dtype):
    x = mx.nd.array(np.arange(12).reshape(3, 4), dtype=dtype)
    index = mx.nd.array([1, 2, -1], dtype="int64")
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.t_pick(x, index) * 2
    y.backward()
    assert y.asnumpy().tolist() == [2, 12, 22]
    assert x.grad.dtype == np.dtype(dtype)
    assert x.grad.asnumpy().tolist() == [[0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]]


def test_several_outputs_parameters_and_called_functions():
    x = mx.nd.array([[0, 1, 2], [3, 4, 5]])
    first, second = mx.nd.t_several(x)
    assert (first.asnumpy().tolist(), second.asnumpy().tolist()) == ([[0, 1], [9, 16]], [False, True])
    assert (first.dtype, second.dtype) == (np.int32, np.bool_)
    first, second = mx.nd.t_several(x, count=3, always=True)
    assert (first.asnumpy().tolist(), second.asnumpy().tolist()) == ([[0, 1, 4], [9, 16, 25]], [True, True])
    symbol = mx.sym.t_several(mx.sym.Variable("x"), name="s", count=1)
    assert symbol.list_outputs() == ["s_first", "s_second"]
    again = mx.sym.load_json(symbol.tojson())
    assert again.infer_shape(x=(2, 3))[1] == [(2, 1), (2,)]
    assert again.infer_type(x="float64")[1] == [np.int32, np.bool_]
    assert symbol.infer_shape_partial()[1] == [None, None] or symbol.infer_shape_partial()[1] == [(), ()]


def test_rows_are_assigned_and_the_rest_is_zeros():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for _ in range(3):  # whatever the memory held before
        waste = mx.nd.ones((3, 4)) * 7
        del waste
        found = mx.nd.t_rows(mx.nd.array(x)).asnumpy()
        assert found.tolist() == [[6, 0, 1, 2], [0, 0, 0, 0], [38, 8, 9, 10]]


def test_out_monitors_and_reference():
    x, index = mx.nd.array(np.arange(12).reshape(3, 4)), mx.nd.array([1, 2, 3], dtype="int32")
    target = mx.nd.zeros((3,))
    assert mx.nd.t_pick(x, index, out=target) is target
    assert target.asnumpy().tolist() == [1, 6, 11]
    seen = {}
    symbol = mx.sym.t_pick(mx.sym.Variable("x"), mx.sym.Variable("index"), name="p")
    bound = symbol.bind(mx.cpu(), {"x": x, "index": index})
    bound.set_monitor_callback(lambda name, value: seen.update({name: value.asnumpy().tolist()}), True)
    assert bound.forward()[0].asnumpy().tolist() == seen["p_output"] == [1, 6, 11]
    index[:] = 9
    with pytest.raises(MXNetError, match=r"IndexError[^\n]*\n    out\[i\] = x\[i, index\[i\]\]"):
        bound.forward()


@mx.operator.kernel("t_total", shapes=lambda x: ())
def total(x, out):
    for value in x:
        out[()] += value


def test_scalars_and_arrays_without_elements():
    with mx.util.np_shape(True):
        assert mx.nd.t_total(mx.nd.array([1, 2, 3])).asnumpy() == 6
        assert mx.nd.t_total(mx.nd.zeros((0,))).asnumpy() == 0
        assert mx.nd.t_pick(mx.nd.zeros((0, 4)), mx.nd.zeros((0,), dtype="int32")).shape == (0,)


@mx.operator.kernel("t_functions", shapes=lambda x: (8,))
def functions_of_numbers(x, out):
    out[0], out[1], out[2] = math.gamma(x[0]), math.erf(x[0]), math.lgamma(x[0])
    mantissa, exponent = math.frexp(x[0])
    out[3], out[4], out[5] = mantissa, exponent, math.ldexp(x[0], 3)
    out[6] = np.power(x[0], 2) + divmod(7, 2)[1] + round(x[0]) + min(x[0], 1) + int(2.5) ** 2
    for place, (a, b) in enumerate(zip(x, x[::-1])):  # noqa: B905  # Numba has no strict
        out[7] += place * a * b


def test_functions_of_numbers():
    x = np.array([2.5, -1.0, 3.0])
    wanted = np.zeros(8)
    functions_of_numbers(x, wanted)
    np.testing.assert_allclose(mx.nd.t_functions(mx.nd.array(x, dtype="float64")).asnumpy(), wanted, rtol=1e-14)


def test_help_has_the_docstring():
    assert "added up" in mx.nd.t_pairwise.__doc__
    assert "power : double, default 2.0" in mx.sym.t_pairwise.__doc__


def test_nothing_is_kept_alive():
    bound = executor()
    bound.forward()
    seen = weakref.ref(bound._core)
    del bound
    gc.collect()
    assert seen() is None


def scaled(x, *, by, more=2.0):
    return x * by + more


def test_functions_with_parameters_and_defaults():
    @mx.operator.kernel("t_defaults")
    def defaults(x, out):
        out[0] = scaled(x[0], by=3)
        out[1] = scaled(x[1], more=x[2], by=1)
        return None

    x, wanted = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32)
    defaults(x, wanted)
    np.testing.assert_array_equal(mx.nd.t_defaults(mx.nd.array(x)).asnumpy(), wanted)


def test_division_by_zero_raises_nothing():
    @mx.operator.kernel("t_zero", shapes=lambda x: (5,))
    def zero(x, out):
        none, count = x[0] - x[0], int(x[0])
        out[0], out[1], out[2] = none**-1, -1 / none, none / none
        out[3], out[4] = count // (count - 1), count % (count - 1)

    np.testing.assert_array_equal(mx.nd.t_zero(mx.nd.ones((1,))).asnumpy(), [np.inf, -np.inf, np.nan, 0, 0])
