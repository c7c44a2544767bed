"""Index rules of operators on boxes: each coordinate from the coordinates that it depends on."""
from __future__ import annotations

import math
from collections.abc import Sequence

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
    negative = ir.apply("lt", c.load(0, (row, start), named, blank), ir.const(0.0, c.out_dtype))  # NaN is not
    return ir.apply("where", ir.apply("and", inside, ir.apply("not", negative)), other, value)


def offsets(ends: Sequence[tuple[Value, Value]]) -> tuple[Value, Value]:
    """Of two boxes in one direction: the distance of their centres, and the second's size, both in sizes of the first.

    ends: the lower ends of both, and the upper ends."""
    size, other = (ir.apply("sub", high, low) for low, high in zip(*ends, strict=True))
    at, to = (ir.apply("add", low, halved(s)) for low, s in zip(ends[0], (size, other), strict=True))
    return ir.apply("div", ir.apply("sub", to, at), size), ir.apply("div", other, size)


def box_encode(c: Context, params: Params, index: Index) -> Value:
    """Output 0: columns 0 and 1 are distances of centres, 2 and 3 logarithms of sizes; output 1: the mask."""
    batch, row, column = index
    axis, dtype = ir.apply("mod", column, number(2)), c.out_dtype
    taken = ir.apply("gt", c.load(0, (batch, row)), ir.const(0.5, dtype))
    zero = ir.const(0.0, dtype)
    if c.output == 1:
        return ir.apply("where", taken, ir.const(1.0, dtype), zero)
    match = ir.cast(c.load(1, (batch, row)), INDEX)
    inside = ir.apply("and", ir.apply("ge", match, number(0)), ir.apply("lt", match, number(c.shape(3)[1])))
    ends = []
    for k in (0, 2):
        at = ir.apply("add", axis, number(k))
        ends.append((c.load(2, (batch, row, at)), c.load(3, (batch, match, at), inside, zero)))
    moved, ratio = offsets(ends)
    code = ir.apply("where", ir.apply("lt", column, number(2)), moved, ir.apply("log", ratio))
    code = ir.apply("div", ir.apply("sub", code, c.load(4, (column,))), c.load(5, (column,)))
    return ir.apply("where", taken, code, zero)


def priors(c: Context, params: Params, index: Index) -> Value:
    """The centre by the place, minus or plus a half of the size by the number of the anchor at the place."""
    _, position, column = index
    shapes = [(size, params.ratios[0]) for size in params.sizes]
    shapes += [(params.sizes[0], ratio) for ratio in params.ratios[1:]]
    place, each = (ir.apply(op, position, number(len(shapes))) for op in ("div", "mod"))
    y, x = (ir.apply(op, place, number(params.width)) for op in ("div", "mod"))
    steps = params.steps if min(params.steps) > 0 else (1 / params.height, 1 / params.width)
    vertical = ir.apply("eq", ir.apply("mod", column, number(2)), number(1))
    down, across = (ir.apply("mul", ir.apply("add", ir.cast(at, "float32"), ir.const(offset, "float32")),
                             ir.const(step, "float32")) for at, offset, step in zip((y, x), params.offsets, steps,
                                                                                     strict=True))
    half: Value | None = None
    for k, (size, ratio) in enumerate(shapes):
        root = math.sqrt(ratio) if ratio >= 0 else math.nan
        high, wide = size / root / 2 if root else math.inf, size * params.height / params.width * root / 2
        one = ir.apply("where", vertical, ir.const(high, "float32"), ir.const(wide, "float32"))
        half = one if half is None else ir.apply("where", ir.apply("eq", each, number(k)), one, half)
    assert half is not None
    centre = ir.apply("where", vertical, down, across)
    found = ir.apply("where", ir.apply("lt", column, number(2)), ir.apply("sub", centre, half),
                     ir.apply("add", centre, half))
    if params.clip:
        found = ir.apply("min", ir.apply("max", found, ir.const(0.0, "float32")), ir.const(1.0, "float32"))
    return found


def box_targets(c: Context, params: Params, index: Index) -> Value:
    """Output 0: the offset of an anchor's label to it, 0 for none; output 1: whether it has one."""
    batch, position = index
    row, column = (ir.apply(op, position, number(4)) for op in ("div", "mod"))
    match, zero = ir.cast(c.load(0, (batch, row)), INDEX), ir.const(0.0, c.out_dtype)
    taken = ir.apply("ge", match, number(0))
    if c.output == 1:
        return ir.apply("where", taken, ir.const(1.0, c.out_dtype), zero)
    axis = ir.apply("mod", column, number(2))
    ends = []
    for k in (0, 2):
        place = ir.apply("add", axis, number(k))
        ends.append((c.load(1, (number(0), row, place)),
                     c.load(2, (batch, match, ir.apply("add", place, number(1))), taken, zero)))
    moved, ratio = offsets(ends)
    first, second = (choice(axis, params.variances[k], params.variances[k + 1], c.out_dtype) for k in (0, 2))
    code = ir.apply("where", ir.apply("lt", column, number(2)), ir.apply("div", moved, first),
                    ir.apply("div", ir.apply("log", ratio), second))
    return ir.apply("where", taken, code, zero)


def class_targets(c: Context, params: Params, index: Index) -> Value:
    """The class of the label plus 1; 0 for a negative anchor, ignore_label for one that does not count."""
    match = ir.cast(c.load(0, index), INDEX)
    zero, one = (ir.const(x, c.out_dtype) for x in (0.0, 1.0))
    taken = ir.apply("ge", match, number(0))
    label = c.load(1, (index[0], match, number(0)), taken, zero)
    other = ir.apply("where", ir.apply("eq", match, number(-1)), zero, ir.const(params.ignore_label, c.out_dtype))
    return ir.apply("where", taken, ir.apply("add", label, one), other)
