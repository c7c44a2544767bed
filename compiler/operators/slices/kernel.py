"""Index rules of slices, splits, joins and borders."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode, replaced
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.operators.slices.shape import diagonal_axes, slice_bounds, slice_ranges
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.operator import Params


def slice_axis(c: IndexNode, params: Params, index: Index) -> Value:
    """Elements from `begin` on; negative ones count from the end."""
    axis = params.axis % len(index)
    begin, _ = slice_bounds(params, c.shape(0)[axis])
    return c.load(0, replaced(index, axis, ir.apply("add", index[axis], number(begin))))


def concat(c: IndexNode, params: Params, index: Index) -> Value:
    """The inputs one after the other along `dim`; each is read only where the place is in its stretch."""
    axis = params.dim % len(index)
    here, start = index[axis], 0
    result = ir.const(0, c.out_dtype)
    for k in range(c.count):
        stop = start + c.shape(k)[axis]
        inside = ir.apply("and", ir.apply("ge", here, number(start)), ir.apply("lt", here, number(stop)))
        moved = ir.apply("sub", here, number(start))
        result = c.load(k, replaced(index, axis, moved), inside, result)
        start = stop
    return result


def slice_channel(c: IndexNode, params: Params, index: Index) -> Value:
    """Equal parts along `axis`; with `squeeze_axis` parts of size 1 without that axis."""
    shape = c.shape(0)
    axis = params.axis % len(shape)
    first = number(c.output * (shape[axis] // params.num_outputs))
    if params.squeeze_axis:
        return c.load(0, (*index[:axis], first, *index[axis:]))
    return c.load(0, replaced(index, axis, ir.apply("add", index[axis], first)))


def _all(conditions: Sequence[Value]) -> Value:
    """Whether all conditions hold; there is at least one."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = ir.apply("and", result, condition)
    return result


def _within(place: Value, count: int) -> list[Value]:
    return [ir.apply("ge", place, number(0)), ir.apply("lt", place, number(count))]


def strided_slice(c: IndexNode, params: Params, index: Index) -> Value:
    """Element i of an axis is element begin + step * i of the data's."""
    ranges = slice_ranges(params, c.shape(0))
    return c.load(0, [ir.apply("add", ir.apply("mul", i, number(r.step)), number(r.start))
                      for i, r in zip(index, ranges, strict=True)])


def slice_assign(c: IndexNode, params: Params, index: Index) -> Value:
    """rhs where the place is one that slice takes, else lhs."""
    place: list[Value] = []
    inside: list[Value] = []
    for i, r, extent in zip(index, slice_ranges(params, c.shape(0)), c.out_shape, strict=True):
        if r == range(extent):
            place.append(i)
            continue
        stride, start = abs(r.step), number(r.start)
        offset = ir.apply("sub", i, start) if r.step > 0 else ir.apply("sub", start, i)
        if stride > 1:
            # Whole strides are added, so that no negative number is divided.
            before = -(-(r.start if r.step > 0 else extent - 1 - r.start) // stride)
            shifted = ir.apply("add", offset, number(before * stride))
            inside.append(ir.apply("eq", ir.apply("mod", shifted, number(stride)), number(0)))
            offset = ir.apply("sub", ir.apply("div", shifted, number(stride)), number(before))
        inside += _within(offset, len(r))
        place.append(offset)
    return c.load(1, place, _all(inside), c.load(0, index)) if inside else c.load(1, place)


def pad(c: IndexNode, params: Params, index: Index) -> Value:
    """Outside of the data a number, the last element, or the elements mirrored at the last one."""
    place: list[Value] = []
    inside: list[Value] = []
    for i, before, extent, whole in zip(index, params.pad_width[::2], c.shape(0), c.out_shape, strict=True):
        moved = ir.apply("sub", i, number(before))
        last = number(extent - 1)
        if extent == whole:
            place.append(i)
        elif params.mode == "constant":
            place.append(moved)
            inside += _within(moved, extent)
        elif params.mode == "edge":
            place.append(ir.apply("min", ir.apply("max", moved, number(0)), last))
        else:
            distance = ir.apply("max", moved, ir.apply("sub", number(before), i))
            place.append(ir.apply("min", distance, ir.apply("sub", number(2 * (extent - 1)), distance)))
    if not inside:
        return c.load(0, place)
    return c.load(0, place, _all(inside), ir.const(number_as(params.constant_value, c.out_dtype), c.out_dtype))


def diag(c: IndexNode, params: Params, index: Index) -> Value:
    """The diagonal over two axes of the data; it is the output's last axis."""
    rank = len(c.shape(0))
    first, second = diagonal_axes(params, rank)
    rest = iter(index[:-1])
    ends = {first: max(0, -params.k), second: max(0, params.k)}
    return c.load(0, [ir.apply("add", index[-1], number(ends[a])) if a in ends else next(rest) for a in range(rank)])


def on_diagonal(c: IndexNode, params: Params, index: Index) -> Value:
    """The data's last axis on the diagonal over two axes of the output, zero elsewhere."""
    first, second = diagonal_axes(params, len(index))
    row, column = index[first], index[second]
    rest = [i for a, i in enumerate(index) if a not in (first, second)]
    inside = ir.apply("eq", ir.apply("sub", column, row), number(params.k))
    place = ir.apply("sub", row, number(max(0, -params.k)))
    return c.load(0, (*rest, place), inside, ir.const(0, c.out_dtype))
