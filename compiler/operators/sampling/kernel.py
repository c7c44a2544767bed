"""Index rules and routines of grids and sampling images at them."""
from __future__ import annotations

from math import prod

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import floor_, int64
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.operator import Params


def bilinear_sampler(c: IndexNode, params: Params, index: Index) -> Value:
    """The sum of the four elements around the place that the grid tells in -1..1, each weighted by how near it is;
    elements outside of the image count as 0."""
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


def bilinear_sampler_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (batch, channels, height, width), grid (batch, 2, ...), gradient of (batch, channels, ...)."""
    return call("bilinear_sampler_grad", (*c.shape(0), prod(c.shape(1)[2:])), real=c.dtype(0))


@routine(inputs=("data", "grid", "grad"), outputs=("to_data", "to_grid"), units="batch")
def bilinear_sampler_grad(first, last, data, grid, grad, to_data, to_grid, batch, channels, height, width, points, *,
                          real):
    """Adds each point's gradient to the four elements around its place, and their differences to the grid.

    data, to_data: (batch, channels, height, width); grid, to_grid: (batch, 2, points), x before y, in -1..1; grad:
    (batch, channels, points). What lies outside of the image counts as 0 and gets nothing.
    """
    half_width = real(width - 1) * real(0.5)
    half_height = real(height - 1) * real(0.5)
    for n in range(first, last):
        across = n * 2 * points
        down = across + points
        for p in range(2 * points):
            to_grid[across + p] = real(0)
        for channel in range(n * channels, n * channels + channels):
            base = channel * height * width
            for i in range(base, base + height * width):
                to_data[i] = real(0)
            for p in range(points):
                place_x = (grid[across + p] + real(1)) * half_width
                place_y = (grid[down + p] + real(1)) * half_height
                if place_x >= real(-1) and place_x < real(width) and place_y >= real(-1) and place_y < real(height):
                    floor_x = floor_(place_x)
                    floor_y = floor_(place_y)
                    x = int64(floor_x)
                    y = int64(floor_y)
                    right = place_x - floor_x
                    below = place_y - floor_y
                    g = grad[channel * points + p]
                    slope_x = real(0)
                    slope_y = real(0)
                    for corner in range(4):
                        dy = corner // 2
                        dx = corner % 2
                        if 0 <= y + dy < height and 0 <= x + dx < width:
                            at = base + (y + dy) * width + x + dx
                            weight_x = right if dx == 1 else real(1) - right
                            weight_y = below if dy == 1 else real(1) - below
                            to_data[at] = to_data[at] + g * weight_y * weight_x
                            slope_x += data[at] * weight_y * real(2 * dx - 1)
                            slope_y += data[at] * weight_x * real(2 * dy - 1)
                    to_grid[across + p] = to_grid[across + p] + g * slope_x * half_width
                    to_grid[down + p] = to_grid[down + p] + g * slope_y * half_height
