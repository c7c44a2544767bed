"""The reference of operators that rearrange or repeat elements."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.arrange import shape as shapes
from mxc.compiler.operators.arrange.shape import broadcast_target, reversed_axes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def reshape(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The same elements in the shape that the parameters ask for."""
    shape = shapes.reshape(params, [inputs[0].shape], [None])[1][0]
    assert shape is not None
    return [inputs[0].reshape(shape)]


def flatten(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(N, everything else)."""
    return [inputs[0].reshape(len(inputs[0]), -1)]


def transpose(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Axis i of the output is axis axes[i] of the data."""
    return [inputs[0].transpose(params.axes or None)]


def expand_dims(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """A new axis of size 1."""
    return [np.expand_dims(inputs[0], params.axis)]


def broadcast_to(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                 ) -> list[np.ndarray]:
    """Axes of extent 1 repeated."""
    return [np.broadcast_to(inputs[0], broadcast_target(params, inputs[0].shape)).copy()]


def tile(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The whole array again and again."""
    return [np.tile(inputs[0], params.reps)]


def repeat(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Each element again and again."""
    return [np.repeat(inputs[0], params.repeats, params.axis)]


def swap_axis(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Two axes in each other's place."""
    return [inputs[0].swapaxes(params.dim1, params.dim2)]


def squeeze(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Without axes of extent 1."""
    return [np.atleast_1d(inputs[0].squeeze(params.axis))]


def reverse(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Backwards along each of `axis`."""
    return [np.flip(inputs[0], tuple(reversed_axes(params)))]


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
