"""What went wrong for users of MXNet: operators that move elements. Each test's name begins with its report.

Everything runs twice: by the definitions of the kernels that the compiler makes, and (slow) by generated code.
"""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from programs import lowered
from test_reports_operators import Run, by_definition, native

import mxc as mx
from mxc.compiler.error import MXNetError

X, Y = mx.sym.Variable("x"), mx.sym.Variable("y")
CUBE = np.arange(60, dtype="float32").reshape(3, 4, 5)


@pytest.fixture(params=["definitions", pytest.param("native", marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest) -> Run:
    """run(symbol, arrays, is_train, grad_req) -> outputs ("0", "1", ...) and "grad NAME"."""
    return native if request.param == "native" else by_definition


def groups(net: Any, **shapes: tuple[int, ...]) -> int:
    """How many kernels an inference forward has."""
    return len(lowered(net.graph, shapes, None, {}, False).groups)


# -- slices

O11 = [
    ((0, 1), (2, 3), ()),
    ((-2, None), (None, -1), ()),
    ((None, 1), (-1, None), ()),
    ((2, 0), (None, 4), (-1, 2)),
    ((None, None), (None, None), (-1, -1)),
    ((-1, -1), (None, 0), (-2, -1)),
    ((0, -9), (9, 9), ()),
    ((9, 3), (None, -4), (-1, -3)),
]


@pytest.mark.parametrize(("begin", "end", "step"), O11)
def test_o11_slices_are_numpys(run: Run, begin: tuple, end: tuple, step: tuple) -> None:
    expected = CUBE[tuple(slice(b, e, s) for b, e, s in zip(begin, end, step or (None,) * 2, strict=True))]
    net = mx.sym.slice(X, begin=begin, end=end, **({"step": step} if step else {}))
    result = run(net, {"x": CUBE}, True, "write")
    np.testing.assert_array_equal(result["0"], expected)
    assert result["grad x"].sum() == expected.size and set(np.unique(result["grad x"])) <= {0, 1}
    again = mx.sym.load_json(net.tojson())
    np.testing.assert_array_equal(by_definition(again, {"x": CUBE})["0"], expected)


def test_o11_none_is_written_and_read_as_text() -> None:
    node = json.loads(mx.sym.slice(X, begin=(None, 1), end=(2, None), step=(None, 2)).tojson())["nodes"][1]
    assert node["attrs"] == {"begin": "(None, 1)", "end": "(2, None)", "step": "(None, 2)"}


@pytest.mark.parametrize(("begin", "end", "step"), [(3, -1, -1), (3, 0, 1), (1, 1, 1), (0, 2, -1)])
def test_o11_a_slice_of_nothing_is_refused_with_the_way_out(begin: int, end: int, step: int) -> None:
    """A negative end counts from the end: the first element is reached by end None alone."""
    with pytest.raises(MXNetError, match=r"nothing is left of axis 0 of 4 elements.*end must be None"):
        mx.sym.slice(X, begin=(begin,), end=(end,), step=(step,)).infer_shape(x=(4,))
    assert mx.sym.slice(X, begin=(3,), end=(None,), step=(-1,)).infer_shape(x=(4,))[1] == [(4,)]


M02 = {
    "slice_axis": lambda: (
        mx.sym.slice_axis(X, axis=1, begin=0, end=-1) + mx.sym.slice_axis(X, axis=1, begin=1, end=None),
        lambda x: x[:, :-1] + x[:, 1:],
    ),
    "slice": lambda: (
        mx.sym.slice(X, begin=(None, 0), end=(None, -1)) * mx.sym.slice(X, begin=(None, 1), end=(None, None)),
        lambda x: x[:, :-1] * x[:, 1:],
    ),
    "backwards": lambda: (
        mx.sym.slice(X, begin=(None, -1), end=(None, None), step=(None, -1)) - X,
        lambda x: x[:, ::-1] - x,
    ),
    "strided": lambda: (
        mx.sym.slice(mx.sym.transpose(X, axes=(0, 2, 1)), begin=(None, -1), end=(None, None), step=(2, -2)) + 1,
        lambda x: x.transpose(0, 2, 1)[::2, ::-2] + 1,
    ),
    "broadcast": lambda: (
        mx.sym.broadcast_add(mx.sym.slice(X, begin=(None, -1), end=(None, None)), X),
        lambda x: x[:, -1:] + x,
    ),
    "tile": lambda: (
        mx.sym.tile(mx.sym.slice(X, begin=(None, -3), end=(None, -1)), reps=(2, 1)) * 2,
        lambda x: np.tile(x[:, -3:-1], (2, 1)) * 2,
    ),
    "reverse": lambda: (
        mx.sym.reverse(X, axis=(0, 2)) + mx.sym.repeat(mx.sym.slice(X, begin=(0,), end=(-2,)), repeats=3, axis=0),
        lambda x: x[::-1, :, ::-1] + np.repeat(x[:-2], 3, 0),
    ),
}


@pytest.mark.parametrize("name", M02)
def test_m02_fused_slices_are_what_they_are_alone(run: Run, name: str) -> None:
    net, expected = M02[name]()
    np.testing.assert_array_equal(run(net, {"x": CUBE})["0"], expected(CUBE))
    assert groups(net, x=CUBE.shape) == 1
    gradient = run(net, {"x": CUBE}, True, "write")["grad x"]
    rng = np.random.default_rng(0)
    direction = rng.integers(-3, 4, CUBE.shape).astype("float32")
    change = (expected(CUBE + direction).sum(dtype="float64") - expected(CUBE - direction).sum(dtype="float64")) / 2
    np.testing.assert_allclose((gradient * direction).sum(dtype="float64"), change)


def test_m02_a_slice_a_repetition_and_arithmetic_are_one_kernel() -> None:
    part = mx.sym.slice(X, begin=(1, None), end=(None, -1))
    assert groups(mx.sym.exp(mx.sym.tile(part, reps=(2, 1, 1))) + 1, x=(3, 4, 5)) == 1


# -- Crop


def test_o19_crop_cuts_the_first_to_the_size_of_the_second(run: Run) -> None:
    data, like = np.arange(60, dtype="float32").reshape(1, 2, 5, 6), np.ones((1, 3, 4, 3), "float32")
    given = {"x": data, "y": like}
    corner = run(mx.sym.Crop(X, Y, num_args=2), given, True, "write")
    np.testing.assert_array_equal(corner["0"], data[:, :, :4, :3])
    assert corner["grad x"].sum() == 24 and not corner["grad y"].any()
    middle = run(mx.sym.Crop(X, Y, num_args=2, center_crop=True), given)["0"]
    np.testing.assert_array_equal(middle, data[:, :, 0:4, 1:4])
    with pytest.raises(MXNetError, match=r"cannot cut \(6, 3\) out of \(1, 2, 5, 6\)"):
        mx.sym.Crop(X, Y, num_args=2).infer_shape(x=(1, 2, 5, 6), y=(1, 2, 6, 3))


def test_o19_odd_sizes_meet_after_upsampling(run: Run) -> None:
    """The feature pyramid of a 480 x 641 image: doubling 11 gives 22, which is cut to 21."""
    merged = mx.sym.Crop(mx.sym.UpSampling(X, scale=2, sample_type="nearest", num_args=1), Y, num_args=2) + Y
    given = {"x": np.arange(11, dtype="float32").reshape(1, 1, 1, 11), "y": np.zeros((1, 1, 2, 21), "float32")}
    result = run(merged, given, True, "write")
    np.testing.assert_array_equal(result["0"][0, 0], np.tile(np.repeat(np.arange(11), 2)[:21], (2, 1)))
    np.testing.assert_array_equal(result["grad x"].ravel(), [4] * 10 + [2])


# -- reshaping like another


@pytest.mark.parametrize(
    ("lhs", "rhs", "parts", "expected"),
    [
        ((6, 2), (3, 4), {}, (3, 4)),
        ((30, 7), (15, 2, 4), {"lhs_end": 1, "rhs_end": 2}, (15, 2, 7)),
        ((2, 3, 4), (5, 12), {"lhs_begin": -2, "rhs_begin": -1}, (2, 12)),
        ((2, 12), (3, 4), {"lhs_begin": 1, "lhs_end": None, "rhs_begin": 0, "rhs_end": 2}, (2, 3, 4)),
    ],
)
def test_o10_reshape_like_replaces_a_stretch_of_axes(lhs: tuple, rhs: tuple, parts: dict, expected: tuple) -> None:
    net = mx.sym.reshape_like(X, Y, **parts)
    assert net.infer_shape(x=lhs, y=rhs)[1] == [expected]


# -- names and refusals


def test_outputs_of_split_v2_are_numbered_where_there_are_several() -> None:
    split = mx.sym._internal._split_v2
    assert split(X, indices=(), sections=1, name="s").list_outputs() == ["s_output"]
    assert split(X, indices=(), sections=2, name="s").list_outputs() == ["s_output0", "s_output1"]
    assert split(X, indices=(0, 2), name="s").list_outputs() == ["s_output0", "s_output1"]
    assert mx.sym.SliceChannel(X, num_outputs=1, name="s").list_outputs() == ["s_output0"]


def test_upsampling_names_its_inputs_by_what_it_does() -> None:
    near = mx.sym.UpSampling(scale=2, sample_type="nearest", num_args=2, name="u")
    linear = mx.sym.UpSampling(scale=2, sample_type="bilinear", num_filter=3, num_args=1, name="u")
    assert near.list_arguments() == ["u_arg0", "u_arg1"]
    assert linear.list_arguments() == ["u_data", "u_weight"]
    assert linear.infer_shape(u_data=(1, 3, 4, 5))[:2] == ([(1, 3, 4, 5), (3, 1, 4, 4)], [(1, 3, 8, 10)])


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        (lambda: mx.sym.repeat(X, repeats=0), (2, 3)),
        (lambda: mx.sym.diag(X, k=4), (3, 4)),
        (lambda: mx.sym._internal._split_v2(X, indices=(0, 2, 2)), (2, 7)),
        (lambda: mx.sym.Pad(X, mode="constant", pad_width=(0, 0, 0, 0, -1, 0, 0, 0)), (1, 1, 3, 3)),
        (lambda: mx.sym.stack(X, mx.sym.zeros((3, 2)), num_args=2), (2, 3)),
        (lambda: mx.sym.contrib.index_array(X, axes=(2,)), (2, 3)),
    ],
)
def test_results_without_elements_and_unfit_inputs_are_refused(net: Any, shape: tuple) -> None:
    with pytest.raises(MXNetError):
        net().infer_shape(x=shape)


def test_khatri_rao_has_no_gradient() -> None:
    net = mx.sym.khatri_rao(X, Y, num_args=2)
    with pytest.raises(MXNetError, match="no gradient"):
        by_definition(net, {"x": np.ones((2, 3), "float32"), "y": np.ones((1, 3), "float32")}, True, "write")
