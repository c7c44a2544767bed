"""Routines of pooling over regions where parts have channels of their own.

Regions are (count, 5): image, left, top, right, bottom, in whole pixels over `scale`, right and bottom included. `side`
parts along each axis have channels of `groups` x `groups` groups. Regions of images that there are not give zeros.
"""
from __future__ import annotations

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import abs_, ceil_, floor_, int64, max_, min_, trunc_
from mxc.compiler.ops.operator import Params


def ps_roi_pooling_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, rois (count, 5), and what flows into the output where backward."""
    return call("ps_roi_pooling", _sizes(c, params), backward=params.backward, scale=params.spatial_scale,
                real=c.dtype(0))


def deformable_ps_roi_pooling_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, rois, trans."""
    return _deformable("deformable_ps_roi_pooling", c, params)


def deformable_ps_roi_pooling_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """The same arrays, and what flows into the output."""
    return _deformable("deformable_ps_roi_pooling_grad", c, params)


def _sizes(c: RoutineNode, params: Params) -> tuple[int, ...]:
    groups = params.group_size or params.pooled_size
    return (*c.shape(0), c.shape(1)[0], params.output_dim, params.pooled_size, groups)


def _deformable(name: str, c: RoutineNode, params: Params) -> RoutineCall:
    trans = c.shape(2)
    classes, side = (1, 1) if params.no_trans else (trans[1] // 2, trans[2])
    return call(name, (*_sizes(c, params), classes, side, params.sample_per_part), moved=not params.no_trans,
                scale=params.spatial_scale, deviation=params.trans_std, real=c.dtype(0))


@routine(inputs=("data", "rois", "grad"), outputs=("out",), units="batch if backward else count")
def ps_roi_pooling(first, last, data, rois, grad, out, batch, channels, height, width, count, parts, side, groups, *,
                   backward, scale, real):
    """The mean of the elements of each of side x side parts of each region, 0 for an empty part.

    data: (batch, channels, height, width); grad: (count, parts, side, side), read where `backward`. out: as grad, or
    the gradient to data.
    """
    for unit in range(first, last):
        begin = int64(unit)
        end = int64(unit + 1)
        if backward:
            for i in range(unit * channels * height * width, (unit + 1) * channels * height * width):
                out[i] = real(0)
            begin = int64(0)
            end = count
        for roi in range(begin, end):
            which = rois[roi * 5]
            known = which >= real(0) and which < real(batch)
            if backward:
                known = known and int64(which) == unit
            else:
                for i in range(roi * parts * side * side, (roi + 1) * parts * side * side):
                    out[i] = real(0)
            x0 = trunc_(rois[roi * 5 + 1] + (real(0.5) if rois[roi * 5 + 1] >= real(0) else real(-0.5))) * real(scale)
            y0 = trunc_(rois[roi * 5 + 2] + (real(0.5) if rois[roi * 5 + 2] >= real(0) else real(-0.5))) * real(scale)
            x1 = trunc_(rois[roi * 5 + 3] + (real(0.5) if rois[roi * 5 + 3] >= real(0) else real(-0.5)))
            y1 = trunc_(rois[roi * 5 + 4] + (real(0.5) if rois[roi * 5 + 4] >= real(0) else real(-0.5)))
            part_w = max_((x1 + real(1)) * real(scale) - x0, real(0.1)) / real(side)
            part_h = max_((y1 + real(1)) * real(scale) - y0, real(0.1)) / real(side)
            if known and abs_(x0) + abs_(y0) + part_h + part_w < real(1e9):  # NaN or infinite: outside
                for place in range(side * side):
                    top = real(place // side) * part_h + y0
                    left = real(place % side) * part_w + x0
                    ya = int64(min_(max_(floor_(top), real(0)), real(height)))
                    xa = int64(min_(max_(floor_(left), real(0)), real(width)))
                    yb = int64(min_(max_(ceil_(real(place // side + 1) * part_h + y0), real(0)), real(height)))
                    xb = int64(min_(max_(ceil_(real(place % side + 1) * part_w + x0), real(0)), real(width)))
                    group = place // side * groups // side * groups + place % side * groups // side
                    if ya < yb and xa < xb:
                        cells = real((yb - ya) * (xb - xa))
                        for part in range(parts):
                            plane = (int64(which) * channels + part * groups * groups + group) * height * width
                            at = (roi * parts + part) * side * side + place
                            total = real(0)
                            share = grad[at] / cells if backward else real(0)
                            for y in range(ya, yb):
                                for x in range(xa, xb):
                                    if backward:
                                        out[plane + y * width + x] = out[plane + y * width + x] + share
                                    else:
                                        total += data[plane + y * width + x]
                            if not backward:
                                out[at] = total / cells


@routine(inputs=("data", "rois", "trans"), outputs=("out", "samples"), units="count")
def deformable_ps_roi_pooling(first, last, data, rois, trans, out, samples, batch, channels, height, width, count,
                              parts, side, groups, classes, moves, per_part, *, moved, scale, deviation, real):
    """The mean of bilinear samples, per_part along each axis, of side x side parts of each region.

    data: (batch, channels, height, width); trans: (count, classes, 2, moves, moves), read where `moved`: how far each
    part is moved to the right, then down, in regions over `deviation`; out: (count, parts, side, side); samples: how
    many of a part are in the image.
    """
    for roi in range(first, last):
        which = rois[roi * 5]
        x0 = trunc_(rois[roi * 5 + 1] + (real(0.5) if rois[roi * 5 + 1] >= real(0) else real(-0.5)))
        y0 = trunc_(rois[roi * 5 + 2] + (real(0.5) if rois[roi * 5 + 2] >= real(0) else real(-0.5)))
        x1 = trunc_(rois[roi * 5 + 3] + (real(0.5) if rois[roi * 5 + 3] >= real(0) else real(-0.5)))
        y1 = trunc_(rois[roi * 5 + 4] + (real(0.5) if rois[roi * 5 + 4] >= real(0) else real(-0.5)))
        x0 = x0 * real(scale) - real(0.5)
        y0 = y0 * real(scale) - real(0.5)
        wide = max_((x1 + real(1)) * real(scale) - real(0.5) - x0, real(0.1))
        high = max_((y1 + real(1)) * real(scale) - real(0.5) - y0, real(0.1))
        for i in range(parts * side * side):
            part = i // (side * side)
            row = i // side % side
            column = i % side
            at = roi * parts * side * side + i
            out[at] = real(0)
            samples[at] = real(0)
            if which >= real(0) and which < real(batch):
                channel = (part * groups + row * groups // side) * groups + column * groups // side
                plane = (int64(which) * channels + channel) * height * width
                top = y0 + real(row) * (high / real(side))
                left = x0 + real(column) * (wide / real(side))
                if moved:
                    move = (roi * classes + part // (parts // classes)) * 2 * moves
                    move = (move + row * moves // side) * moves + column * moves // side
                    left = left + trans[move] * real(deviation) * wide
                    top = top + trans[move + moves * moves] * real(deviation) * high
                for sample in range(per_part * per_part):
                    y = top + real(sample // per_part) * (high / real(side * per_part))
                    x = left + real(sample % per_part) * (wide / real(side * per_part))
                    inside = y >= real(-0.5) and y <= real(height) - real(0.5)
                    if inside and x >= real(-0.5) and x <= real(width) - real(0.5):
                        y = min_(max_(y, real(0)), real(height - 1))
                        x = min_(max_(x, real(0)), real(width - 1))
                        above = plane + int64(floor_(y)) * width
                        under = plane + int64(ceil_(y)) * width
                        low = int64(floor_(x))
                        high_x = int64(ceil_(x))
                        below = y - floor_(y)
                        beside = x - floor_(x)
                        upper = data[above + low] * (real(1) - beside) + data[above + high_x] * beside
                        lower = data[under + low] * (real(1) - beside) + data[under + high_x] * beside
                        out[at] = out[at] + upper * (real(1) - below) + lower * below
                        samples[at] = samples[at] + real(1)
                out[at] = out[at] / max_(samples[at], real(1))


# long: the language of routines has no functions, and samples are found as forward, in a first pass to count them
@routine(inputs=("data", "rois", "trans", "grad"), outputs=("to_data", "to_trans"), units="batch")
def deformable_ps_roi_pooling_grad(first, last, data, rois, trans, grad, to_data, to_trans, batch, channels, height,
                                   width, count, parts, side, groups, classes, moves, per_part, *, moved, scale,
                                   deviation, real):
    """Adds each part's gradient to the elements around its samples, and by their differences to what moved it."""
    for image in range(first, last):
        for i in range(image * channels * height * width, (image + 1) * channels * height * width):
            to_data[i] = real(0)
        for roi in range(count):
            which = rois[roi * 5]
            known = which >= real(0) and which < real(batch)
            if moved and ((known and int64(which) == image) or (not known and image == 0)):
                for i in range(roi * classes * 2 * moves * moves, (roi + 1) * classes * 2 * moves * moves):
                    to_trans[i] = real(0)
            if not moved and image == 0 and roi == 0:
                for i in range(count * 5):
                    to_trans[i] = real(0)
            x0 = trunc_(rois[roi * 5 + 1] + (real(0.5) if rois[roi * 5 + 1] >= real(0) else real(-0.5)))
            y0 = trunc_(rois[roi * 5 + 2] + (real(0.5) if rois[roi * 5 + 2] >= real(0) else real(-0.5)))
            x1 = trunc_(rois[roi * 5 + 3] + (real(0.5) if rois[roi * 5 + 3] >= real(0) else real(-0.5)))
            y1 = trunc_(rois[roi * 5 + 4] + (real(0.5) if rois[roi * 5 + 4] >= real(0) else real(-0.5)))
            x0 = x0 * real(scale) - real(0.5)
            y0 = y0 * real(scale) - real(0.5)
            wide = max_((x1 + real(1)) * real(scale) - real(0.5) - x0, real(0.1))
            high = max_((y1 + real(1)) * real(scale) - real(0.5) - y0, real(0.1))
            for i in range(parts * side * side if known and int64(which) == image else 0):
                part = i // (side * side)
                row = i // side % side
                column = i % side
                channel = (part * groups + row * groups // side) * groups + column * groups // side
                plane = (image * channels + channel) * height * width
                top = y0 + real(row) * (high / real(side))
                left = x0 + real(column) * (wide / real(side))
                move = int64(0)
                if moved:
                    move = (roi * classes + part // (parts // classes)) * 2 * moves
                    move = (move + row * moves // side) * moves + column * moves // side
                    left = left + trans[move] * real(deviation) * wide
                    top = top + trans[move + moves * moves] * real(deviation) * high
                found = real(0)
                for sample in range(2 * per_part * per_part):
                    at = sample % (per_part * per_part)
                    y = top + real(at // per_part) * (high / real(side * per_part))
                    x = left + real(at % per_part) * (wide / real(side * per_part))
                    inside = y >= real(-0.5) and y <= real(height) - real(0.5)
                    if inside and x >= real(-0.5) and x <= real(width) - real(0.5):
                        if sample < per_part * per_part:
                            found += real(1)
                        else:
                            y = min_(max_(y, real(0)), real(height - 1))
                            x = min_(max_(x, real(0)), real(width - 1))
                            below = y - floor_(y)
                            beside = x - floor_(x)
                            p0 = plane + int64(floor_(y)) * width + int64(floor_(x))
                            p1 = plane + int64(floor_(y)) * width + int64(ceil_(x))
                            p2 = plane + int64(ceil_(y)) * width + int64(floor_(x))
                            p3 = plane + int64(ceil_(y)) * width + int64(ceil_(x))
                            g = grad[roi * parts * side * side + i] / found
                            to_data[p0] = to_data[p0] + g * (real(1) - below) * (real(1) - beside)
                            to_data[p1] = to_data[p1] + g * (real(1) - below) * beside
                            to_data[p2] = to_data[p2] + g * below * (real(1) - beside)
                            to_data[p3] = to_data[p3] + g * below * beside
                            if moved:
                                g = g * real(deviation)
                                slope_x = (data[p1] - data[p0]) * (real(1) - below) + (data[p3] - data[p2]) * below
                                slope_y = (data[p2] - data[p0]) * (real(1) - beside) + (data[p3] - data[p1]) * beside
                                down = move + moves * moves
                                to_trans[move] = to_trans[move] + g * slope_x * wide
                                to_trans[down] = to_trans[down] + g * slope_y * high
