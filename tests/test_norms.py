"""Normalisations, losses besides softmax, argmax and old pooling: one kernel, hard numbers, and where MXNet differs."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from programs import lowered

import mxc as mx
from mxc.compiler.error import MXNetError

X = mx.sym.Variable("x")
ROW = mx.sym.Reshape(X, shape=(1, 1, -1))


def run(net: mx.sym.Symbol, given: Mapping[str, np.ndarray], is_train: bool = False) -> list[np.ndarray]:
    """The outputs and, in training, the gradients of all arguments, of ones as head gradients."""
    names = net.list_arguments()
    shapes, dtypes = {n: given[n].shape for n in names}, {n: str(given[n].dtype) for n in names}
    program = lowered(net.graph, shapes, dtypes, dict.fromkeys(names, "write" if is_train else "null"), is_train)
    heads = {f"_head_grad_{i}": np.ones(shape) for i, shape in enumerate(net.infer_shape(**shapes)[1])}
    return program.run({**given, **heads})[0]


@pytest.mark.parametrize("net", [mx.sym.LayerNorm(X, name="n"), mx.sym.LayerNorm(X, axis=0, name="n"),
                                 mx.sym.InstanceNorm(mx.sym.Reshape(X, shape=(2, 4, 8)), name="n"),
                                 mx.sym.GroupNorm(mx.sym.Reshape(X, shape=(2, 4, 8)), num_groups=2, name="n"),
                                 mx.sym.L2Normalization(X), mx.sym.relu(mx.sym.LayerNorm(X * 2, name="n") + 1),
                                 mx.sym.argmax(mx.sym.square(X), axis=1)])
def test_one_kernel_in_inference(net: mx.sym.Symbol) -> None:
    names = net.list_arguments()
    shapes = dict(zip(names, net.infer_shape(x=(8, 8))[0], strict=True))
    assert len(lowered(net.graph, shapes).launches) == 1


NORMS = [mx.sym.LayerNorm(X, name="n"), mx.sym.GroupNorm(ROW, name="n"), mx.sym.InstanceNorm(ROW, name="n")]


@pytest.mark.parametrize(("value", "expected"), [(0.0, 0.0), (1000.0, 0.125), (60000.0, 0.125)])
def test_a_length_of_halves(value: float, expected: float) -> None:
    """The sum of squares is beyond 65504, or 0 with an eps that is 0 in float16."""
    out, _ = run(mx.sym.L2Normalization(X), {"x": np.full((1, 64), value, "float16")}, is_train=True)
    np.testing.assert_array_equal(out, np.full((1, 64), expected))


@pytest.mark.parametrize("net", NORMS)
@pytest.mark.parametrize("value", [0.0, 1000.0, 60000.0])
def test_a_constant_row_of_halves_is_beta(net: mx.sym.Symbol, value: float) -> None:
    shapes = net.infer_shape(x=(1, 64))[0]
    given = {name: np.full(shape, value if name == "x" else 0.5, "float16")
             for name, shape in zip(net.list_arguments(), shapes, strict=True)}
    out, to_x = run(net, given, is_train=True)[:2]
    np.testing.assert_array_equal(out, np.full(out.shape, 0.5))
    np.testing.assert_array_equal(to_x, np.zeros(to_x.shape))


@pytest.mark.parametrize("net", NORMS)
def test_large_halves(net: mx.sym.Symbol) -> None:
    """Sums and squares beyond 65504."""
    shapes = net.infer_shape(x=(1, 64))[0]
    x = np.where(np.arange(64) % 2, 3e4, -3e4).astype("float16").reshape(1, 64)
    given = {name: x if name == "x" else np.full(shape, name == "n_gamma", "float16")
             for name, shape in zip(net.list_arguments(), shapes, strict=True)}
    out = run(net, given)[0]
    np.testing.assert_array_equal(out.ravel(), np.sign(x).ravel())


def test_infinity_and_nan_stay_in_their_row() -> None:
    x = np.zeros((3, 4), "float32")
    x[0, 1], x[1, 2] = np.inf, np.nan
    ones = np.ones(4, "float32")
    out = run(mx.sym.LayerNorm(X, name="n"), {"x": x, "n_gamma": ones, "n_beta": ones})[0]
    assert np.isnan(out[:2]).all()
    np.testing.assert_array_equal(out[2], np.ones(4))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(5, 40), (3, 8), (2, 3, 100), (4, 7), (64,)])
def test_the_first_extreme_of_a_long_axis(op: str, dtype: str, shape: tuple[int, ...]):
    """Of equal ones the first, and of NaN the first, as NumPy's."""
    values = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    values[1] = np.nan
    if len(shape) > 1:
        values[0, ..., 3:5] = np.inf, -np.inf
    for keepdims in (False, True):
        found = getattr(mx.sym, op)(mx.sym.var("x"), axis=-1, keepdims=keepdims).eval(
            ctx=mx.cpu(), x=mx.nd.array(values, dtype=dtype))[0].asnumpy()
        wanted = getattr(np, op)(values, axis=-1, keepdims=keepdims)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("op, places", [("argmax", [1, 0, 0, 2]), ("argmin", [1, 0, 0, 0])])
