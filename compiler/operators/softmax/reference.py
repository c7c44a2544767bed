"""The reference of the softmax family."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _temperature(params: Params) -> np.float64:
    return np.float64(1 if params.temperature is None else params.temperature)


def softmax_over(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # Where the largest is infinite (an empty row's is), the result is NaN.
        powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


def softmax(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """exp(x / temperature) over its sum along `axis`; with `length` over the first elements only, the others are 0."""
    x = inputs[0].astype(np.float64) / _temperature(params)
    axis = int(params.axis) % x.ndim
    if not params.use_length:
        return [softmax_over(x, axis)]
    place = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    inside = np.broadcast_to(place < np.expand_dims(inputs[1], axis), x.shape)
    return [np.where(inside, softmax_over(np.where(inside, x, -np.inf), axis), 0)]


def softmin(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """softmax of -x."""
    x = inputs[0].astype(np.float64) / _temperature(params)
    return [softmax_over(-x, int(params.axis))]


def log_softmax(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """x - log(sum(exp(x))) along `axis`, of x / temperature."""
    x = inputs[0].astype(np.float64) / _temperature(params)
    x = x - x.max(int(params.axis), keepdims=True)
    return [x - np.log(np.exp(x).sum(int(params.axis), keepdims=True))]


def softmax_activation(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                       ) -> list[np.ndarray]:
    """softmax over the channels (axis 1), or (mode instance) the last axis: MXNet folds all others into rows."""
    x = inputs[0].astype(np.float64)
    return [softmax_over(x, 1 if params.mode == "channel" else x.ndim - 1)]
