"""Differences from MXNet 1.9.1 that docs/differences.md names and no other test checks."""
from collections.abc import Mapping

import numpy as np
import pytest

from mxc import autograd, cpu, nd, sym
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


def both(net: sym.Symbol, **values: np.ndarray) -> np.ndarray:
    """What a graph computes for arrays, compiled; it must be what operators called one by one give."""
    arrays = {name: nd.array(value, dtype=value.dtype) for name, value in values.items()}
    out = net.bind(cpu(), arrays).forward()[0].asnumpy()
    np.testing.assert_array_equal(out, net.eval(**arrays)[0].asnumpy())
    return out


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64"])
def test_products_of_any_dtype(dtype: str) -> None:
    a = np.array([[1, 2], [3, 4]], dtype)
    for net, left in ((sym.dot(DATA, LABEL), a), (sym.batch_dot(DATA, LABEL), a[None])):
        assert both(net, data=left, label=left).tolist() == (left @ left).tolist()
    assert nd.dot(nd.array(a, dtype=dtype), nd.array(a, dtype=dtype)).asnumpy().tolist() == (a @ a).tolist()
    if dtype == "float16":  # every further 1 would be lost in a sum in float16
        ones = np.ones((1, 4096), dtype)
        assert both(sym.dot(DATA, LABEL, transpose_b=True), data=ones, label=ones).tolist() == [[4096]]
        assert gradients(sym.dot(DATA, LABEL), {"data": "write"}, dtype, data=(2, 3), label=(3, 4)) == {"data": 4}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [{}, {"target_shape": (3, 3, 3)}])
def test_deconvolution_over_three_axes_with_dilation(dtype: str, shape: dict[str, tuple[int, ...]]) -> None:
    """The kernel's elements are two apart: each of the image's adds the kernel there."""
    rng = np.random.default_rng(0)
    x, weight = rng.integers(-4, 5, (1, 1, 3, 3, 3)).astype(dtype), rng.integers(-4, 5, (1, 1, 2, 2, 2)).astype(dtype)
    expected = np.zeros((5, 5, 5), dtype)
    for place in np.ndindex(3, 3, 3):
        for step in np.ndindex(2, 2, 2):
            expected[tuple(p + 2 * s for p, s in zip(place, step, strict=True))] += x[0, 0][place] * weight[0, 0][step]
    net = sym.Deconvolution(DATA, LABEL, kernel=(2, 2, 2), dilate=(2, 2, 2), num_filter=1, no_bias=True, **shape)
    cut = slice(1, -1) if shape else slice(None)  # two too many are one of padding
    np.testing.assert_array_equal(both(net, data=x, label=weight)[0, 0], expected[cut, cut, cut])
    assert gradients(net, {"data": "write", "label": "write"}, dtype, data=x.shape, label=weight.shape)


def test_copyto_computes() -> None:
    x = np.array([1, 2, 3], "float32")
    assert both(sym._internal._copyto(DATA) + 1, data=x).tolist() == [2, 3, 4]
    assert nd._internal._copyto(nd.array(x)).asnumpy().tolist() == [1, 2, 3]
    assert gradients(sym._internal._copyto(DATA), {"data": "write"}, data=(2,)) == {"data": 1}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("values", [[np.inf, 1], [1, np.inf, 1], [np.inf, np.inf], [np.inf, -np.inf], [-np.inf, 0]])
def test_the_norm_of_an_infinity(order: int, values: list[float]) -> None:
    for dtype in ("float16", "float32", "float64"):
        assert both(sym.norm(DATA, ord=order), data=np.array(values, dtype)).tolist() == [np.inf]
    assert np.isnan(both(sym.norm(DATA, ord=order), data=np.array([*values, np.nan], "float32"))).all()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_columns_of_images_of_any_rank(rank: int) -> None:
    image = np.arange(1, 4 ** rank + 1, dtype="float32").reshape((1, 1, *(4,) * rank))
    windows = np.lib.stride_tricks.sliding_window_view(image[0, 0], (2,) * rank)
    expected = windows.reshape(3 ** rank, 2 ** rank).T
    columns = both(sym.im2col(DATA, kernel=(2,) * rank), data=image)
    np.testing.assert_array_equal(columns[0], expected)
    times = both(sym.col2im(DATA, output_size=(4,) * rank, kernel=(2,) * rank), data=columns) / image
    assert times[0, 0].ravel()[0] == 1 and times.max() == 2 ** rank


