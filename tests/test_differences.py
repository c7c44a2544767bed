"""Differences from MXNet 1.9.1 that docs/differences.md names and no other test checks."""
from collections.abc import Mapping

import numpy as np
import pytest

from mxc import cpu, nd, sym
from mxc.base import MXNetError

DATA, LABEL = sym.Variable("data"), sym.Variable("label")
GIVEN = 7.0  # in every gradient array before backward


def gradients(net: sym.Symbol, grad_req: Mapping[str, str], dtype: str = "float32",
              **shapes: tuple[int, ...]) -> dict[str, float]:
    """The first number of each gradient that is wanted; all arguments and head gradients are 1."""
    executor = net.simple_bind(cpu(), grad_req={name: grad_req.get(name, "null") for name in net.list_arguments()},
                               type_dict=dict.fromkeys(shapes, dtype), **shapes)
    for array in executor.arg_arrays:
        array[:] = 1
    for name in grad_req:
        executor.grad_dict[name][:] = GIVEN
    executor.forward(is_train=True)
    executor.backward([nd.ones(out.shape, dtype=dtype) for out in executor.outputs])
    return {name: float(executor.grad_dict[name].asnumpy().ravel()[0]) for name in grad_req}


@pytest.mark.parametrize("dtype, net, name, expected", [
    ("float32", sym.clip(DATA, a_min=-1, a_max=2), "data", GIVEN + 1),
    ("float32", sym.BatchNorm(DATA, fix_gamma=True, name="bn"), "bn_gamma", GIVEN),
    ("float64", sym.Convolution(DATA, kernel=(1, 1), num_filter=2, name="conv"), "data", GIVEN + 2),
    ("float32", sym.mean(DATA), "data", GIVEN + 1 / 96),
    ("float32", sym.SoftmaxOutput(DATA, DATA), "data", GIVEN + 1 / 48 - 1),
    ("float32", sym.LinearRegressionOutput(DATA, DATA * 2, grad_scale=48), "data", GIVEN - 1),
])
def test_add_adds(dtype: str, net: sym.Symbol, name: str, expected: float) -> None:
    assert gradients(net, {name: "add"}, dtype, data=(2, 3, 4, 4)) == {name: pytest.approx(expected)}


def test_add_beside_write() -> None:
    net = sym.relu(DATA + LABEL)
    assert gradients(net, {"data": "add", "label": "write"}, data=(2,), label=(2,)) == {"data": GIVEN + 1, "label": 1}


@pytest.mark.parametrize("net", [sym.FullyConnected(DATA, num_hidden=2, no_bias=True, name="op"),
                                 sym.Convolution(DATA, kernel=(1, 1), num_filter=2, no_bias=True, name="op")])
def test_new_weights_are_used(net: sym.Symbol) -> None:
    executor = net.simple_bind(cpu(), grad_req="null", data=(2, 3, 1, 1))
    weight = executor.arg_dict["op_weight"]
    executor.arg_dict["data"][:] = 1
    for value in (1, 2, 4):
        weight[0] = value
        for is_train in (False, True):
            assert executor.forward(is_train)[0].asnumpy().ravel().tolist() == [3 * value, 0] * 2
        weight *= 2
        assert executor.forward()[0].asnumpy().ravel()[0] == 6 * value


@pytest.mark.parametrize("grad_req, expected", [("write", 2), ("add", GIVEN + 2)])
def test_a_bias_beside_a_frozen_weight_has_a_gradient(grad_req: str, expected: float) -> None:
    assert gradients(sym.FullyConnected(DATA, num_hidden=4, name="fc"), {"fc_bias": grad_req},
                     data=(2, 3)) == {"fc_bias": expected}


@pytest.mark.parametrize("loss, label", [(sym.SoftmaxOutput, (2,)), (sym.LinearRegressionOutput, (2, 3))])
def test_the_gradient_of_a_label_is_zeros(loss, label) -> None:
    assert gradients(loss(DATA, LABEL), {"label": "write"}, data=(2, 3), label=label) == {"label": 0}


@pytest.mark.parametrize("is_train", [False, True])
def test_softmax_output_is_over_a_sample(is_train: bool) -> None:
    executor = sym.SoftmaxOutput(DATA, LABEL).simple_bind(cpu(), data=(2, 3, 4, 5), label=(2, 3, 4, 5))
    np.testing.assert_allclose(executor.forward(is_train)[0].asnumpy(), np.full((2, 3, 4, 5), 1 / 60), rtol=1e-6)


@pytest.mark.parametrize("net", [sym.hypot(DATA, DATA), sym.broadcast_hypot(DATA, DATA), sym.hypot(DATA, 1e30)])
def test_hypot_overflows(net: sym.Symbol) -> None:
    assert net.eval(data=nd.full((1,), 1e30))[0].asnumpy().tolist() == [np.inf]


def test_moments_without_the_mean():
    data = np.random.default_rng(0).normal(3, 1, (3, 4)).astype(np.float32)
    out, = sym.moments(DATA, axes=(0,))[1].bind(cpu(), {"data": nd.array(data)}).forward()
    np.testing.assert_allclose(out.asnumpy(), data.var(0), rtol=1e-4)


@pytest.mark.parametrize("net, shape, expected", [
    (sym.broadcast_like(DATA, LABEL, lhs_axes=(0,), rhs_axes=(0,)), (2, 3), 1), (sym.argmax_channel(DATA), (2, 3), 0),
    (sym.Crop(DATA, num_args=1, h_w=(1, 1)), (1, 1, 2, 2), 1), (sym.LRN(DATA, nsize=2, beta=1, knorm=1), (1, 2, 1, 1),
                                                               1 / 1.00005 - 1e-4 / 1.00005 ** 2),
    (sym.im2col(DATA, kernel=(2,)), (1, 1, 3), 1), (sym.col2im(DATA, output_size=(2,), kernel=(1,)), (1, 1, 2), 1),
])
def test_gradients_of_what_mxnet_refuses(net: sym.Symbol, shape: tuple[int, ...], expected: float) -> None:
    shapes = dict.fromkeys(net.list_arguments(), shape)
    assert gradients(net, {"data": "write"}, "float64", **shapes)["data"] == pytest.approx(expected)


def test_parts_of_a_vector_are_not_squeezed() -> None:
    with pytest.raises(MXNetError, match=r"one of several axes to squeeze, got \[1, 1\] of \(2,\)"):
        sym.split_v2(DATA, 2, axis=0, squeeze_axis=True).infer_shape(data=(2,))
    with pytest.raises(MXNetError, match="depth"):
        sym.one_hot(DATA, depth=0)
