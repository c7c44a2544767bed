"""Second and third derivatives of the table's smooth unary operators, by autograd, against finite differences."""
from __future__ import annotations

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, nd
from mxc.base import MXNetError
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Kind
from mxc.runtime import invoke
from mxc.runtime.array import Array

STEP = 1e-5
# Where an operator is not smooth, or not defined, at the points that serve the others.
POINTS = {"arccosh": [1.3, 2.2]}
# Parameters of operators that need some.
PARAMS = {"_mod_scalar": {"scalar": 0.9}, "_rmod_scalar": {"scalar": 0.2}, "Cast": {"dtype": "float64"},
          "amp_cast": {"dtype": "float64"}, "cast_storage": {"stype": "default"}, "clip": {"a_min": 0.1, "a_max": 2.0}}
# Operators whose gradient is not the derivative: none flows, or another on purpose.
OTHERS = {"BlockGrad", "MakeLoss", "make_loss", "_contrib_gradientmultiplier", "_contrib_round_ste",
          "_contrib_sign_ste"}


def cases() -> list[tuple[str, dict]]:
    """Unary operators that work on numbers alone, with parameters."""
    found = []
    for op in table.all_operators():
        if op.kind != Kind.ELEMENTWISE or len(op.inputs) != 1 or op.variadic or op.name.startswith(("_mxc_", "_copy")):
            continue
        if op.name in OTHERS or not op.differentiable:
            continue
        if op.name == "Activation":
            found += [(op.name, {"act_type": kind}) for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh")]
        else:
            needed = {"scalar": 0.6} if "scalar" in op.params else {}
            found.append((op.name, PARAMS.get(op.name, needed)))
    return found


def derivatives(name: str, params: dict, points: np.ndarray, order: int) -> np.ndarray:
    """The derivative of that order of an operator at each point."""
    x = nd.NDArray(Array.of(points))
    x.attach_grad()
    with autograd.record():
        value = nd.NDArray(invoke.invoke(name, [x._array], params)[0])
        for _ in range(order):
            value, = autograd.grad(value, [x], create_graph=True)
    return value.asnumpy()


@pytest.mark.parametrize(("name", "params"), cases(), ids=lambda v: v if isinstance(v, str) else "-".join(
    str(x) for x in v.values()))
def test_derivatives(name: str, params: dict):
    points = np.array(POINTS.get(name, [0.3, 0.7]))
    for order in (1, 2, 3):
        wanted = (derivatives(name, params, points + STEP, order - 1)
                  - derivatives(name, params, points - STEP, order - 1)) / (2 * STEP)
        found = derivatives(name, params, points, order)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=f"order {order}")


def test_a_fourth_derivative():
    x = nd.array([1, 2], dtype="float64")
    x.attach_grad()
    with autograd.record():
        value = x ** 5
        for _ in range(4):
            value, = autograd.grad(value, [x], create_graph=True)
    np.testing.assert_allclose(value.asnumpy(), [120, 240])


@pytest.mark.parametrize("function", [
    lambda x: 2 * x, lambda x: x + 3, lambda x: -x, lambda x: x.sum(), lambda x: x.mean(axis=1), lambda x: x.T,
    lambda x: x[0:1], lambda x: x.reshape((-1,)), lambda x: nd.dot(x, nd.ones((3, 2))), nd.radians, nd.relu,
    lambda x: nd.concat(x, x, dim=0), lambda x: nd.FullyConnected(x, nd.ones((4, 3)), no_bias=True, num_hidden=4),
    lambda x: nd.take(x, nd.array([1, 1])), lambda x: nd.BlockGrad(x) * x, lambda x: nd.BlockGrad(x),
    lambda x: nd.tile(x, reps=(2, 1)),
    nd.abs, nd.floor, nd.sign, nd.sort, lambda x: x.astype("float64"), lambda x: x.max(), lambda x: nd.stack(x, x),
    lambda x: nd.Convolution(x.reshape((1, 1, 2, 3)), nd.ones((1, 1, 1, 1)), kernel=(1, 1), num_filter=1, no_bias=True),
])
@pytest.mark.parametrize("request_", ["write", "add", "null"])
def test_a_gradient_that_does_not_depend_on_the_values_is_differentiated_to_zeros(function, request_: str):
    x = nd.array([[1, 2, 3], [4, 5, 6]])
    x.attach_grad(request_)
    with autograd.record():
        value = function(x)
        for order in (1, 2, 3):
            value, = autograd.grad(value, [x], create_graph=True)
            assert value.shape == x.shape and (order == 1 or not value.asnumpy().any())
    if request_ != "null":
        x.grad[:] = 7
        value.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), np.full((2, 3), 7 if request_ == "add" else 0))


