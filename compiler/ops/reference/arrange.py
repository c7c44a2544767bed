"""The reference of operators that move elements."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.shapes import arrange as shapes
from mxc.compiler.ops.table import Params


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
    begin, end = shapes.slice_bounds(params, inputs[0].shape[axis])
    return [inputs[0][(slice(None),) * axis + (slice(begin, end),)]]


def broadcast_to(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                 ) -> list[np.ndarray]:
    """Axes of extent 1 repeated."""
    return [np.broadcast_to(inputs[0], shapes.broadcast_target(params, inputs[0].shape)).copy()]
