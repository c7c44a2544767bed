"""The reference of more operators that move elements."""
from __future__ import annotations

import functools

import numpy as np

from mxc.compiler.ops.expr import as_dtype, number_as
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.reference import convolution
from mxc.compiler.ops.shapes import move as shapes
from mxc.compiler.ops.table import Params

Arrays = list[np.ndarray]
Generator = np.random.Generator


def _taken(data: np.ndarray, places: list[range]) -> np.ndarray:
    return data[np.ix_(*map(list, places))]


def strided_slice(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The elements at `slice_ranges` of each axis."""
    return [_taken(inputs[0], shapes.slice_ranges(params, inputs[0].shape))]


def slice_assign(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """lhs, with rhs at the places that slice takes."""
    out = inputs[0].copy()
    out[np.ix_(*map(list, shapes.slice_ranges(params, out.shape)))] = inputs[1]
    return [out]


def slice_assign_scalar(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The data, with `scalar` at the places that slice takes."""
    value = np.asarray(number_as(params.scalar, inputs[0].dtype.name))
    return slice_assign(params, [inputs[0], value], is_train, rng)


def slice_like(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The first elements, as many as the second input has."""
    return [_taken(inputs[0], shapes.like_ranges(params, inputs[0].shape, inputs[1].shape))]


def crop(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """A part of each image."""
    like = inputs[1].shape if len(inputs) == 2 else None
    return [_taken(inputs[0], shapes.crop_ranges(params, inputs[0].shape, like))]


def tile(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The whole array again and again."""
    return [np.tile(inputs[0], params.reps)]


def repeat(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Each element again and again."""
    return [np.repeat(inputs[0], params.repeats, params.axis)]


def upsampling(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Each pixel as a square, of several inputs joined along the channels or added; or the deconvolution."""
    if params.sample_type == "bilinear":
        return convolution.deconvolution(shapes.bilinear(params), inputs, is_train, rng)
    factors = shapes.upsampling_factors(params, [x.shape for x in inputs])
    large = [x.repeat(f, 2).repeat(f, 3) for x, f in zip(inputs, factors, strict=True)]
    return [np.sum(large, 0) if params.multi_input_mode == "sum" else np.concatenate(large, 1)]


def swap_axis(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Two axes in each other's place."""
    return [inputs[0].swapaxes(params.dim1, params.dim2)]


def squeeze(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Without axes of extent 1."""
    return [np.atleast_1d(inputs[0].squeeze(params.axis))]


def stack(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The inputs along a new axis."""
    return [np.stack(inputs, params.axis)]


def reverse(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Backwards along each of `axis`."""
    return [np.flip(inputs[0], tuple(shapes.reversed_axes(params)))]


def depth_to_space(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Channels as the rows and columns of blocks: the block's place is the slower part of a channel's number."""
    size, (n, c, h, w) = params.block_size, inputs[0].shape
    blocks = inputs[0].reshape(n, size, size, c // size**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return [blocks.reshape(n, c // size**2, h * size, w * size)]


def space_to_depth(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The inverse of depth_to_space."""
    size, (n, c, h, w) = params.block_size, inputs[0].shape
    blocks = inputs[0].reshape(n, c, h // size, size, w // size, size).transpose(0, 3, 5, 1, 2, 4)
    return [blocks.reshape(n, c * size**2, h // size, w // size)]


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


def broadcast_axis(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Axes of extent 1 repeated."""
    shape = shapes.broadcast_axis(params, [inputs[0].shape], [None])[1][0]
    assert shape is not None
    return [np.broadcast_to(inputs[0], shape).copy()]


def broadcast_like(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Axes of extent 1 repeated as in the second input."""
    shape = shapes.broadcast_like(params, [a.shape for a in inputs], [None])[1][0]
    assert shape is not None
    return [np.broadcast_to(inputs[0], shape).copy()]


def reshape_like(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The first input's elements in a shape like the second's."""
    shape = shapes.reshape_like(params, [a.shape for a in inputs], [None])[1][0]
    assert shape is not None
    return [inputs[0].reshape(shape)]


def shape_array(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The extents."""
    return [np.array(inputs[0].shape, "int64")]


def size_array(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The number of elements."""
    return [np.array([inputs[0].size], "int64")]


def index_array(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """For each element its index along each of `axes`."""
    axes = shapes.index_axes(params, inputs[0].ndim)
    return [np.moveaxis(np.indices(inputs[0].shape)[list(axes)], 0, -1)]


def arange_like(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """start, start + step, ...; each `repeat` times; start and step are cast to the data's dtype first."""
    shape = shapes.arange_like(params, [inputs[0].shape], [None])[1][0]
    assert shape is not None
    dtype = inputs[0].dtype
    first, each = (np.asarray(number_as(v, dtype.name), dtype) for v in (params.start, params.step))
    count = np.arange(np.prod(shape)) // params.repeat
    return [(first + each * as_dtype(count, dtype)).reshape(shape)]


def split_v2(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The parts along `axis`."""
    places = shapes.split_places(params, inputs[0].shape[params.axis])
    parts = np.split(inputs[0], places[1:-1], params.axis)
    return [p.squeeze(params.axis) for p in parts] if params.squeeze_axis else parts


def div_sqrt_dim(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The data over the root of its last extent."""
    return [inputs[0] / np.sqrt(np.asarray(inputs[0].shape[-1], inputs[0].dtype))]


def khatri_rao(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Column by column the Kronecker product."""
    return [functools.reduce(lambda a, b: (a[:, None] * b[None]).reshape(-1, a.shape[1]), inputs)]
