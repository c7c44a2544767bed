"""The reference of normalisations."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


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


def layer_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(x - mean) / sqrt(var + eps) * gamma + beta along `axis`; mean; sqrt(var + eps)."""
    x, gamma, beta = (a.astype(np.float64) for a in inputs)
    axis = int(params.axis) % x.ndim
    mean, std = x.mean(axis, keepdims=True), np.sqrt(x.var(axis, keepdims=True) + params.eps)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return [(x - mean) / std * gamma.reshape(shape) + beta.reshape(shape), mean, std]


def group_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The same as layer_norm, over space and the channels of a group, with a gamma and beta for each group. A group of
    InstanceNorm is one channel."""
    data, gamma, beta = (a.astype(np.float64) for a in inputs)
    x = data.reshape(len(data), len(gamma), -1)
    mean, std = x.mean(2), np.sqrt(x.var(2) + params.eps)
    out = (x - mean[..., None]) / std[..., None] * gamma[:, None] + beta[:, None]
    return [out.reshape(data.shape), mean, std]


def l2_normalization(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                     ) -> list[np.ndarray]:
    """x / sqrt(sum(x^2) + eps) over a sample, over axis 1 (channel) or over space (spatial); and the divisor."""
    x = inputs[0].astype(np.float64)
    axes = {"instance": range(1, x.ndim), "channel": (1,), "spatial": range(2, x.ndim)}[params.mode]
    norm = np.sqrt((x * x).sum(tuple(axes), keepdims=True) + params.eps)
    return [x / norm, norm.squeeze(tuple(axes))]


def lrn(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """x / base^beta with base = knorm + alpha / nsize * the sum of x^2 over channels at most (nsize - 1) // 2 away."""
    x = inputs[0].astype(np.float64)
    half, base = (params.nsize - 1) // 2, np.empty_like(x)
    for c in range(x.shape[1]):
        window = x[:, max(0, c - half):c + half + 1]
        base[:, c] = params.knorm + params.alpha / params.nsize * (window * window).sum(1)
    return [x * base ** -params.beta, base]


def moments(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Mean and variance over `axes`; where the data are integers, each mean is truncated to an integer."""
    data = inputs[0]
    axes = tuple(int(a) % data.ndim for a in params.axes)
    x = data.astype(np.float64)
    cut = np.trunc if data.dtype.kind in "iu" else np.asarray
    mean = cut(x.mean(axes, keepdims=True))
    variance = cut(((x - mean) ** 2).mean(axes, keepdims=True))
    if params.keepdims:
        return [mean, variance]
    shape = tuple(n for i, n in enumerate(data.shape) if i not in axes) or (1,)
    return [mean.reshape(shape), variance.reshape(shape)]


def batch_norm_with_relu(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                         ) -> list[np.ndarray]:
    """BatchNorm, its output at least 0."""
    out, *statistics = batch_norm(params, inputs, is_train, rng)
    return [np.maximum(out, 0), *statistics]


def sync_batch_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """BatchNorm of axis 1: output, mean, variance, 1 / sqrt(var + eps)."""
    out, mean, inverse = batch_norm(params, inputs, is_train, rng)
    return [out, mean, inverse ** -2 - params.eps, inverse]


def squares_around(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The sum of the squares of the neighbours along axis 2, of as many as the kernel has elements."""
    (size,), squares = params.kernel, np.moveaxis(inputs[0].astype(np.float64) ** 2, 2, 0)
    sums = [squares[max(i - size // 2, 0):i + size // 2 + 1].sum(0) for i in range(len(squares))]
    return [np.moveaxis(np.stack(sums), 0, 2)]
