"""Index rules of sampling images at a grid."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.table import Params


def bilinear_sampler(c: Context, params: Params, index: Index) -> Value:
    """The four elements around the place that the grid tells in -1..1, each weighted by how near it is; outside: 0."""
    wide = ir.computing_dtype(c.out_dtype)
    batch, channel, row, column = index
    one = ir.const(1.0, wide)
    places, weights = [], []
    for axis, which in ((2, 1), (3, 0)):
        place = ir.cast(c.load(1, (batch, number(which), row, column)), wide)
        scale = ir.apply("mul", ir.cast(number(c.shape(0)[axis] - 1), wide), ir.const(0.5, wide))
        position = ir.apply("mul", ir.apply("add", place, one), scale)
        floor = ir.apply("floor", position)
        distance = ir.apply("sub", position, floor)
        before = ir.cast(floor, ir.INDEX)
        places.append((before, ir.apply("add", before, number(1))))
        weights.append((ir.apply("sub", one, distance), distance))
    total = ir.const(0.0, wide)
    for y, down in zip(places[0], weights[0], strict=True):
        for x, across in zip(places[1], weights[1], strict=True):
            when = ir.apply("and", _inside(y, c.shape(0)[2]), _inside(x, c.shape(0)[3]))
            element = ir.cast(c.load(0, (batch, channel, y, x), when), wide)
            total = ir.apply("add", total, ir.apply("mul", ir.apply("mul", down, across), element))
    return ir.cast(total, c.out_dtype)


def _inside(place: Value, size: int) -> Value:
    return ir.apply("and", ir.apply("ge", place, number(0)), ir.apply("lt", place, number(size)))
