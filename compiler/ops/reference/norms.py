"""The reference of normalisations by a sample's own statistics, and of the losses besides softmax."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.reference import layers, pooling
from mxc.compiler.ops.table import Params


def layer_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(x - mean) / sqrt(var + eps) * gamma + beta along `axis`; mean; sqrt(var + eps)."""
    x, gamma, beta = (a.astype(np.float64) for a in inputs)
    axis = int(params.axis) % x.ndim
    mean, std = x.mean(axis, keepdims=True), np.sqrt(x.var(axis, keepdims=True) + params.eps)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return [(x - mean) / std * gamma.reshape(shape) + beta.reshape(shape), mean, std]


def group_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """As layer_norm over the channels of a group and space, with a gamma and beta for each group; of InstanceNorm a
    group is one channel."""
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


def softmax_cross_entropy(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """The sum of -log(softmax at the label's class); a probability counts as at least 1e-8, as 0 without that class."""
    x, label = inputs[0].astype(np.float64), np.trunc(inputs[1]).astype(np.int64)
    powers = np.exp(x - x.max(1, keepdims=True))
    chosen = np.where(label[:, None] == np.arange(x.shape[1]), powers / powers.sum(1, keepdims=True), 0).sum(1)
    return [-np.log(np.maximum(chosen, 1e-8)).sum(keepdims=True)]


def moments(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Mean and variance over `axes`; of integers each mean is cut to an integer."""
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


def argmax_channel(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """The first place of the largest element along axis 1; NaN is larger than all numbers."""
    return [inputs[0].argmax(1)]


def batch_norm_with_relu(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                         ) -> list[np.ndarray]:
    """BatchNorm, its output at least 0."""
    out, *statistics = layers.batch_norm(params, inputs, is_train, rng)
    return [np.maximum(out, 0), *statistics]


def sync_batch_norm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """BatchNorm of axis 1: output, mean, variance, 1 / sqrt(var + eps)."""
    out, mean, inverse = layers.batch_norm(params, inputs, is_train, rng)
    return [out, mean, inverse ** -2 - params.eps, inverse]


def eye(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Ones on the k-th diagonal."""
    return [np.eye(params.N, params.M if params.M > 0 else params.N, params.k)]


def linspace(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """num numbers from start to stop, which is the last of them with `endpoint`."""
    if params.num == 1:
        return [np.array([params.start])]
    steps = params.num - 1 if params.endpoint else params.num
    return [params.start + np.arange(params.num) * ((params.stop - params.start) / steps)]


def pooling_v1(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Pooling of the data with zeros around it; an average divides by the kernel's size."""
    data = inputs[0]
    changes: dict[str, object] = {"pad": ()}
    if not params.global_pool:
        data = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in params.pad or (0, 0))])
        changes["pool_type"] = "sum" if params.pool_type == "avg" else params.pool_type
    (out,) = pooling.pooling(Params({**params, **changes}), [data], is_train, rng)
    if params.pool_type == "max" and not params.global_pool:  # a window behind the data has no element
        for axis, stride in enumerate(params.stride or (1, 1), 2):
            np.moveaxis(out, axis, 0)[np.arange(out.shape[axis]) * stride >= data.shape[axis]] = -np.inf
    return [out / math.prod(params.kernel) if params.pool_type == "avg" and not params.global_pool else out]
