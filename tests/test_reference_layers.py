"""The layers' references where no golden case reaches: randomness, masked rows, figures known from elsewhere."""
from __future__ import annotations

import numpy as np
import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table


def run(op: str, *inputs: np.ndarray, is_train: bool = False, **params: object) -> list[np.ndarray]:
    operator = table.get(op)
    parsed = operator.make_params(params)
    dtypes = ["float32"] * operator.num_outputs(parsed)
    return operator.reference(parsed, [np.asarray(a, "float32") for a in inputs], dtypes, is_train,
                              np.random.default_rng(3))


def test_dropout_keeps_the_mean():
    ones = np.ones((200, 300))
    out, mask = run("Dropout", ones, is_train=True, p=0.3)
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.7)}
    assert abs(out.mean() - 1) < 0.01
    np.testing.assert_array_equal(out, mask)


def test_dropout_shares_the_mask_along_axes():
    out, mask = run("Dropout", np.ones((50, 4, 60)), is_train=True, p=0.5, axes=(1,))
    assert mask.shape == (50, 1, 60)
    assert (out == out[:, :1]).all()


@pytest.mark.parametrize(("mode", "is_train", "drops"), [("training", False, False), ("training", True, True),
                                                         ("always", False, True)])
def test_dropout_modes(mode, is_train, drops):
    out, _ = run("Dropout", np.ones(1000), is_train=is_train, mode=mode)
    assert (0 in out) == drops


def test_dropout_of_everything():
    assert not run("Dropout", np.ones(100), is_train=True, p=1.0)[0].any()


def test_rrelu_draws_slopes_in_training():
    data = -np.ones((100, 100))
    out, slopes = run("LeakyReLU", data, is_train=True, act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    np.testing.assert_allclose(out, -slopes)
    assert 0.2 <= slopes.min() < 0.21 and 0.39 < slopes.max() <= 0.4 and abs(slopes.mean() - 0.3) < 0.01


def test_rrelu_takes_the_middle_slope_in_inference():
    out, slopes = run("LeakyReLU", np.array([-2.0, 3.0]), act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    np.testing.assert_allclose(out, [-0.6, 3], rtol=1e-6)
    assert not slopes.any()


def test_average_counts_padding_unless_told_not_to():
    image = np.arange(1.0, 26).reshape(1, 1, 5, 5)
    given = {"kernel": (5, 5), "pad": (2, 2), "pool_type": "avg"}
    assert run("Pooling", image, **given)[0][0, 0, 0, 0] == np.float32(63 / 25)
    assert run("Pooling", image, **given, count_include_pad=False)[0][0, 0, 0, 0] == 7


def test_average_does_not_count_what_full_adds():
    image = np.ones((1, 1, 6, 6))
    for include in (True, False):
        out = run("Pooling", image, kernel=(3, 3), stride=(2, 2), pool_type="avg", pooling_convention="full",
                  count_include_pad=include)[0]
        np.testing.assert_array_equal(out, np.ones((1, 1, 3, 3)))


def test_global_pooling_has_no_convention():
    image = np.arange(12.0).reshape(1, 2, 3, 2)
    for convention in ("valid", "full", "same"):
        out = run("Pooling", image, global_pool=True, pooling_convention=convention, pool_type="avg")[0]
        np.testing.assert_array_equal(out, [[[[2.5]], [[8.5]]]])


@pytest.mark.parametrize("op", ["softmax", "softmin", "log_softmax", "SoftmaxActivation"])
def test_softmax_of_masked_elements(op):
    sign = -1 if op == "softmin" else 1
    out = run(op, sign * np.array([[1.0, -np.inf, 1.0], [1e4, -1e4, 1e4]]))[0]
    expected = np.array([[0.5, 0, 0.5]] * 2)
    np.testing.assert_allclose(np.exp(out) if op == "log_softmax" else out, expected)


def test_softmax_of_no_elements_is_zero():
    out = run("softmax", np.ones((2, 3)), [0, 2], use_length=True)[0]
    np.testing.assert_array_equal(out, [[0, 0, 0], [0.5, 0.5, 0]])


def test_deconvolution_has_no_bias_by_default_and_convolution_has():
    for op, names in (("Convolution", ("data", "weight", "bias")), ("Deconvolution", ("data", "weight"))):
        operator = table.get(op)
        assert operator.input_names(operator.make_params({"kernel": (3, 3), "num_filter": 2})) == names


@pytest.mark.parametrize(("op", "params", "message"), [
    ("Convolution", {"kernel": (3, 3), "num_filter": 2, "layout": "NHWC"}, "expected layout NCHW"),
    ("Pooling", {"kernel": (2, 2), "pooling_convention": "same"}, "same is for one axis of space"),
    ("Pooling", {"kernel": (2, 2), "pad": (2, 2)}, "larger than pad"),
    ("Pooling", {"kernel": (5, 5)}, "kernel size 5 exceeds"),
    ("Pooling", {"kernel": (2, 2), "pool_type": "lp"}, "p_value"),
    ("Reshape", {"shape": (5, -1)}, "elements"),
    ("transpose", {"axes": (0, 0, 1, 2)}, "order of 0 to 3"),
    ("SliceChannel", {"num_outputs": 2, "axis": 3}, "divisible by num_outputs=2"),
])
def test_messages(op, params, message):
    operator = table.get(op)
    rule = operator.rule("shape")
    assert rule is not None
    inputs = len(operator.input_names(operator.make_params(params)))
    outputs = operator.num_outputs(operator.make_params(params))
    with pytest.raises(MXNetError, match=message):
        rule(operator.make_params(params), [(1, 2, 4, 3)] + [None] * (inputs - 1), [None] * outputs)
