"""The reference of pooling over regions of images."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Weights = dict[tuple[int, ...], float]


def _away(x: float) -> int:
    """Rounded, halves away from zero."""
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def _parts(params: Params, data: np.ndarray, rois: np.ndarray) -> Iterator[tuple[int, int, int, int, np.ndarray]]:
    """(region, image, row, column, region's corners over the scale) of every part of a region of a known image."""
    rows, columns = params.pooled_size
    for (r, roi), row, column in itertools.product(enumerate(rois), range(rows), range(columns)):
        if 0 <= roi[0] < len(data):
            yield r, int(roi[0]), row, column, roi[1:].astype(np.float64) * float(params.spatial_scale)


def _largest(params: Params, plane: np.ndarray, row: int, column: int, corners: np.ndarray) -> Weights:
    """Weight 1 for the first of the largest numbers of a part; nothing for an empty part."""
    left, top, right, bottom = (_away(x) for x in corners)
    spans = []
    for at, count, start, stop, size in ((row, params.pooled_size[0], top, bottom, plane.shape[0]),
                                         (column, params.pooled_size[1], left, right, plane.shape[1])):
        part = max(stop - start + 1, 1) / count
        spans.append(range(min(max(math.floor(at * part) + start, 0), size),
                           min(max(math.ceil((at + 1) * part) + start, 0), size)))
    places = list(itertools.product(*spans))
    return {max(places, key=lambda p: plane[p]): 1.0} if places else {}


def _average(params: Params, plane: np.ndarray, row: int, column: int, corners: np.ndarray) -> Weights:
    """The weights of the elements around each sample of a part."""
    left, top, right, bottom = corners - (0.5 if params.aligned else 0)
    axes = []
    for at, count, start, length, size in ((row, params.pooled_size[0], top, bottom - top, plane.shape[0]),
                                           (column, params.pooled_size[1], left, right - left, plane.shape[1])):
        part = (length if params.aligned else max(length, 1)) / count
        samples = 0 if part <= 0 else params.sample_ratio if params.sample_ratio > 0 else math.ceil(part)
        found = []
        for i in range(samples):
            place = start + part * (at + (i + 0.5) / samples)
            inside = -1 <= place <= size
            place = min(max(place, 0), size - 1)
            low = math.floor(place)
            found.append([(low, low + 1 - place), (min(low + 1, size - 1), place - low)] if inside else [])
        axes.append(found)
    weights: Weights = {}
    for ys, xs in itertools.product(*axes):
        for (y, down), (x, across) in itertools.product(ys, xs):
            share = down * across / (len(axes[0]) * len(axes[1]))
            weights[y, x] = weights.get((y, x), 0.0) + share
    return weights


def _pooled(params: Params, inputs: list[np.ndarray], kind: str) -> list[np.ndarray]:
    data, rois = inputs[0].astype(np.float64), inputs[1]
    rows, columns = params.pooled_size
    apart = bool(params.get("position_sensitive"))
    channels = data.shape[1] // (rows * columns if apart else 1)
    backward = bool(params.get("backward"))
    out = np.zeros(data.shape if backward else (len(rois), channels, rows, columns))
    for r, image, row, column, corners in _parts(params, data, rois):
        for c in range(channels):
            source = (c * rows + row) * columns + column if apart else c
            rule = _largest if kind == "max" else _average
            for (y, x), weight in rule(params, data[image, source], row, column, corners).items():
                if backward:
                    out[image, source, y, x] += weight * inputs[2][r, c, row, column]
                else:
                    out[r, c, row, column] += weight * data[image, source, y, x]
    return [out]


def _pooled_of_pixels(params: Params, inputs: list[np.ndarray], kind: str) -> list[np.ndarray]:
    data, rois, out_grad = inputs
    grad = np.moveaxis(out_grad, -1, 1) if params.backward else out_grad
    return [np.moveaxis(_pooled(params, [np.moveaxis(data, -1, 1), rois, grad], kind)[0], 1, -1)]


def roi_pooling(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                ) -> list[np.ndarray]:
    """The largest number of each part of each region, or the gradient to data."""
    return _pooled(params, inputs, "max")


def roi_pooling_of_pixels(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """roi_pooling of arrays with the channels last."""
    return _pooled_of_pixels(params, inputs, "max")


def roi_align(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The mean of bilinear samples in each part of each region, or the gradient to data."""
    return _pooled(params, inputs, "avg")


def roi_align_of_pixels(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """roi_align of arrays with the channels last."""
    return _pooled_of_pixels(params, inputs, "avg")


def turned_roi_align(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The mean of bilinear samples in each part of each region: the region without its turn, whose samples are turned
    around its centre."""
    data, rois = inputs[0].astype(np.float64), inputs[1].astype(np.float64)
    rows, columns = params.pooled_size
    out = np.zeros((len(rois), data.shape[1], rows, columns))
    for r, (image, x, y, width, height, angle) in enumerate(rois):
        if not 0 <= image < len(data):
            continue
        axes = []
        for count, length in ((rows, height), (columns, width)):
            length = max(length * params.spatial_scale, 1)
            samples = params.sampling_ratio if params.sampling_ratio > 0 else math.ceil(length / count)
            axes.append(((np.arange(count * samples) + 0.5) / (count * samples) - 0.5) * length)
        v, u = np.meshgrid(*axes, indexing="ij")
        cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        down, across = v * cosine - u * sine, u * cosine + v * sine
        found = _bilinear(data[int(image)], down + y * params.spatial_scale, across + x * params.spatial_scale)
        split = found.reshape(-1, rows, v.shape[0] // rows, columns, v.shape[1] // columns)
        out[r] = split.mean(axis=(2, 4))
    return [out]


def _bilinear(image: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The samples of every channel of an image at places, 0 beyond a pixel outside of it."""
    height, width = image.shape[1:]
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    below, beside = y - top, x - left
    bottom, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    upper = image[:, top, left] * (1 - beside) + image[:, top, right] * beside
    lower = image[:, bottom, left] * (1 - beside) + image[:, bottom, right] * beside
    return np.where(inside, upper * (1 - below) + lower * below, 0)