def test_the_first_nan_and_the_first_of_equals(op: str, places: list[int]) -> None:
    x = np.array([[1, np.nan, 3], [np.nan, np.nan, 5], [2, 2, 2], [-np.inf, -np.inf, np.inf]], "float32")
    assert run(getattr(mx.sym, op)(X, axis=1), {"x": x})[0].tolist() == places
    assert getattr(mx.nd, op)(mx.nd.array(x), axis=1).asnumpy().tolist() == places


def test_square_sum_of_dense_arrays() -> None:
    x = np.array([[1, 2], [3, 4]], "float32")
    net = mx.sym._internal._square_sum(X, axis=1)
    out, grad = run(net, {"x": x}, is_train=True)
    assert (out.tolist(), grad.tolist()) == ([5, 25], (2 * x).tolist())


def test_old_max_pooling_passes_the_gradient_to_the_first_of_equals() -> None:
    x = np.ones((1, 1, 2, 2), "float32")
    grad = run(mx.sym.Pooling_v1(X, kernel=(2, 2)), {"x": x}, is_train=True)[1]
    assert grad.ravel().tolist() == [1, 0, 0, 0]


def test_cross_entropy_of_a_label_that_is_no_class() -> None:
    net = mx.sym.softmax_cross_entropy(X, mx.sym.Variable("label"))
    out = run(net, {"x": np.zeros((2, 4), "float32"), "label": np.array([-1, 4], "float32")})[0]
    np.testing.assert_allclose(out, [-2 * np.log(1e-8)], rtol=1e-6)


def test_cross_entropy_of_far_logits_and_masks() -> None:
    x = np.array([[1e4, -1e4, 0], [-np.inf, 0, 0]], "float32")
    net = mx.sym.softmax_cross_entropy(X, mx.sym.Variable("label"))
    out, grad = run(net, {"x": x, "label": np.array([0, 1], "float32")}, is_train=True)[:2]
    np.testing.assert_allclose(out, [np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(grad, [[0, 0, 0], [0, -0.5, 0.5]], atol=1e-7)


def test_statistics_of_sync_batch_norm_in_inference() -> None:
    net = mx.sym._internal._contrib_SyncBatchNorm(X, key="k", output_mean_var=True, name="n")
    vectors = {"n_gamma": [1, 1], "n_beta": [0, 0], "n_moving_mean": [1, 3], "n_moving_var": [1, 4]}
    given = {"x": np.ones((2, 2, 3), "float32")} | {k: np.array(v, "float32") for k, v in vectors.items()}
    out, mean, var = run(net, given)
    np.testing.assert_allclose(out[0, :, 0], [0, -1], atol=1e-3)
    np.testing.assert_allclose([mean, var], [[1, 3], [1, 4]], rtol=1e-5)


def test_refused() -> None:
    with pytest.raises(MXNetError, match="nsize"):
        mx.sym.LRN(X, nsize=0)
    with pytest.raises(MXNetError, match="bool"):
        mx.sym.argmax(X).infer_type(x="bool")
    with pytest.raises(MXNetError, match="4 axes"):
        mx.sym.Pooling_v1(X, kernel=(1, 1, 1)).infer_shape(x=(1, 1, 2, 2, 2))
    with pytest.raises(MXNetError, match="num_groups"):
        mx.sym.GroupNorm(X, num_groups=3).infer_shape(x=(1, 4, 2))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_window_of_pooling_v1_behind_the_image(dtype: str) -> None:
    """With the convention `full`; the maximum of nothing is -inf, as in MXNet, and the sum 0."""
    data = mx.nd.array(np.ones((1, 1, 4, 3)), dtype=dtype)
    for kind, beyond in (("max", -np.inf), ("sum", 0), ("avg", 0)):
        net = mx.sym.Pooling_v1(X, kernel=(1, 1), stride=(2, 3), pooling_convention="full", pool_type=kind)
        executor = net.bind(mx.cpu(), {"x": data}, {"x": mx.nd.zeros(data.shape, dtype=dtype)})
        wanted = [[[[1, beyond], [1, beyond], [beyond, beyond]]]]
        np.testing.assert_array_equal(executor.forward(is_train=True)[0].asnumpy(), wanted)
        executor.backward([mx.nd.ones((1, 1, 3, 2), dtype=dtype)])
        assert executor.grad_dict["x"].asnumpy()[0, 0].tolist() == [[1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]]
        assert mx.nd.Pooling_v1(data, kernel=(1, 1), stride=(2, 3), pooling_convention="full",
                                pool_type=kind).asnumpy().tolist() == wanted


def test_lrn_loops_over_no_more_channels_than_there_are():
    """Whatever nsize: its divisor is nsize, its window ends where the channels do."""
    x = np.linspace(-1, 1, 12, dtype=np.float64).reshape(2, 3, 2, 1)
    given = {"x": x}
    far, near = (run(mx.sym.LRN(X, nsize=size, alpha=size * 1e-2), given)[0] for size in (2**31 - 1, 5))
    np.testing.assert_allclose(far, near, rtol=1e-7)
