"""The reference of operators that resample images."""
from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mxc.compiler.operators.convolution.reference import deconvolution
from mxc.compiler.operators.resize.shape import adaptive_size, bilinear, resized, upsampling_factors
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def upsampling(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Each pixel as a square, of several inputs joined along the channels or added; or the deconvolution."""
    if params.sample_type == "bilinear":
        return deconvolution(bilinear(params), inputs, is_train, rng)
    factors = upsampling_factors(params, [x.shape for x in inputs])
    large = [x.repeat(f, 2).repeat(f, 3) for x, f in zip(inputs, factors, strict=True)]
    return [np.sum(large, 0) if params.multi_input_mode == "sum" else np.concatenate(large, 1)]


def adaptive_slice(i: int, size: int, out: int) -> slice:
    """The elements of `size` that element i of `out` is the mean of: overlapping windows of about size / out."""
    return slice(i * size // out, -(-(i + 1) * size // out))


def _average(data: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    out = np.zeros((*data.shape[:2], *size))
    for y, x in itertools.product(*map(range, size)):
        window = adaptive_slice(y, data.shape[2], size[0]), adaptive_slice(x, data.shape[3], size[1])
        out[:, :, y, x] = data[:, :, *window].mean((2, 3))
    return out


def adaptive_pooling(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                     ) -> list[np.ndarray]:
    """The mean over each window."""
    return [_average(inputs[0].astype(np.float64), adaptive_size(params))]


def adaptive_pool(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                  ) -> list[np.ndarray]:
    """avg: the mean over each window. spread: the elements of a gradient, each divided by the length of its window and
    added to all elements of the window."""
    data = inputs[0].astype(np.float64)
    size = tuple(params.shape[2:])
    if params.pool_type == "avg":
        return [_average(data, size)]
    out = np.zeros((*data.shape[:2], *size))
    for y, x in itertools.product(*map(range, data.shape[2:])):
        window = out[:, :, adaptive_slice(y, size[0], data.shape[2]), adaptive_slice(x, size[1], data.shape[3])]
        window += data[:, :, y, x, None, None] / (window.shape[2] * window.shape[3])
    return [out]


def _sources(size: int, out: int, align_corners: bool) -> list[list[tuple[int, float]]]:
    """For each element of `out` the elements of `size` that it is computed from, with their weights."""
    made = []
    one = np.float32(1)
    for i in range(out):
        if out == 1:
            position = np.float32(0)
        elif align_corners:
            position = one * (size - 1) / np.float32(out - 1) * np.float32(i)
        else:
            position = max(one * size / np.float32(out) * np.float32(i + 0.5) - np.float32(0.5), np.float32(0))
        before = min(int(position), size - 1)
        distance = float(position) - before
        made.append([(before, 1 - distance), (min(before + 1, size - 1), distance)])
    return made


def _pairs(size: tuple[int, ...], out: tuple[int, ...], align_corners: object,
           ) -> Iterator[tuple[tuple[int, int], tuple[int, int], float]]:
    """(output's place, input's place, weight) of everything that bilinear resizing adds up."""
    rows, columns = (_sources(n, o, bool(align_corners)) for n, o in zip(size, out, strict=True))
    for (i, ys), (j, xs) in itertools.product(enumerate(rows), enumerate(columns)):
        for (y, down), (x, across) in itertools.product(ys, xs):
            yield (i, j), (y, x), down * across


def bilinear_resize(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """Each element from the four around its place."""
    data = inputs[0].astype(np.float64)
    if params.mode == "like":
        size = inputs[1].shape[2:]
    else:
        size = resized(params, data.shape[2], "height"), resized(params, data.shape[3], "width")
    if tuple(size) == data.shape[2:]:
        return [data]
    out = np.zeros((*data.shape[:2], *size))
    for place, read, weight in _pairs(data.shape[2:], size, params.align_corners):
        out[:, :, *place] += weight * data[:, :, *read]
    return [out]


def bilinear_resize_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                         ) -> list[np.ndarray]:
    """Each output's gradient to what it was computed from."""
    grad = inputs[0].astype(np.float64)
    out = np.zeros(tuple(params.shape))
    for place, read, weight in _pairs(out.shape[2:], grad.shape[2:], params.align_corners):
        out[:, :, *read] += weight * grad[:, :, *place]
    return [out]
