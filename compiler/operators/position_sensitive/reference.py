"""The reference of pooling over regions where parts have channels of their own, one part at a time, in float64."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


@dataclass
class _Part:
    """A part of a region for one channel of the output. place: of the output; plane: (image, channel) of the data;
    begin: its first row and column, unclipped; step: its rows and columns; size: the region's."""

    place: tuple[int, int, int, int]
    plane: tuple[int, int]
    begin: tuple[float, float]
    step: tuple[float, float]
    size: tuple[float, float]


def _away(x: float) -> float:
    """Rounded, halves away from zero."""
    return math.copysign(math.floor(abs(x) + 0.5), x)


def _parts(params: Params, data: np.ndarray, rois: np.ndarray, shift: float) -> Iterator[_Part]:
    """All parts of regions of images that there are. shift: of the image, in pixels."""
    side = params.pooled_size
    groups, scale = params.group_size or side, float(params.spatial_scale)
    for r, c, row, column in itertools.product(range(len(rois)), range(params.output_dim), range(side), range(side)):
        which, left, top, right, bottom = (float(x) for x in rois[r])
        if not 0 <= which < len(data):
            continue
        starts = [_away(x) * scale - shift for x in (top, left)]
        size = [max((_away(x) + 1) * scale - shift - start, 0.1)
                for x, start in zip((bottom, right), starts, strict=True)]
        step = [n / side for n in size]
        begin = [start + n * at for start, n, at in zip(starts, step, (row, column), strict=True)]
        channel = (c * groups + row * groups // side) * groups + column * groups // side
        yield _Part((r, c, row, column), (int(which), channel), (begin[0], begin[1]), (step[0], step[1]),
                    (size[0], size[1]))


def ps_roi_pooling(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The mean of the elements of each part, or the gradient to data."""
    data, rois, *grad = inputs
    backward = bool(params.get("backward"))
    out = np.zeros(data.shape if backward else (len(rois), params.output_dim, *[params.pooled_size] * 2))
    for part in _parts(params, data, rois, 0.0):
        spans = tuple(slice(min(max(math.floor(begin), 0), n), min(max(math.ceil(begin + step), 0), n))
                      for begin, step, n in zip(part.begin, part.step, data.shape[2:], strict=True))
        cells = data[part.plane][spans].astype(np.float64)
        if not cells.size:
            continue
        if backward:
            out[part.plane][spans] += grad[0][part.place] / cells.size
        else:
            out[part.place] = cells.mean()
    return [out]


def _samples(params: Params, data: np.ndarray, part: _Part, moved: tuple[float, float]) -> list[tuple[float, float]]:
    """(row, column) of the samples of a part that are in the image, or half a pixel beside it."""
    found = []
    for i, j in itertools.product(range(params.sample_per_part), repeat=2):
        y, x = (begin + step * at / params.sample_per_part + far * size for begin, step, at, far, size in zip(
            part.begin, part.step, (i, j), moved, part.size, strict=True))
        height, width = data.shape[2:]
        if -0.5 <= y <= height - 0.5 and -0.5 <= x <= width - 0.5:
            found.append((min(max(y, 0), height - 1), min(max(x, 0), width - 1)))
    return found


def _moves(params: Params, data: np.ndarray, rois: np.ndarray, trans: np.ndarray,
           ) -> Iterator[tuple[_Part, tuple[int, ...], list[tuple[float, float]]]]:
    """(part, place in trans of its move to the right, its samples)."""
    for part in _parts(params, data, rois, 0.5):
        r, c, row, column = part.place
        if params.no_trans:
            yield part, (), _samples(params, data, part, (0.0, 0.0))
        else:
            side, cls = trans.shape[2], c // (params.output_dim // (trans.shape[1] // 2))
            at = (r, cls * 2, row * side // params.pooled_size, column * side // params.pooled_size)
            down = float(trans[at[0], at[1] + 1, at[2], at[3]])
            deviation = float(params.trans_std)
            yield part, at, _samples(params, data, part, (down * deviation, float(trans[at]) * deviation))


def _corners(y: float, x: float) -> Iterator[tuple[int, int, float, float, float]]:
    """(row, column, weight, how the weight grows with row, and with column); at whole numbers it does not."""
    ya, xa = math.floor(y), math.floor(x)
    for yy, wy, gy in ((ya, 1 - (y - ya), -1), (math.ceil(y), y - ya, 1)):
        for xx, wx, gx in ((xa, 1 - (x - xa), -1), (math.ceil(x), x - xa, 1)):
            yield yy, xx, wy * wx, gy * wx, wy * gx


def deformable_ps_roi_pooling(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                              ) -> list[np.ndarray]:
    """The mean of bilinear samples in each part, moved as trans says, and how many samples there were."""
    data, rois = inputs[:2]
    shape = (len(rois), params.output_dim, *[params.pooled_size] * 2)
    out, count = np.zeros(shape), np.zeros(shape)
    for part, _, samples in _moves(params, data, rois, inputs[-1]):
        count[part.place] = len(samples)
        for y, x in samples:
            total = sum(float(data[(*part.plane, yy, xx)]) * weight for yy, xx, weight, _, _ in _corners(y, x))
            out[part.place] += total / len(samples)
    return [out, count]


def deformable_ps_roi_pooling_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                                   ) -> list[np.ndarray]:
    """The gradients to data and trans."""
    data, rois, trans, grad = inputs
    to_data, to_trans = np.zeros(data.shape), np.zeros(trans.shape)
    for part, at, samples in _moves(params, data, rois, trans):
        for y, x in samples:
            flowing = float(grad[part.place]) / len(samples)
            for yy, xx, weight, slope_y, slope_x in _corners(y, x):
                to_data[(*part.plane, yy, xx)] += flowing * weight
                if at:
                    value = flowing * float(data[(*part.plane, yy, xx)]) * float(params.trans_std)
                    to_trans[at] += value * slope_x * part.size[1]
                    to_trans[at[0], at[1] + 1, at[2], at[3]] += value * slope_y * part.size[0]
    return [to_data, to_trans]
