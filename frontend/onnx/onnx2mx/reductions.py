"""Reductions, sorting, and sums along an axis."""
from __future__ import annotations

from mxc.onnx.extents import axes_of
from mxc.onnx.onnx2mx.reader import Call, Converter, Tensor


def reduction(op_name: str, **params: object) -> Converter:
    """A reduction over axes; without axes over all, or (`noop_with_empty_axes`) over none."""
    def convert(c: Call) -> Tensor:
        return reduced(c, c.tensor(), op_name, **params)

    return convert


def reduced(c: Call, data: Tensor, op_name: str, **params: object) -> Tensor:
    """A tensor reduced over the axes that the node names."""
    axes, keep = c.axes(), bool(c.attr("keepdims", 1))
    if not axes:
        if c.attr("noop_with_empty_axes", 0):
            return c.op("_copy", data)
        axes = [*range(data.rank)]
    if data.dtype == "bool":
        data = c.cast(data, "int32")
    return c.op(op_name, data, axis=tuple(axis % data.rank for axis in axes), keepdims=keep, **params)


def sum_of_squares(c: Call) -> Tensor:
    return reduced(c, c.op("square", c.tensor()), "sum")


def log_of_sum(c: Call) -> Tensor:
    return c.op("log", reduced(c, c.tensor(), "sum"))


def log_of_sum_of_exp(c: Call) -> Tensor:
    """The largest element is taken out before, so that no exponential overflows."""
    data, axes = c.tensor(), c.axes()
    over = tuple(axis % data.rank for axis in axes) if axes else tuple(range(data.rank))
    largest = c.op("max", data, axis=over, keepdims=True)
    total = c.op("sum", c.op("exp", c.op("broadcast_sub", data, largest)), axis=over, keepdims=True)
    made = c.op("elemwise_add", c.op("log", total), largest)
    if c.attr("keepdims", 1):
        return made
    rest = [[size for axis, size in enumerate(shape) if axis not in over] for shape in data.extents]
    return c.reshape(made, (tuple(rest[0]), tuple(rest[1])))


def place_of_extreme(op_name: str) -> Converter:
    """Where the largest or smallest element is; among equal ones the first."""
    def convert(c: Call) -> Tensor:
        c.refuse_unless(not c.attr("select_last_index", 0), "select_last_index")
        made = c.op(op_name, c.tensor(), axis=c.attr("axis", 0), keepdims=bool(c.attr("keepdims", 1)))
        return c.op("Cast", made, dtype="int64")

    return convert


def topk(c: Call) -> list[Tensor]:
    count, axis = int(c.known(1, "K").reshape(())), c.attr("axis", -1)
    return c.many("topk", c.tensor(), k=count, axis=axis, ret_typ="both", dtype="int64",
                  is_ascend=not c.attr("largest", 1))


def cumulative_sum(c: Call) -> Tensor:
    data, axis = c.tensor(), c.axis(int(c.known(1, "axis").reshape(())))
    turned = bool(c.attr("reverse", 0))
    made = c.op("reverse", data, axis=(axis,)) if turned else data
    total = c.op("_np_cumsum", made, axis=axis)
    if c.attr("exclusive", 0):
        total = c.op("elemwise_sub", total, made)
    return c.op("reverse", total, axis=(axis,)) if turned else total


def hardmax(c: Call) -> Tensor:
    data, axis = c.tensor(), c.axis(c.attr("axis", -1))
    last, back = c.move_last(data, axis)
    depth = c.fixed(axes_of(last.extents)[-1], "the axis")
    return c.transpose(c.op("one_hot", c.op("argmax", last, axis=-1), depth=depth, dtype=data.dtype), back)


CONVERTERS: dict[str, Converter] = {
    "ReduceSum": reduction("sum"), "ReduceMean": reduction("mean"), "ReduceMax": reduction("max"),
    "ReduceMin": reduction("min"), "ReduceProd": reduction("prod"), "ReduceL1": reduction("norm", ord=1),
    "ReduceL2": reduction("norm", ord=2), "ReduceSumSquare": sum_of_squares, "ReduceLogSum": log_of_sum,
    "ReduceLogSumExp": log_of_sum_of_exp, "ArgMax": place_of_extreme("argmax"), "ArgMin": place_of_extreme("argmin"),
    "TopK": topk, "CumSum": cumulative_sum, "Hardmax": hardmax,
}
