"""Routines of pooling over regions of images."""
from __future__ import annotations

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import abs_, ceil_, cos_, floor_, int32, int64, max_, min_, sin_, trunc_
from mxc.compiler.ops.operator import Params


def roi_pooling_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, with the channels last, rois (count, 5), and what flows into the output where backward."""
    sizes = (*c.shape(0), c.shape(1)[0], *params.pooled_size)
    return call("roi_pooling", sizes, backward=params.backward, scale=params.spatial_scale, real=c.dtype(0))


def roi_align_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, with the channels last, rois, and what flows into the output where backward."""
    rows, columns = params.pooled_size
    parts = c.shape(0)[3] // (rows * columns if params.position_sensitive else 1)
    sizes = (*c.shape(0), c.shape(1)[0], parts, rows, columns)
    return call("roi_align", sizes, backward=params.backward, scale=params.spatial_scale,
                samples=max(params.sample_ratio, 0), apart=params.position_sensitive, aligned=params.aligned,
                real=c.dtype(0))


def turned_roi_align_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, rois (count, 6)."""
    sizes = (*c.shape(0), c.shape(1)[0], *params.pooled_size)
    return call("turned_roi_align", sizes, scale=params.spatial_scale, samples=max(params.sampling_ratio, 0),
                real=c.dtype(0))


# long: the language of routines has no functions, and forward and backward share the bounds of the cells
@routine(inputs=("data", "rois", "grad"), outputs=("out",),
         units="(batch if backward else count) * (-(-channels // 32))",
         scratch={"best": ("real", "32"), "place": ("int32", "32"), "lefts": ("int32", "columns"),
                  "rights": ("int32", "columns")})
def roi_pooling(first, last, data, rois, grad, out, best, place, lefts, rights, batch, height, width, channels, count,
                rows, columns, *, backward, scale, real):
    """The largest number of each of rows x columns parts of each region, 0 for an empty part.

    data: (batch, height, width, channels); rois: (count, 5), image, left, top, right, bottom, in pixels over `scale`,
    right and bottom included; grad: (count, rows, columns, channels), read where `backward`. out: as grad, or the
    gradient to data, which goes to the first of the largest. Regions of images that there are not are 0.

    A unit is up to 32 channels of a region or of an image.
    """
    blocks = (channels + 31) // 32
    for unit in range(first, last):
        part = int64(unit) // blocks
        channel = int64(unit) % blocks * 32
        lanes = min_(channels - channel, int64(32))
        image = part
        begin = part
        end = part + 1
        if backward:
            begin = int64(0)
            end = count
            for i in range(height * width):
                at = (image * height * width + i) * channels + channel
                for lane in range(lanes):
                    out[at + lane] = real(0)
        for roi in range(begin, end):
            which = rois[roi * 5]
            known = which >= real(0) and which < real(batch)
            if backward:
                known = known and int64(which) == image
            elif known:
                image = int64(which)
            if known:
                left = rois[roi * 5 + 1] * real(scale)
                top = rois[roi * 5 + 2] * real(scale)
                right = rois[roi * 5 + 3] * real(scale)
                bottom = rois[roi * 5 + 4] * real(scale)
                x0 = trunc_(left + (real(0.5) if left >= real(0) else real(-0.5)))
                y0 = trunc_(top + (real(0.5) if top >= real(0) else real(-0.5)))
                x1 = trunc_(right + (real(0.5) if right >= real(0) else real(-0.5)))
                y1 = trunc_(bottom + (real(0.5) if bottom >= real(0) else real(-0.5)))
                part_h = max_(y1 - y0 + real(1), real(1)) / real(rows)
                part_w = max_(x1 - x0 + real(1), real(1)) / real(columns)
                if not (abs_(x0) + abs_(y0) + part_h + part_w < real(1e9)):  # NaN or infinite: outside
                    x0 = real(width)
                    y0 = real(height)
                    part_h = real(1)
                    part_w = real(1)
                for column in range(columns):
                    lefts[column] = int32(min_(max_(floor_(real(column) * part_w) + x0, real(0)), real(width)))
                    rights[column] = int32(min_(max_(ceil_(real(column + 1) * part_w) + x0, real(0)), real(width)))
                for row in range(rows):
                    ya = int64(min_(max_(floor_(real(row) * part_h) + y0, real(0)), real(height)))
                    yb = int64(min_(max_(ceil_(real(row + 1) * part_h) + y0, real(0)), real(height)))
                    for column in range(columns):
                        xa = int64(lefts[column])
                        xb = int64(rights[column])
                        target = ((roi * rows + row) * columns + column) * channels + channel
                        if ya < yb and xa < xb:
                            plane = image * height * width
                            for lane in range(lanes):
                                best[lane] = data[(plane + ya * width + xa) * channels + channel + lane]
                                place[lane] = int32(ya * width + xa)
                            for y in range(ya, yb):
                                for x in range(xa, xb):
                                    here = int32(y * width + x)
                                    at = (plane + y * width + x) * channels + channel
                                    for lane in range(lanes):
                                        number = data[at + lane]
                                        most = best[lane]
                                        best[lane] = number if number > most else most
                                        if backward:
                                            there = place[lane]
                                            place[lane] = here if number > most else there
                            for lane in range(lanes):
                                if backward:
                                    at = (plane + place[lane]) * channels + channel + lane
                                    out[at] = out[at] + grad[target + lane]
                                else:
                                    out[target + lane] = best[lane]
                        elif not backward:
                            for lane in range(lanes):
                                out[target + lane] = real(0)
            elif not backward:
                for i in range(rows * columns):
                    for lane in range(lanes):
                        out[(roi * rows * columns + i) * channels + channel + lane] = real(0)


# long: the language of routines has no functions, and forward and backward share the places of the samples
@routine(inputs=("data", "rois", "grad"), outputs=("out",), units="batch if backward else count")
def roi_align(first, last, data, rois, grad, out, batch, height, width, channels, count, parts, rows, columns, *,
              backward, scale, samples, apart, aligned, real):
    """The mean of bilinear samples in each of rows x columns parts of each region.

    As roi_pooling, but nothing is rounded. parts: channels of grad; where `apart` each place of a region has channels
    of its own: (parts, rows, columns) of them. samples: along each axis of a part, 0: as many as the part has pixels,
    rounded up, at most 4096. aligned: pixels have their numbers at their centres, and regions of any size are taken as
    they are.
    """
    for unit in range(first, last):
        begin = int64(unit)
        end = int64(unit + 1)
        if backward:
            for i in range(unit * height * width * channels, (unit + 1) * height * width * channels):
                out[i] = real(0)
            begin = int64(0)
            end = count
        for roi in range(begin, end):
            which = rois[roi * 5]
            known = which >= real(0) and which < real(batch)
            if backward:
                known = known and int64(which) == unit
            else:
                for i in range(roi * rows * columns * parts, (roi + 1) * rows * columns * parts):
                    out[i] = real(0)
            if known:
                image = int64(which)
                offset = real(0.5) if aligned else real(0)
                left = rois[roi * 5 + 1] * real(scale) - offset
                top = rois[roi * 5 + 2] * real(scale) - offset
                part_w = rois[roi * 5 + 3] * real(scale) - offset - left
                part_h = rois[roi * 5 + 4] * real(scale) - offset - top
                if not aligned:
                    part_w = max_(part_w, real(1))
                    part_h = max_(part_h, real(1))
                part_h = part_h / real(rows)
                part_w = part_w / real(columns)
                down = int64(0)
                across = int64(0)
                if part_h > real(0) and part_w > real(0):  # A region that is turned around, or NaN, has no samples.
                    down = int64(samples) if samples > 0 else int64(min_(ceil_(part_h), real(4096)))
                    across = int64(samples) if samples > 0 else int64(min_(ceil_(part_w), real(4096)))
                share = real(1) / real(max_(down * across, int64(1)))
                for place in range(rows * columns):
                    row = place // columns
                    column = place % columns
                    for sample in range(down * across):
                        y = top + part_h * (real(row) + (real(sample // across) + real(0.5)) / real(down))
                        x = left + part_w * (real(column) + (real(sample % across) + real(0.5)) / real(across))
                        if y >= real(-1) and y <= real(height) and x >= real(-1) and x <= real(width):
                            y = min_(max_(y, real(0)), real(height - 1))
                            x = min_(max_(x, real(0)), real(width - 1))
                            ya = int64(floor_(y))
                            xa = int64(floor_(x))
                            yb = min_(ya + 1, height - 1)
                            xb = min_(xa + 1, width - 1)
                            below = y - floor_(y)
                            beside = x - floor_(x)
                            w0 = (real(1) - below) * (real(1) - beside) * share
                            w1 = (real(1) - below) * beside * share
                            w2 = below * (real(1) - beside) * share
                            w3 = below * beside * share
                            plane = image * height * width
                            channel = place if apart else int64(0)
                            p0 = (plane + ya * width + xa) * channels + channel
                            p1 = (plane + ya * width + xb) * channels + channel
                            p2 = (plane + yb * width + xa) * channels + channel
                            p3 = (plane + yb * width + xb) * channels + channel
                            at = (roi * rows * columns + place) * parts
                            step = rows * columns if apart else 1
                            if backward:  # one after the other: at borders they are the same elements
                                for i in range(parts):
                                    out[p0 + i * step] = out[p0 + i * step] + grad[at + i] * w0
                                for i in range(parts):
                                    out[p1 + i * step] = out[p1 + i * step] + grad[at + i] * w1
                                for i in range(parts):
                                    out[p2 + i * step] = out[p2 + i * step] + grad[at + i] * w2
                                for i in range(parts):
                                    out[p3 + i * step] = out[p3 + i * step] + grad[at + i] * w3
                            else:
                                for i in range(parts):
                                    above = data[p0 + i * step] * w0 + data[p1 + i * step] * w1
                                    under = data[p2 + i * step] * w2 + data[p3 + i * step] * w3
                                    out[at + i] = out[at + i] + (above + under)


@routine(inputs=("data", "rois"), outputs=("out",), units="count")
def turned_roi_align(first, last, data, rois, out, batch, channels, height, width, count, rows, columns, *, scale,
                     samples, real):
    """The mean of bilinear samples in each of rows x columns parts of each region, which may be turned.

    rois: (count, 6), image, centre (x, y), width, height, in pixels over `scale`, and the angle in degrees. samples: as
    of roi_align. Regions of images that there are not are 0.
    """
    for roi in range(first, last):
        for i in range(roi * channels * rows * columns, (roi + 1) * channels * rows * columns):
            out[i] = real(0)
        which = rois[roi * 6]
        if which >= real(0) and which < real(batch):
            image = int64(which)
            across = max_(rois[roi * 6 + 3] * real(scale), real(1))
            down = max_(rois[roi * 6 + 4] * real(scale), real(1))
            angle = rois[roi * 6 + 5] * real(0.017453292519943295)
            cosine = cos_(angle)
            sine = sin_(angle)
            part_h = down / real(rows)
            part_w = across / real(columns)
            lines = int64(samples) if samples > 0 else int64(min_(ceil_(part_h), real(4096)))
            places = int64(samples) if samples > 0 else int64(min_(ceil_(part_w), real(4096)))
            share = real(1) / real(lines * places)
            for part in range(rows * columns):
                for sample in range(lines * places):
                    v = part_h * (real(part // columns) + (real(sample // places) + real(0.5)) / real(lines))
                    u = part_w * (real(part % columns) + (real(sample % places) + real(0.5)) / real(places))
                    v = v - down * real(0.5)
                    u = u - across * real(0.5)
                    x = u * cosine + v * sine + rois[roi * 6 + 1] * real(scale)
                    y = v * cosine - u * sine + rois[roi * 6 + 2] * real(scale)
                    if y >= real(-1) and y <= real(height) and x >= real(-1) and x <= real(width):
                        y = min_(max_(y, real(0)), real(height - 1))
                        x = min_(max_(x, real(0)), real(width - 1))
                        ya = int64(floor_(y))
                        xa = int64(floor_(x))
                        yb = min_(ya + 1, height - 1)
                        xb = min_(xa + 1, width - 1)
                        below = y - floor_(y)
                        beside = x - floor_(x)
                        for channel in range(channels):
                            plane = (image * channels + channel) * height * width
                            at = (roi * channels + channel) * rows * columns + part
                            above = data[plane + ya * width + xa] * (real(1) - beside) \
                                + data[plane + ya * width + xb] * beside
                            under = data[plane + yb * width + xa] * (real(1) - beside) \
                                + data[plane + yb * width + xb] * beside
                            out[at] = out[at] + (above * (real(1) - below) + under * below) * share
