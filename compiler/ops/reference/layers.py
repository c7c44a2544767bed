"""The reference of layers: fully connected, normalisation, activations, softmax, dropout and outputs with labels."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.special import SELU_ALPHA, SELU_SCALE, erf
from mxc.compiler.ops.table import Params


def fully_connected(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """data times the transposed weight, plus the bias."""
    data, weight, *bias = (a.astype(np.float64) for a in inputs)
    if params.flatten:
        data = data.reshape(len(data), -1)
    out = data @ weight.T
    return [out + bias[0].reshape(-1) if bias else out]


def batch_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(x - mean) / sqrt(var + eps) * gamma + beta along `axis`; mean; 1 / sqrt(var + eps).

    Training without use_global_stats takes the batch's mean and biased variance, else the moving ones. With fix_gamma
    gamma counts as 1.
    """
    data, gamma, beta, mean, var = (a.astype(np.float64) for a in inputs)
    axis = (params.axis if "axis" in params else 1) % data.ndim
    others = tuple(i for i in range(data.ndim) if i != axis)
    if is_train and not params.use_global_stats:
        mean, var = data.mean(others), data.var(others)
    inverse = 1 / np.sqrt(var + params.eps)
    scale = inverse if params.fix_gamma else gamma * inverse

    def along(vector: np.ndarray) -> np.ndarray:
        return np.expand_dims(vector, others)

    return [(data - along(mean)) * along(scale) + along(beta), mean, inverse]


def leaky_relu(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """x above 0; below: slope x (leaky), gamma x (prelu), a random slope times x (rrelu), slope (exp(x) - 1) (elu),
    the same with selu's constants, all scaled (selu). gelu is x (1 + erf(x / sqrt 2)) / 2. And rrelu's slopes, 0 in
    inference, where they are all (lower_bound + upper_bound) / 2."""
    data = inputs[0].astype(np.float64)
    kind = params.act_type
    slopes = np.zeros(data.shape)
    if kind == "gelu":
        return [0.5 * data * (1 + erf(data / math.sqrt(2))), slopes]
    if kind == "prelu":
        gamma = inputs[1].astype(np.float64)
        below = data * gamma.reshape(-1, *(1,) * max(0, data.ndim - 2))
    elif kind == "elu":
        below = params.slope * np.expm1(data)
    elif kind == "selu":
        below = SELU_SCALE * SELU_ALPHA * np.expm1(data)
    elif kind == "rrelu":
        low, high = params.lower_bound, params.upper_bound
        slopes = low + (high - low) * rng.random(data.shape) if is_train else slopes
        below = (slopes if is_train else (low + high) / 2) * data
    else:
        below = params.slope * data
    above = SELU_SCALE * data if kind == "selu" else data
    return [np.where(data > 0, above, below), slopes]


def _temperature(params: Params) -> np.float64:
    return np.float64(1 if params.temperature is None else params.temperature)


def _softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # NaN where the largest is infinite, as in a row without elements
        powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


def softmax(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """exp(x / temperature) over its sum along `axis`; with `length` over the first elements only, the others are 0."""
    x = inputs[0].astype(np.float64) / _temperature(params)
    axis = int(params.axis) % x.ndim
    if not params.use_length:
        return [_softmax(x, axis)]
    place = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
    inside = np.broadcast_to(place < np.expand_dims(inputs[1], axis), x.shape)
    return [np.where(inside, _softmax(np.where(inside, x, -np.inf), axis), 0)]


def softmin(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """softmax of -x."""
    x = inputs[0].astype(np.float64) / _temperature(params)
    return [_softmax(-x, int(params.axis))]


def log_softmax(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """x - log(sum(exp(x))) along `axis`, of x / temperature."""
    x = inputs[0].astype(np.float64) / _temperature(params)
    x = x - x.max(int(params.axis), keepdims=True)
    return [x - np.log(np.exp(x).sum(int(params.axis), keepdims=True))]


def softmax_activation(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                       ) -> list[np.ndarray]:
    """softmax over the channels (axis 1), or (mode instance) the last axis: MXNet folds all others into rows."""
    x = inputs[0].astype(np.float64)
    return [_softmax(x, 1 if params.mode == "channel" else x.ndim - 1)]


def softmax_output(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """softmax over axis 1 (multi_output), the last axis (preserve_shape), or everything in a sample."""
    x = inputs[0].astype(np.float64)
    if params.multi_output:
        return [_softmax(x, 1)]
    return [_softmax(x, x.ndim - 1 if params.preserve_shape else tuple(range(1, x.ndim)) or (0,))]


def dropout(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Data times a mask: 1 / (1 - p) with probability 1 - p, else 0; 1 in inference but for mode "always". And the
    mask."""
    data = inputs[0].astype(np.float64)
    shape = tuple(1 if i in params.axes else n for i, n in enumerate(data.shape))
    mask = np.ones(shape)
    if (is_train or params.mode == "always") and params.p > 0:
        keep = 1 - params.p
        mask = (rng.random(shape) < keep) / (keep or 1)
    return [data * mask, mask]


def first_of(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The first input: what regression outputs pass on."""
    return [inputs[0]]


def logistic_output(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """sigmoid of the first input."""
    x = inputs[0].astype(np.float64)
    powers = np.exp(-np.abs(x))
    return [np.where(x >= 0, 1, powers) / (1 + powers)]
