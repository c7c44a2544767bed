"""The reference of deformable convolutions: samples one tap at a time, in float64."""
from __future__ import annotations

import itertools
from math import prod

import numpy as np

from mxc.compiler.operators.convolution.shape import column_geometry, column_windows, geometry
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _positions(params: Params, offset: np.ndarray, space: tuple[int, ...]) -> np.ndarray:
    """(2, N, groups, taps, windows): the row and the column that each tap of each window reads at."""
    g = column_geometry(params)
    counts = column_windows(g, space)
    taps = np.array(list(itertools.product(*map(range, g.kernel)))).T
    windows = np.array(list(itertools.product(*map(range, counts)))).T
    moved = offset.astype(np.float64).reshape(len(offset), -1, taps.shape[1], 2, prod(counts)).transpose(3, 0, 1, 2, 4)
    step, gap, pad = (np.array(part)[:, None] for part in (g.stride, g.dilate, g.pad))
    return moved + (windows * step - pad)[:, None, None, None, :] + (taps * gap)[:, None, None, :, None]


def _corners(params: Params, offset: np.ndarray, space: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    """For the four elements around each place: row, column, weight, and how the weight grows with row and column."""
    down, across = _positions(params, offset, space)
    height, width = space
    least = -1 if params.beyond else 0
    with np.errstate(invalid="ignore"):
        inside = (down < height) & (across < width)
        inside &= ((down > least) & (across > least)) if params.beyond else ((down >= least) & (across >= least))
    parts = []
    for place, size in ((down, height), (across, width)):
        known = np.where(inside, place, 0)
        clipped = known if params.beyond else np.minimum(known, size - 1)
        low = np.floor(clipped).astype(int)
        grows = np.where(clipped < size - 1, 1.0, 0.0) if not params.beyond else np.ones(known.shape)
        parts.append([(low, 1 - (clipped - low), -grows), (low + 1, clipped - low, grows)])
    found: list[tuple[np.ndarray, ...]] = []
    for (y, weight_y, slope_y), (x, weight_x, slope_x) in itertools.product(*parts):
        here = inside & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        found.append((np.where(here, y, 0), np.where(here, x, 0), here * weight_y * weight_x,
                      here * slope_y * weight_x, here * weight_y * slope_x))
    return found


def _elements(data: np.ndarray, groups: int, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(N, groups, channels of a group, taps, windows): the elements at those rows and columns."""
    parts = data.astype(np.float64).reshape(len(data), groups, -1, *data.shape[2:])
    n, group = np.ogrid[: len(data), :groups]
    return np.moveaxis(parts[n[..., None, None], group[..., None, None], :, y, x], -1, 2)


def deformable_columns(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Each tap of each window of each channel, between the four elements around its place."""
    data, offset = inputs
    out = sum(_elements(data, params.num_deformable_group, y, x) * weight[:, :, None]
              for y, x, weight, _, _ in _corners(params, offset, data.shape[2:]))
    assert isinstance(out, np.ndarray)
    return [out.reshape(len(data), -1, out.shape[-1])]


def deformable_columns_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """What flows into a column goes to the four elements by their weights, and to the place by how these change."""
    data, offset, grad = inputs
    groups, corners = params.num_deformable_group, _corners(params, offset, data.shape[2:])
    grad = grad.astype(np.float64).reshape(len(data), groups, -1, *corners[0][0].shape[2:])
    to_data = np.zeros((len(data), groups, *data.shape[2:], grad.shape[2]))
    to_place = np.zeros((2, *corners[0][0].shape))
    n, group = np.ogrid[: len(data), :groups]
    for y, x, weight, *slopes in corners:
        flowing = np.moveaxis(grad * weight[:, :, None], 2, -1)
        np.add.at(to_data, (n[..., None, None], group[..., None, None], y, x), flowing)
        total = (grad * _elements(data, groups, y, x)).sum(2)
        to_place += [slope * total for slope in slopes]
    to_offset = to_place.transpose(1, 2, 3, 0, 4).reshape(offset.shape)
    return [np.moveaxis(to_data, -1, 2).reshape(data.shape), to_offset]


def _convolved(params: Params, data: np.ndarray, offset: np.ndarray, mask: np.ndarray | None,
               parameters: list[np.ndarray], rng: Draws) -> list[np.ndarray]:
    """The product of weight and columns, with the bias."""
    g, weight = geometry(params), parameters[0].astype(np.float64)
    taps, counts = prod(g.kernel), column_windows(g, data.shape[2:])
    columns = deformable_columns(Params({**params, "beyond": mask is not None}), [data, offset], False, rng)[0]
    if mask is not None:
        parts = mask.astype(np.float64).reshape(len(data), params.num_deformable_group, 1, taps, -1)
        columns = (columns.reshape(len(data), params.num_deformable_group, -1, *parts.shape[3:]) * parts)
    columns = columns.reshape(len(data), g.groups, -1, prod(counts))
    out = np.einsum("ngkw,gfk->ngfw", columns, weight.reshape(g.groups, -1, columns.shape[2]))
    out = out.reshape(len(data), -1, *counts)
    return [out + parameters[1].astype(np.float64).reshape(-1, 1, 1) if len(parameters) > 1 else out]


def deformable_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The convolution of the columns; places outside of the image give 0."""
    return _convolved(params, inputs[0], inputs[1], None, inputs[2:], rng)


def modulated_deformable_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                                     ) -> list[np.ndarray]:
    """The convolution of the columns, each sample times the mask; the image has zeros around it."""
    return _convolved(params, inputs[0], inputs[1], inputs[2], inputs[3:], rng)
