"""Index rules of operators on boxes: each coordinate from the coordinates that it depends on."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.table import Params


def choice(axis: Value, first: float, second: float, dtype: str) -> Value:
    """`first` where `axis` is 0, else `second`."""
    one, two = (ir.const(float(x), dtype) for x in (first, second))
    return one if first == second else ir.apply("where", ir.apply("eq", axis, number(0)), one, two)


def halved(value: Value) -> Value:
    return ir.apply("mul", value, ir.const(0.5, value.dtype))


def box_decode(c: Context, params: Params, index: Index) -> Value:
    """centre - half of the size in columns 0 and 1, centre + half of it in columns 2 and 3."""
    batch, row, column = index
    axis, dtype = ir.apply("mod", column, number(2)), c.out_dtype
    other = ir.apply("add", axis, number(2))
    at, size = (c.load(1, (number(0), row, k)) for k in (axis, other))
    if params.format == "corner":
        size = ir.apply("sub", size, at)
        at = ir.apply("add", at, halved(size))
    shift = ir.apply("mul", c.load(0, (batch, row, axis)), choice(axis, params.std0, params.std1, dtype))
    grown = ir.apply("mul", c.load(0, (batch, row, other)), choice(axis, params.std2, params.std3, dtype))
    if params.clip > 0:
        grown = ir.apply("min", grown, ir.const(params.clip, dtype))
    centre = ir.apply("add", ir.apply("mul", shift, size), at)
    half = ir.apply("mul", ir.apply("exp", grown), halved(size))
    return ir.apply("where", ir.apply("lt", column, number(2)), ir.apply("sub", centre, half),
                    ir.apply("add", centre, half))


def box_iou(c: Context, params: Params, index: Index) -> Value:
    """Intersection over union of box index[:m] of lhs and box index[m:] of rhs."""
    split, zero = len(c.shape(0)) - 1, ir.const(0.0, c.out_dtype)
    sides = []
    for k, place in enumerate((index[:split], index[split:])):
        a, b, x, y = (c.load(k, (*place, number(i))) for i in range(4))
        width, height = (x, y) if params.format == "center" else (ir.apply("sub", x, a), ir.apply("sub", y, b))
        if params.format == "center":
            a, b = ir.apply("sub", a, halved(x)), ir.apply("sub", b, halved(y))
            x, y = ir.apply("add", a, width), ir.apply("add", b, height)
        negative = ir.apply("or", ir.apply("lt", width, zero), ir.apply("lt", height, zero))
        sides.append((a, b, x, y, ir.apply("where", negative, zero, ir.apply("mul", width, height))))
    one, two = sides
    width, height = (ir.apply("max", ir.apply("sub", ir.apply("min", one[i + 2], two[i + 2]),
                                              ir.apply("max", one[i], two[i])), zero) for i in (0, 1))
    common = ir.apply("mul", width, height)
    union = ir.apply("sub", ir.apply("add", one[4], two[4]), common)
    return ir.apply("where", ir.apply("gt", common, zero), ir.apply("div", common, union), zero)


def kept_boxes(c: Context, params: Params, index: Index) -> Value:
    """The element of the row that `order` names; -1 where it names none.

    Corners become centre and size, or the reverse, in rows whose first coordinate is not negative.
    """
    place, column = index
    row, blank = ir.cast(c.load(1, (place,)), INDEX), ir.const(-1.0, c.out_dtype)
    named = ir.apply("ge", row, number(0))
    value = c.load(0, (row, column), named, blank)
    if params.in_format == params.out_format:
        return value
    start = number(params.coord_start)
    inside = ir.apply("and", ir.apply("ge", column, start), ir.apply("lt", column, number(params.coord_start + 4)))
    offset = ir.apply("where", inside, ir.apply("sub", column, start), number(0))
    axis, low = ir.apply("mod", offset, number(2)), ir.apply("lt", offset, number(2))
    one, two = (c.load(0, (row, ir.apply("add", axis, number(params.coord_start + k))), named, blank) for k in (0, 2))
    if params.out_format == "center":
        other = ir.apply("where", low, halved(ir.apply("add", one, two)), ir.apply("sub", two, one))
    else:
        half = halved(two)
        other = ir.apply("where", low, ir.apply("sub", one, half), ir.apply("add", one, half))
    changed = ir.apply("and", inside, ir.apply("ge", c.load(0, (row, start), named, blank),
                                               ir.const(0.0, c.out_dtype)))
    return ir.apply("where", changed, other, value)
