"""Sorting where MXNet leaves the order open or refuses, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest

from mxc import cpu, nd, sym
from mxc.base import MXNetError

DATA = sym.Variable("data")


def computed(net: sym.Symbol, data: np.ndarray) -> np.ndarray:
    executor = net.simple_bind(cpu(), grad_req="null", type_dict={"data": data.dtype.name}, data=data.shape)
    executor.arg_dict["data"][:] = nd.array(data, dtype=data.dtype.name)
    return executor.forward()[0].asnumpy()


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("k", [1, 5, 200])
def test_equal_numbers_stay_in_order_and_nan_is_last(dtype: str, ascending: bool, k: int) -> None:
    rng = np.random.default_rng(k)
    data = rng.integers(0 if dtype == "uint8" else -9, 9, (3, 200)).astype(dtype)
    if data.dtype.kind == "f":
        data[0, ::7] = np.nan
        data[1] = np.nan
        data[2, 5:9] = np.inf, -np.inf, 0.0, -0.0
    wide = data.astype(np.float64)
    expected = np.argsort(wide if ascending else -wide, 1, kind="stable")[:, :k]
    found = computed(sym.topk(DATA, k=k, is_ascend=ascending, dtype="int32"), data)
    assert found.tolist() == expected.tolist()
    if k == 200:
        np.testing.assert_array_equal(computed(sym.sort(DATA, is_ascend=ascending), data),
                                      np.take_along_axis(data, expected, 1))


@pytest.mark.parametrize("n", [1, 6, 31, 32, 33, 64, 97, 1500])
@pytest.mark.parametrize("k", [1, 4, 5, 9])
def test_the_first_of_rows_of_any_length(n: int, k: int) -> None:
    """Rows that rise need every number as a candidate, those that fall need the first ones alone."""
    rng = np.random.default_rng(n)
    data = rng.integers(0, 40, (4, n)).astype(np.float32)
    data[1], data[2] = np.sort(data[1]), -np.sort(-data[2])
    data[3, ::3] = np.nan
    k = min(k, n)
    expected = np.argsort(-data, 1, kind="stable")[:, :k]
    np.testing.assert_array_equal(computed(sym.topk(DATA, k=k, dtype="int32"), data), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (4, 1), (5, 64), (9, 33), (0, 4), (4, 3, 5)])
def test_running_sums_and_their_gradient(shape: tuple[int, ...], dtype: str) -> None:
    """Rounded at each step, from a sum's first number on, which may be -0."""
    data = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype) * np.array(0.5 if "f" in dtype else 1, dtype)
    if data.size:
        data.flat[0] = -0.0
    axis = len(shape) - 1
    if 0 in shape:
        with pytest.raises(MXNetError):
            computed(sym.cumsum(DATA, axis=axis), data)
        return
    found = computed(sym.cumsum(DATA, axis=axis), data)
    np.testing.assert_array_equal(found, np.cumsum(data, axis, dtype=data.dtype))
    assert np.signbit(found.flat[0]) == np.signbit(data.flat[0])
    if data.dtype.kind == "f":
        executor = sym.cumsum(DATA, axis=axis).simple_bind(cpu(), type_dict={"data": dtype}, data=shape)
        executor.forward(is_train=True)
        executor.backward([nd.array(data, dtype=dtype)])
        backwards = np.cumsum(data[..., ::-1], axis, dtype=data.dtype)[..., ::-1]
        np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), backwards)


def test_running_sums_in_another_dtype() -> None:
    data = np.full((2, 5000), 1.001, np.float16)
    net = sym.cumsum(DATA, axis=1, dtype="float64")
    executor = net.simple_bind(cpu(), type_dict={"data": "float16"}, data=data.shape)
    executor.arg_dict["data"][:] = nd.array(data, dtype="float16")
    np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), np.cumsum(data, 1, dtype=np.float64))
    executor.backward([nd.ones((2, 5000), dtype="float64")])
    gradient = executor.grad_dict["data"].asnumpy()
    assert gradient.dtype == np.float16 and gradient[0, ::4999].tolist() == [5000, 1]


def test_running_sums_along_a_negative_axis() -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(computed(sym.cumsum(DATA, axis=-1), data), data.cumsum(1))
    with pytest.raises(MXNetError, match="expected an axis from -2 to 1, got -3"):
        computed(sym.cumsum(DATA, axis=-3), data)


