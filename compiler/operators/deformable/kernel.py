"""The index rule of columns of samples, and the routine of their gradient."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode, unflatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import floor_, int64, min_
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.operators.convolution.shape import column_geometry, column_windows
from mxc.compiler.ops.operator import Params


def deformable_columns(c: IndexNode, params: Params, index: Index) -> Value:
    """The sum of the four elements around the place of a tap, each weighted by how near it is. Row: channel and tap of
    the kernel; column: the window."""
    n, row, column = index
    g, data, wide = column_geometry(params), c.shape(0), ir.computing_dtype(c.out_dtype)
    channel, *taps = unflatten(row, (data[1], *g.kernel))
    windows = unflatten(column, column_windows(g, data[2:]))
    group = ir.apply("div", channel, number(data[1] // params.num_deformable_group))
    tap = ir.apply("add", ir.apply("mul", taps[0], number(g.kernel[1])), taps[1])
    part = ir.apply("add", ir.apply("mul", group, number(g.kernel[0] * g.kernel[1])), tap)
    first = ir.apply("mul", part, number(2))
    inside, sides = ir.const(True, "bool"), []
    for axis in range(2):
        moved = ir.cast(c.load(1, (n, ir.apply("add", first, number(axis)), *windows)), wide)
        still = ir.apply("sub", ir.apply("add", ir.apply("mul", windows[axis], number(g.stride[axis])),
                                         ir.apply("mul", taps[axis], number(g.dilate[axis]))), number(g.pad[axis]))
        place = ir.apply("add", ir.cast(still, wide), moved)
        least = ir.apply("gt", place, ir.const(-1.0, wide)) if params.beyond \
            else ir.apply("ge", place, ir.const(0.0, wide))
        size = data[2 + axis]
        inside = ir.apply("and", inside, ir.apply("and", least, ir.apply("lt", place, ir.const(float(size), wide))))
        if not params.beyond:
            place = ir.apply("min", place, ir.const(float(size - 1), wide))
        floor = ir.apply("floor", place)
        distance, before = ir.apply("sub", place, floor), ir.cast(floor, ir.INDEX)
        sides.append(((before, ir.apply("sub", ir.const(1.0, wide), distance)),
                      (ir.apply("add", before, number(1)), distance)))
    total = ir.const(0.0, wide)
    for y, down in sides[0]:
        for x, across in sides[1]:
            when = ir.apply("and", inside, ir.apply("and", _inside(y, data[2]), _inside(x, data[3])))
            element = ir.cast(c.load(0, (n, channel, y, x), when), wide)
            total = ir.apply("add", total, ir.apply("mul", ir.apply("mul", down, across), element))
    return ir.cast(ir.apply("where", inside, total, ir.const(0.0, wide)), c.out_dtype)


def _inside(place: Value, size: int) -> Value:
    return ir.apply("and", ir.apply("ge", place, number(0)), ir.apply("lt", place, number(size)))


def deformable_columns_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (batch, channels, height, width), offsets, and what flows into the columns."""
    g, data = column_geometry(params), c.shape(0)
    return call("deformable_columns_grad", (*data, params.num_deformable_group, *g.kernel,
                                            *column_windows(g, data[2:]), *g.stride, *g.dilate, *g.pad),
                beyond=params.beyond, real=c.dtype(0))


@routine(inputs=("data", "offset", "grad"), outputs=("to_data", "to_offset"), units="batch")
def deformable_columns_grad(first, last, data, offset, grad, to_data, to_offset, batch, channels, height, width, groups,
                            kernel_h, kernel_w, rows, columns, stride_h, stride_w, dilate_h, dilate_w, pad_h, pad_w, *,
                            beyond, real):
    """Adds each column's gradient to the four elements around its place, and their differences to the offsets.

    data, to_data: (batch, channels, height, width); offset, to_offset: (batch, groups, kernel, 2, rows, columns); grad:
    (batch, channels, kernel, rows, columns). beyond: there are zeros around the image; without, a place behind the last
    row or column reads that, and one outside of the image reads nothing.
    """
    taps = kernel_h * kernel_w
    windows = rows * columns
    depth = channels // groups
    for n in range(first, last):
        for i in range(n * channels * height * width, (n + 1) * channels * height * width):
            to_data[i] = real(0)
        for part in range(groups * taps):
            group = part // taps
            tap = part % taps
            for window in range(windows):
                down = ((n * groups * taps + part) * 2) * windows + window
                across = down + windows
                y = real(window // columns * stride_h + tap // kernel_w * dilate_h - pad_h) + offset[down]
                x = real(window % columns * stride_w + tap % kernel_w * dilate_w - pad_w) + offset[across]
                to_offset[down] = real(0)
                to_offset[across] = real(0)
                some = (y > real(-1) and x > real(-1)) if beyond else (y >= real(0) and x >= real(0))
                if some and y < real(height) and x < real(width):
                    grows_y = real(1)
                    grows_x = real(1)
                    if not beyond:
                        grows_y = real(1) if y < real(height - 1) else real(0)
                        grows_x = real(1) if x < real(width - 1) else real(0)
                        y = min_(y, real(height - 1))
                        x = min_(x, real(width - 1))
                    top = int64(floor_(y))
                    left = int64(floor_(x))
                    below = y - floor_(y)
                    beside = x - floor_(x)
                    slope_y = real(0)
                    slope_x = real(0)
                    for channel in range(group * depth, group * depth + depth):
                        base = (n * channels + channel) * height * width
                        g = grad[((n * channels + channel) * taps + tap) * windows + window]
                        for corner in range(4):
                            dy = corner // 2
                            dx = corner % 2
                            if 0 <= top + dy < height and 0 <= left + dx < width:
                                at = base + (top + dy) * width + left + dx
                                weight_y = below if dy == 1 else real(1) - below
                                weight_x = beside if dx == 1 else real(1) - beside
                                to_data[at] = to_data[at] + g * weight_y * weight_x
                                slope_y += g * data[at] * weight_x * real(2 * dy - 1)
                                slope_x += g * data[at] * weight_y * real(2 * dx - 1)
                    to_offset[down] = slope_y * grows_y
                    to_offset[across] = slope_x * grows_x