def test_gradients_of_gradients_by_several_variables_of_which_some_are_unused():
    x, z, h, other = (nd.array([value, value + 1]) for value in (1, 3, 5, 7))
    for array in (x, z, h, other):
        array.attach_grad()
    with autograd.record():
        y = nd.sin(x) + 2 * z
        by_x, by_z = autograd.grad(y, [x, z], head_grads=h, create_graph=True, retain_graph=True)
    np.testing.assert_allclose(by_z.asnumpy(), [10, 12])
    of_x = [g.asnumpy() for g in autograd.grad(by_x, [x, z, h], retain_graph=True)]
    np.testing.assert_allclose(of_x, [-np.sin([1, 2]) * [5, 6], [0, 0], np.cos([1, 2])], rtol=1e-6)
    of_z = [g.asnumpy() for g in autograd.grad(by_z, [x, z, h], retain_graph=True)]
    np.testing.assert_array_equal(of_z, [[0, 0], [0, 0], [2, 2]])
    with pytest.raises(MXNetError, match="2-th variable because it is unreachable"):
        autograd.grad(by_x, [x, other], retain_graph=True)
    autograd.backward([by_x, by_z])
    assert not z.grad.asnumpy().any() and not other.grad.asnumpy().any()
    with pytest.raises(MXNetError, match="retain_graph"):
        by_x.backward()


def test_a_gradient_made_while_recording_is_no_function_of_anything_without_create_graph():
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        gradient, = autograd.grad(2 * x, [x])
    with pytest.raises(MXNetError, match="not in a computational graph"):
        gradient.backward()


@pytest.mark.parametrize("function", [
    lambda x, w: nd.dot(x, w), lambda x, w: nd.FullyConnected(x, w, no_bias=True, num_hidden=3),
    lambda x, w: nd.broadcast_mul(x, w), lambda x, w: nd.softmax(x * w), lambda x, w: nd.log_softmax(x * w),
    lambda x, w: (x * w).sum(axis=1) ** 3, lambda x, w: nd.concat(x * w, nd.exp(x), dim=0),
    lambda x, w: nd.take(x * w, nd.array([0, 0, 2])), lambda x, w: (x * w).reshape((9,))[2:7] ** 2])
def test_gradients_of_gradients_of_layers(function):
    rng = np.random.default_rng(0)
    x0, w0, v = (rng.uniform(0.5, 1.5, (3, 3)) for _ in range(3))

    def first(values: np.ndarray, create: bool):
        x, w = nd.NDArray(Array.of(values)), nd.NDArray(Array.of(w0))
        x.attach_grad()
        with autograd.record():
            y = (mx.nd.sin(function(x, w))).sum()
            gradient, = autograd.grad(y, [x], create_graph=create)
        return x, gradient

    x, gradient = first(x0, True)
    with autograd.record():
        along = (gradient * nd.NDArray(Array.of(v))).sum()
    along.backward()
    wanted = (first(x0 + STEP * v, False)[1].asnumpy() - first(x0 - STEP * v, False)[1].asnumpy()) / (2 * STEP)
    np.testing.assert_allclose(x.grad.asnumpy(), wanted, rtol=1e-5, atol=1e-7)


def test_graphs_of_one_structure_share_how_gradients_are_computed():
    from mxc.runtime import backward

    def run(power: float, values: list[float], request: str = "write") -> list[list[float]]:
        x, y = nd.array(values), nd.array(values)
        x.attach_grad()
        y.attach_grad(request)
        with autograd.record():
            z = x ** power * y
        z.backward()
        return [array.grad.asnumpy().tolist() for array in (x, y) if array.grad is not None]

    assert run(2, [1, 2]) == [[2, 8], [1, 4]]
    count = len(backward._programs)
    assert run(2, [3, 4]) == [[18, 32], [9, 16]]
    assert len(backward._programs) == count
    assert run(3, [1, 2]) == [[3, 24], [1, 8]]
    assert run(2, [1, 2], "null") == [[2, 8]]
    assert run(2, [1, 2, 3]) == [[2, 8, 18], [1, 4, 9]]
