"""Reductions, sorting and products of matrices."""
from __future__ import annotations

import numpy as np

from mxc.onnx.extents import Extents, axes_of
from mxc.onnx.mx2onnx.writer import Call, Converter, Names


def reduced_axes(c: Call, name: str = "axis") -> list[int]:
    """The axes that a reduction goes over."""
    axes = c.params[name]
    given = [*range(c.rank())] if axes is None or axes == () else [c.axis(axis) for axis in axes]
    if c.params.get("exclude") and axes not in (None, ()):
        return [axis for axis in range(c.rank()) if axis not in given]
    return given


def kept(c: Call, made: str, axes: list[int]) -> str:
    """A reduction over all axes has one element in MXNet and no axes in ONNX."""
    return made if c.params["keepdims"] or len(axes) < c.rank() else c.emit("Reshape", made, c.ints(1))


def reduction(op_type: str) -> Converter:
    """A reduction over axes."""
    def convert(c: Call) -> str:
        axes, keep = reduced_axes(c), int(c.params["keepdims"])
        if op_type == "ReduceSum":  # in this opset the only one that takes its axes as an input
            return kept(c, c.emit(op_type, c.inputs[0], c.ints(*axes), keepdims=keep), axes)
        return kept(c, c.emit(op_type, c.inputs[0], axes=axes, keepdims=keep), axes)

    return convert


def norm(c: Call) -> str:
    made = reduction("ReduceL1" if c.params["ord"] == 1 else "ReduceL2")(c)
    assert isinstance(made, str)
    return made if c.out_dtype() == c.dtype() else c.cast(made, c.out_dtype())


def moments(c: Call) -> Names:
    axes, keep = reduced_axes(c, "axes"), int(c.params["keepdims"])
    mean = c.emit("ReduceMean", c.inputs[0], axes=axes, keepdims=1)
    apart = c.emit("Sub", c.inputs[0], mean)
    variance = c.emit("ReduceMean", c.emit("Mul", apart, apart), axes=axes, keepdims=keep)
    if not keep:
        mean = c.emit("ReduceMean", c.inputs[0], axes=axes, keepdims=0)
    return [kept(c, mean, axes), kept(c, variance, axes)]


def place_of_extreme(op_type: str) -> Converter:
    """Where the largest or smallest element is, in the data's dtype."""
    def convert(c: Call) -> str:
        data, axis, keep = c.inputs[0], c.params["axis"], c.params["keepdims"]
        if axis is None:
            made = c.emit(op_type, c.emit("Reshape", data, c.ints(-1)), axis=0, keepdims=1)
            if keep:
                made = c.emit("Reshape", made, c.ints(*[1] * c.rank()))
        else:
            made = c.emit(op_type, data, axis=axis, keepdims=int(keep))
            if c.rank() == 1 and not keep:
                made = c.emit("Reshape", made, c.ints(1))
        return c.cast(made, c.out_dtype())

    return convert


def channel_of_largest(c: Call) -> str:
    return c.cast(c.emit("ArgMax", c.inputs[0], axis=1, keepdims=0), c.out_dtype())


def sorted_part(c: Call, count: int | None) -> tuple[str, str]:
    """Values and indices along an axis in order, the first `count` of them; None: all."""
    data, axis = c.inputs[0], c.params["axis"]
    if axis is None:
        data, axis = c.emit("Reshape", data, c.ints(-1)), 0
        size = int(np.prod(c.fixed_shape(c.extents())))
    else:
        size = c.fixed_axis(c.axis(axis))
    values, indices = c.emit_many(2, "TopK", data, c.ints(min(count or size, size)), axis=axis,
                                  largest=int(not c.params["is_ascend"]))
    return values, indices


def topk(c: Call) -> str | Names:
    c.refuse_unless(c.params["ret_typ"] != "mask", "ret_typ")
    values, indices = sorted_part(c, c.params["k"] or None)
    kind = c.params["ret_typ"]
    if kind == "value":
        return values
    indices = c.cast(indices, c.params["dtype"])
    return indices if kind == "indices" else [values, indices]


def argsort(c: Call) -> str:
    return c.cast(sorted_part(c, None)[1], c.out_dtype())


def sort(c: Call) -> str:
    return sorted_part(c, None)[0]


