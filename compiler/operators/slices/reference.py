"""The reference of slices, splits, joins and borders."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.slices.shape import crop_ranges, like_ranges, slice_bounds, slice_ranges, split_places
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def concat(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The inputs one after another along `dim`."""
    return [np.concatenate(inputs, params.dim)]


def slice_channel(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                  ) -> list[np.ndarray]:
    """Equal parts along `axis`."""
    parts = np.split(inputs[0], params.num_outputs, params.axis)
    return [p.squeeze(params.axis) for p in parts] if params.squeeze_axis else parts


def slice_axis(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Elements begin to end of one axis."""
    axis = params.axis % inputs[0].ndim
    begin, end = slice_bounds(params, inputs[0].shape[axis])
    return [inputs[0][(slice(None),) * axis + (slice(begin, end),)]]


def _taken(data: np.ndarray, places: list[range]) -> np.ndarray:
    return data[np.ix_(*map(list, places))]


def strided_slice(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The elements at `slice_ranges` of each axis."""
    return [_taken(inputs[0], slice_ranges(params, inputs[0].shape))]


def slice_assign(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """lhs, with rhs at the places that slice takes."""
    out = inputs[0].copy()
    out[np.ix_(*map(list, slice_ranges(params, out.shape)))] = inputs[1]
    return [out]


def slice_assign_scalar(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The data, with `scalar` at the places that slice takes."""
    value = np.asarray(number_as(params.scalar, inputs[0].dtype.name))
    return slice_assign(params, [inputs[0], value], is_train, rng)


def slice_like(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The first elements, as many as the second input has."""
    return [_taken(inputs[0], like_ranges(params, inputs[0].shape, inputs[1].shape))]


def crop(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """A part of each image."""
    like = inputs[1].shape if len(inputs) == 2 else None
    return [_taken(inputs[0], crop_ranges(params, inputs[0].shape, like))]


def stack(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The inputs along a new axis."""
    return [np.stack(inputs, params.axis)]


def pad(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """A number, the last element or the elements mirrored at it, around the data."""
    width = list(zip(params.pad_width[::2], params.pad_width[1::2], strict=True))
    if params.mode == "constant":
        return [np.pad(inputs[0], width, constant_values=params.constant_value)]
    return [np.pad(inputs[0], width, params.mode)]


def diag(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """A vector as a matrix's diagonal, or diagonals as vectors."""
    if inputs[0].ndim == 1:
        return [np.diag(inputs[0], params.k)]
    return [np.diagonal(inputs[0], params.k, params.axis1, params.axis2)]


def on_diagonal(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Zeros, with the data's last axis on the diagonal."""
    out = np.zeros(params.shape, inputs[0].dtype)
    moved = np.moveaxis(out, (params.axis1, params.axis2), (-2, -1))
    count, k = inputs[0].shape[-1], params.k
    rows = np.arange(count) + max(0, -k)
    moved[..., rows, rows + k] = inputs[0]
    return [out]


def split_v2(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The parts along `axis`."""
    places = split_places(params, inputs[0].shape[params.axis])
    parts = np.split(inputs[0], places[1:-1], params.axis)
    return [p.squeeze(params.axis) for p in parts] if params.squeeze_axis else parts