def test_sort_has_a_gradient_by_its_default_axis() -> None:
    executor = sym.sort(DATA).simple_bind(cpu(), data=(1, 3))
    executor.arg_dict["data"][:] = [[3, 1, 2]]
    executor.forward(is_train=True)
    executor.backward([nd.array([[10, 20, 30]])])
    assert executor.grad_dict["data"].asnumpy().tolist() == [[30, 10, 20]]


def test_a_histogram_leaves_nan_out() -> None:
    data = np.array([0.5, np.nan, 1, 2, 3, -1, np.inf], np.float32)
    assert computed(sym._internal._histogram(DATA, bin_cnt=2, range=(0, 2)), data).tolist() == [1, 2]


@pytest.mark.parametrize("net, reason", [
    (sym._internal._histogram(DATA, bin_cnt=2), "expected bin_cnt with a range of two ascending numbers"),
    (sym.contrib.BilinearResize2D(DATA, mode="to_even_down"), "expected a height of at least 1"),
    (sym.contrib.BilinearResize2D(DATA, scale_height=float("inf"), scale_width=2.0), "expected finite scales, got inf"),
    (sym.topk(DATA, k=9), "expected k of at most the 5 numbers along the axis, got 9"),
])
def test_refusals(net: sym.Symbol, reason: str) -> None:
    with pytest.raises(MXNetError, match=reason):
        net.infer_shape(data=(1, 1, 1, 5))


@pytest.mark.parametrize("op, params", [("BilinearResize2D", {"height": 0}),
                                        ("AdaptiveAvgPooling2D", {"output_size": 0})])
def test_no_elements_are_refused(op: str, params: dict[str, int]) -> None:
    with pytest.raises(MXNetError, match=r"in 1\.\."):
        getattr(sym.contrib, op)(DATA, **params)


@pytest.mark.parametrize("align", [False, True])
def test_resizing_to_the_same_size_keeps_what_stands_beside_nan(align: bool) -> None:
    net = sym.contrib.BilinearResize2D(DATA, height=2, width=3, align_corners=align)
    data = np.array([[[[1, np.nan, 2], [np.inf, 3, 4]]]], np.float32)
    np.testing.assert_array_equal(computed(net, data), data)
    executor = net.simple_bind(cpu(), data=data.shape)
    executor.forward(is_train=True, data=nd.array(data))
    executor.backward([nd.array(data)])
    np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), data)


def test_pooling_with_too_much_padding_is_refused() -> None:
    with pytest.raises(MXNetError, match="larger than pad"):
        sym.Pooling(DATA, kernel=(2, 2, 2), pad=(2, 0, 0)).infer_shape(data=(1, 1, 4, 4, 4))


def test_a_window_of_pooling_behind_the_image_is_zero() -> None:
    net = sym.Pooling(DATA, kernel=(1, 1, 1), stride=(1, 1, 2), pool_type="avg", pooling_convention="full")
    assert computed(net, np.ones((1, 1, 1, 1, 4), np.float32)).ravel().tolist() == [1, 1, 0]


def test_a_quadratic_of_integers_takes_whole_parameters() -> None:
    net = sym.contrib.quadratic(DATA, a=3, b=-1.5)
    assert computed(net, np.array([1, 2], np.int32)).tolist() == [2, 10]


def test_a_place_at_infinity_gets_no_gradient() -> None:
    executor = sym.BilinearSampler(DATA, sym.Variable("grid")).simple_bind(cpu(), data=(1, 1, 2, 2), grid=(1, 2, 1, 1))
    executor.forward(is_train=True, data=np.ones((1, 1, 2, 2)), grid=np.array([[[[-np.inf]], [[0.5]]]]))
    executor.backward([nd.ones((1, 1, 1, 1))])
    assert executor.grad_dict["grid"].asnumpy().ravel().tolist() == [0, 0]


def test_a_grid_of_one_row_is_refused() -> None:
    with pytest.raises(MXNetError, match="expected a target_shape of two numbers of at least 2"):
        sym.GridGenerator(DATA, transform_type="affine", target_shape=(1, 3)).infer_shape(data=(1, 6))
