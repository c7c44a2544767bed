"""Index rules of region proposals.

Boxes come from offsets to anchors at every place of an image.
"""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.operators.boxes.kernel import halved
from mxc.compiler.operators.proposals.shape import base_anchors
from mxc.compiler.ops.operator import Params


def real(value: float) -> Value:
    return ir.const(float(value), "float32")


def proposals(c: IndexNode, params: Params, index: Index) -> Value:
    """Column 0 the score, then left, top, and right and bottom plus 1; row (y * width + x) * anchors + anchor.

    Boxes are cut at the image. One below the smallest size grows by it, and its score is -1; so is that of a place
    outside of the image.
    """
    batch, row, column = index
    anchors = base_anchors(params)
    width = c.shape(0)[3]
    place, each = (ir.apply(op, row, number(len(anchors))) for op in ("div", "mod"))
    y, x = (ir.apply(op, place, number(width)) for op in ("div", "mod"))

    def offset(k: int) -> Value:
        return c.load(1, (batch, ir.apply("add", ir.apply("mul", each, number(4)), number(k)), y, x))

    def anchor(k: int) -> Value:
        found = real(anchors[0][k])
        for i, box in enumerate(anchors[1:], 1):
            found = ir.apply("where", ir.apply("eq", each, number(i)), real(box[k]), found)
        shift = ir.apply("mul", ir.cast((x, y)[k % 2], "float32"), real(params.feature_stride))
        return ir.apply("add", found, shift)

    def image(k: int) -> Value:
        return c.load(2, (batch, number(k)))

    smallest = ir.apply("mul", real(params.rpn_min_size), image(2))
    ends, small = [], ir.const(False, "bool")
    for k in (0, 1):
        low, high = anchor(k), anchor(k + 2)
        if params.iou_loss:
            low, high = ir.apply("add", low, offset(k)), ir.apply("add", high, offset(k + 2))
        else:
            size = ir.apply("add", ir.apply("sub", high, low), real(1))
            centre = ir.apply("add", low, halved(ir.apply("sub", size, real(1))))
            centre = ir.apply("add", ir.apply("mul", offset(k), size), centre)
            half = halved(ir.apply("sub", ir.apply("mul", ir.apply("exp", offset(k + 2)), size), real(1)))
            low, high = ir.apply("sub", centre, half), ir.apply("add", centre, half)
        edge = ir.apply("sub", image(1 - k), real(1))
        low, high = (ir.apply("max", ir.apply("min", end, edge), real(0)) for end in (low, high))
        length = ir.apply("add", ir.apply("sub", high, low), real(1))
        small = ir.apply("or", small, ir.apply("lt", length, smallest))
        ends.append((low, high))
    score = c.load(0, (batch, ir.apply("add", each, number(len(anchors))), y, x))
    outside = small
    for k, at in enumerate((y, x)):
        inside = ir.cast(ir.apply("trunc", ir.apply("div", image(k), real(params.feature_stride))), INDEX)
        outside = ir.apply("or", outside, ir.apply("ge", at, inside))
    found = ir.apply("where", outside, real(-1), score)
    for k, (low, high) in enumerate(ends):
        low = ir.apply("where", small, ir.apply("sub", low, halved(smallest)), low)
        high = ir.apply("add", ir.apply("where", small, ir.apply("add", high, halved(smallest)), high), real(1))
        found = ir.apply("where", ir.apply("eq", column, number(k + 1)), low, found)
        found = ir.apply("where", ir.apply("eq", column, number(k + 3)), high, found)
    return found


def kept_proposals(c: IndexNode, params: Params, index: Index) -> Value:
    """Rows (image, box) or, output 1, scores: those that are kept, repeated until there are `count` for each image."""
    place, column = index
    image, each = (ir.apply(op, place, number(params.count)) for op in ("div", "mod"))
    kept = ir.apply("min", ir.cast(c.load(2, (image,)), INDEX), number(params.most))
    row = ir.cast(c.load(1, (image, ir.apply("mod", each, ir.apply("max", kept, number(1))))), INDEX)
    row = ir.apply("max", row, number(0))
    if c.output == 1:
        return c.load(0, (row, number(0)))
    value = c.load(0, (row, column))
    value = ir.apply("where", ir.apply("ge", column, number(3)), ir.apply("sub", value, real(1)), value)
    return ir.apply("where", ir.apply("eq", column, number(0)), ir.cast(image, "float32"), value)
