"""The reference of operators that resample images."""
from __future__ import annotations

import itertools

import numpy as np

from mxc.compiler.ops.shapes.resize import adaptive_size
from mxc.compiler.ops.table import Params


def adaptive_slice(i: int, size: int, out: int) -> slice:
    """The elements of `size` that element i of `out` is the mean of: overlapping windows of about size / out."""
    return slice(i * size // out, -(-(i + 1) * size // out))


def _average(data: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    out = np.zeros((*data.shape[:2], *size))
    for y, x in itertools.product(*map(range, size)):
        window = adaptive_slice(y, data.shape[2], size[0]), adaptive_slice(x, data.shape[3], size[1])
        out[:, :, y, x] = data[:, :, *window].mean((2, 3))
    return out


def adaptive_pooling(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator,
                     ) -> list[np.ndarray]:
    """The mean over each window."""
    return [_average(inputs[0].astype(np.float64), adaptive_size(params))]


def adaptive_pool(params: Params, inputs: list[np.ndarray], is_train: bool, rng: np.random.Generator,
                  ) -> list[np.ndarray]:
    """avg: the mean over each window. spread: of a gradient, its elements over the lengths of their windows, added up
    where those lie."""
    data = inputs[0].astype(np.float64)
    size = tuple(params.shape[2:])
    if params.pool_type == "avg":
        return [_average(data, size)]
    out = np.zeros((*data.shape[:2], *size))
    for y, x in itertools.product(*map(range, data.shape[2:])):
        window = out[:, :, adaptive_slice(y, size[0], data.shape[2]), adaptive_slice(x, size[1], data.shape[3])]
        window += data[:, :, y, x, None, None] / (window.shape[2] * window.shape[3])
    return [out]
