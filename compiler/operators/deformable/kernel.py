"""Routines of columns of samples, and of their gradient."""
from __future__ import annotations

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import floor_, int32, int64, max_, min_
from mxc.compiler.operators.convolution.shape import column_geometry, column_windows
from mxc.compiler.ops.operator import Params


def deformable_columns_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (batch, channels, height, width), and offsets. No index rule: what makes the data would be fused into it,
    and computed at every place that reads it."""
    return call("deformable_columns", _sizes(c, params), beyond=params.beyond, real=c.dtype(0))


def deformable_columns_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """The same arrays, and what flows into the columns."""
    return call("deformable_columns_grad", _sizes(c, params), beyond=params.beyond, real=c.dtype(0))


def _sizes(c: RoutineNode, params: Params) -> tuple[int, ...]:
    g, data = column_geometry(params), c.shape(0)
    return (*data, params.num_deformable_group, *g.kernel, *column_windows(g, data[2:]), *g.stride, *g.dilate, *g.pad)


@routine(inputs=("data", "offset"), outputs=("out",), units="batch * channels",
         scratch={"places": ("int32", "4 * rows * columns"), "weights": ("real", "4 * rows * columns")})
def deformable_columns(first, last, data, offset, out, places, weights, batch, channels, height, width, groups,
                       kernel_h, kernel_w, rows, columns, stride_h, stride_w, dilate_h, dilate_w, pad_h, pad_w, *,
                       beyond, real):
    """The sum of the four elements around the place of each tap of each window, weighted by how near they are.

    data: (batch, channels, height, width); offset: (batch, groups, kernel, 2, rows, columns); out: (batch, channels,
    kernel, rows, columns). beyond: as for deformable_columns_grad. Places and weights are those of all channels of a
    group, so that its channels are sums of vectors: a place that there is not is -1.
    """
    taps = kernel_h * kernel_w
    windows = rows * columns
    depth = channels // groups
    unit = first
    while unit < last:
        part = unit // depth
        after = min_(last, (part + 1) * depth)
        for tap in range(taps):
            down = (part * taps + tap) * 2 * windows
            for window in range(windows):
                y = real(window // columns * stride_h + tap // kernel_w * dilate_h - pad_h) + offset[down + window]
                x = real(window % columns * stride_w + tap % kernel_w * dilate_w - pad_w)
                x = x + offset[down + windows + window]
                for corner in range(4):
                    places[corner * windows + window] = int32(-1)
                    weights[corner * windows + window] = real(0)
                some = (y > real(-1) and x > real(-1)) if beyond else (y >= real(0) and x >= real(0))
                if some and y < real(height) and x < real(width):
                    if not beyond:
                        y = min_(y, real(height - 1))
                        x = min_(x, real(width - 1))
                    top = int64(floor_(y))
                    left = int64(floor_(x))
                    below = y - floor_(y)
                    beside = x - floor_(x)
                    for corner in range(4):
                        row = top + corner // 2
                        column = left + corner % 2
                        if 0 <= row < height and 0 <= column < width:
                            high = below if corner >= 2 else real(1) - below
                            wide = beside if corner % 2 == 1 else real(1) - beside
                            places[corner * windows + window] = int32(row * width + column)
                            weights[corner * windows + window] = high * wide
            for channel in range(unit, after):
                base = channel * height * width
                target = (channel * taps + tap) * windows
                for window in range(windows):
                    total = real(0)
                    for corner in range(4):
                        at = places[corner * windows + window]
                        value = data[base + max_(at, int32(0))]
                        total += (value if at >= int32(0) else real(0)) * weights[corner * windows + window]
                    out[target + window] = total
        unit = after


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