def cumulative_sum(c: Call) -> str:
    data, axis = c.inputs[0], c.params["axis"]
    if axis is None:
        data, axis = c.emit("Reshape", data, c.ints(-1)), 0
    made = c.emit("CumSum", data, c.writer.constant(np.array(axis, np.int64), "axis"))
    return made if c.out_dtype() == c.dtype() else c.cast(made, c.out_dtype())


def last_two_turned(c: Call, i: int, turned: bool) -> str:
    """Input i with its last two axes exchanged where `turned`."""
    if not turned:
        return c.inputs[i]
    rank = c.rank(i)
    return c.emit("Transpose", c.inputs[i], perm=[*range(rank - 2), rank - 1, rank - 2])


def batch_dot(c: Call) -> str:
    return c.emit("MatMul", last_two_turned(c, 0, c.params["transpose_a"]),
                  last_two_turned(c, 1, c.params["transpose_b"]))


def dot(c: Call) -> str:
    left, right = c.rank(0), c.rank(1)
    if left == right == 1:
        return c.emit("Reshape", c.emit("MatMul", *c.inputs), c.ints(1))
    if left <= 2 and right <= 2:
        return c.emit("MatMul", *(last_two_turned(c, i, turned and c.rank(i) == 2) for i, turned in
                                  enumerate((c.params["transpose_a"], c.params["transpose_b"]))))
    c.refuse_unless(not c.params["transpose_a"], "transpose_a")
    c.refuse_unless(not c.params["transpose_b"], "transpose_b")
    if right <= 2:
        return c.emit("MatMul", *c.inputs)
    size = c.fixed_axis(0, 1)  # the product of matrices, of which the second has all further axes as columns
    flat = c.emit("Reshape", c.inputs[1], c.ints(size, -1))
    made = c.emit("MatMul", c.inputs[0], flat)
    rows = c.extents(0)
    columns = [int(np.prod(shape[1:])) for shape in c.extents(1)]
    source: Extents = (*rows[0][:-1], columns[0]), (*rows[1][:-1], columns[1])
    return c.reshape(made, source, c.out_extents())


def self_attention_parts(c: Call) -> list[str]:
    """Queries, keys and values (batch * heads, length, depth) of projections (length, batch, heads * 3 * depth)."""
    heads = c.params["heads"]
    depth = c.fixed_axis(2) // (3 * heads)
    length = axes_of(c.extents())[0]
    c.fixed_axis(0)
    apart = c.emit("Reshape", c.inputs[0], c.ints(length[0], -1, 3, depth))
    parts = c.emit_many(3, "Split", apart, axis=2)
    return [c.emit("Transpose", c.emit("Squeeze", part, c.ints(2)), perm=[1, 0, 2]) for part in parts]


def attention_scores(c: Call) -> str:
    queries, keys, _ = self_attention_parts(c)
    depth = c.fixed_axis(2) // (3 * c.params["heads"])
    scaled = c.emit("Mul", queries, c.number(depth ** -0.5))
    return c.emit("MatMul", scaled, c.emit("Transpose", keys, perm=[0, 2, 1]))


def attention_values(c: Call) -> str:
    values = self_attention_parts(c)[2]
    made = c.emit("Transpose", c.emit("MatMul", c.inputs[1], values), perm=[1, 0, 2])
    return c.emit("Reshape", made, c.ints(c.fixed_axis(0), -1, c.fixed_axis(2) // 3))


CONVERTERS: dict[str, Converter] = {
    "sum": reduction("ReduceSum"), "mean": reduction("ReduceMean"), "max": reduction("ReduceMax"),
    "min": reduction("ReduceMin"), "prod": reduction("ReduceProd"), "norm": norm, "moments": moments,
    "_square_sum": reduction("ReduceSumSquare"), "argmax": place_of_extreme("ArgMax"),
    "argmin": place_of_extreme("ArgMin"), "argmax_channel": channel_of_largest, "topk": topk, "argsort": argsort,
    "sort": sort, "_np_cumsum": cumulative_sum, "dot": dot, "batch_dot": batch_dot,
    "_contrib_interleaved_matmul_selfatt_qk": attention_scores,
    "_contrib_interleaved_matmul_selfatt_valatt": attention_values,
}