def test_maximum_of_infinities_alone() -> None:
    x = np.array([[[[-np.inf, -np.inf, 1, np.nan]]]], "float32")
    for op in (sym.Pooling, sym.Pooling_v1):
        out = both(op(DATA, kernel=(1, 2), stride=(1, 2), pool_type="max"), data=x)
        np.testing.assert_array_equal(out, [[[[-np.inf, np.nan]]]])


def test_pooling_v1_with_padding_as_large_as_the_kernel_is_refused() -> None:
    with pytest.raises(MXNetError, match="pad"):
        sym.Pooling_v1(DATA, kernel=(2, 2), pad=(2, 2)).infer_shape(data=(1, 1, 4, 4))


def test_parts_of_a_vector_are_not_squeezed() -> None:
    with pytest.raises(MXNetError, match=r"one of several axes to squeeze, got \[1, 1\] of \(2,\)"):
        sym.split_v2(DATA, 2, axis=0, squeeze_axis=True).infer_shape(data=(2,))
    with pytest.raises(MXNetError, match="depth"):
        sym.one_hot(DATA, depth=-1)


def test_activation_relu_keeps_nan() -> None:
    data = nd.array([float("nan"), -1, 2])
    for found in (nd.Activation(data, act_type="relu"), nd.relu(data)):
        assert np.array_equal(found.asnumpy(), [np.nan, 0, 2], equal_nan=True)


def test_softmax_has_no_powers_below_normal_numbers() -> None:
    for net in (sym.softmax(DATA), sym.SoftmaxActivation(DATA)):
        assert np.array_equal(both(net, data=np.array([[0, -100, -87]], "float32")) > 0, [[True, False, True]])


def test_a_number_that_is_none_reaches_the_tiles_that_read_it(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    data, weight = (rng.standard_normal(shape).astype("float32") for shape in ((1, 64, 16, 16), (64, 64, 3, 3)))
    data[0, 0, 8, 8] = np.inf
    net = sym.Convolution(sym.Variable("data"), sym.Variable("weight"), kernel=(3, 3), pad=(1, 1),
                          num_filter=64, no_bias=True)

    def reached() -> int:
        bound = net.bind(cpu(), {"data": nd.array(data), "weight": nd.array(weight)})
        return int((~np.isfinite(bound.forward()[0].asnumpy()[0, 0])).sum())

    assert 9 <= reached() <= 64
    monkeypatch.setenv("MXC_STRICT", "1")
    assert reached() == 9


def test_deconvolution_of_all_dtypes_is_one():
    rng = np.random.default_rng(0)
    data, weight = rng.standard_normal((2, 3, 4, 4)), rng.standard_normal((3, 2, 3, 3))
    for form in ({"stride": (2, 2), "dilate": (2, 2)}, {"stride": (2, 2), "target_shape": (8, 8)}):
        narrow, wide = (nd.Deconvolution(nd.array(data, dtype=dtype), nd.array(weight, dtype=dtype),
                                         kernel=(3, 3), num_filter=2, **form) for dtype in ("float32", "float64"))
        np.testing.assert_allclose(narrow.asnumpy(), wide.asnumpy(), 1e-4, 1e-4)


@pytest.mark.parametrize("name, shapes", [
    ("interleaved_matmul_encdec_qk", ((2, 1, 4), (3, 1, 8))),
    ("interleaved_matmul_selfatt_valatt", ((3, 1, 12), (2, 3, 3)))])
def test_attention_has_the_gradient_of_its_second_input_alone(name: str, shapes: tuple):
    rng, found = np.random.default_rng(0), []
    values = [rng.standard_normal(shape) for shape in shapes]
    for alone in (True, False):
        first, second = (nd.array(value) for value in values)
        second.attach_grad()
        if not alone:
            first.attach_grad()
        with autograd.record():
            out = getattr(nd.contrib, name)(first, second, heads=2)
        out.backward()
        found.append(second.grad.asnumpy())
    np.testing.assert_allclose(*found, rtol=1e-6)
    assert found[0].any()


def test_axes_that_are_there_twice_are_refused():
    with pytest.raises(MXNetError, match="transpose"):
        nd.transpose(nd.ones((1, 2, 3)), axes=(0, 0, 1))
