"""The reference of grids and sampling images at them."""
from __future__ import annotations

import itertools
import math

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _affine(theta: np.ndarray, target: tuple[int, ...]) -> np.ndarray:
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in target), indexing="ij")
    place = np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
    return (theta.astype(np.float64).reshape(-1, 2, 3) @ place).reshape(len(theta), 2, *target)


def grid_generator(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """affine: a 2 by 3 matrix times (x, y, 1) in -1..1. warp: the pixel's place plus the flow, in -1..1."""
    data = inputs[0].astype(np.float64)
    if params.transform_type == "affine":
        return [_affine(data, tuple(params.target_shape))]
    height, width = data.shape[2:]
    x = (data[:, 0] + np.arange(width)) / ((width - 1) / 2) - 1
    y = (data[:, 1] + np.arange(height)[:, None]) / ((height - 1) / 2) - 1
    return [np.stack([x, y], 1)]


def _corners(place: float, size: int) -> list[tuple[int, float, int]]:
    """(element, weight, slope of the weight) of the elements around `place` in -1..1 that lie inside."""
    position = (place + 1) * (size - 1) / 2
    if not math.isfinite(position):
        return []
    before = math.floor(position)
    found = [(before, 1 - (position - before), -1), (before + 1, position - before, 1)]
    return [f for f in found if 0 <= f[0] < size]


def bilinear_sampler(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                     ) -> list[np.ndarray]:
    """Each place of the grid from the four elements around it; those outside are 0."""
    data, grid = (a.astype(np.float64) for a in inputs)
    out = np.zeros((*data.shape[:2], *grid.shape[2:]))
    for n, i, j in np.ndindex(len(data), *grid.shape[2:]):
        around = (_corners(grid[n, 1, i, j], data.shape[2]), _corners(grid[n, 0, i, j], data.shape[3]))
        if not np.isfinite(grid[n, :, i, j]).all():
            out[n, :, i, j] = np.nan
        for (y, down, _), (x, across, _) in itertools.product(*around):
            out[n, :, i, j] += down * across * data[n, :, y, x]
    return [out]


def bilinear_sampler_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """The gradient to the elements, by their weights, and to the grid, by the weights' slopes."""
    data, grid, og = (a.astype(np.float64) for a in inputs)
    to_data, to_grid = np.zeros(data.shape), np.zeros(grid.shape)
    height, width = data.shape[2:]
    for n, i, j in np.ndindex(len(data), *grid.shape[2:]):
        around = (_corners(grid[n, 1, i, j], height), _corners(grid[n, 0, i, j], width))
        for (y, down, slope_y), (x, across, slope_x) in itertools.product(*around):
            to_data[n, :, y, x] += down * across * og[n, :, i, j]
            both = (og[n, :, i, j] * data[n, :, y, x]).sum()
            to_grid[n, 0, i, j] += both * down * slope_x * (width - 1) / 2
            to_grid[n, 1, i, j] += both * across * slope_y * (height - 1) / 2
    return [to_data, to_grid]


def spatial_transformer(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                        ) -> list[np.ndarray]:
    """The image sampled at an affine grid."""
    return bilinear_sampler(params, [inputs[0], _affine(inputs[1], tuple(params.target_shape))], is_train, rng)
