"""Changes of arrays in place that lines over elements do not say, by NumPy. They give the results, if any."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.updates import compute_dtype


def group_adagrad(params: Params, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """history + mean(grad ** 2) of each row; weight - lr * grad / sqrt(history + epsilon). grad is scaled and
    clipped."""
    weight, grad, history = arrays
    dtype = np.dtype(compute_dtype([weight.dtype.name]))
    slope = grad * dtype.type(params.rescale_grad)
    if params.clip_gradient >= 0:
        slope = slope.clip(-dtype.type(params.clip_gradient), dtype.type(params.clip_gradient))
    rows = (len(weight), *[1] * (weight.ndim - 1))
    means = np.square(slope, dtype=dtype).mean(axis=tuple(range(1, weight.ndim)), keepdims=True)
    total = history.reshape(rows) + means
    history[...] = total.reshape(history.shape)
    return [weight - dtype.type(params.lr) * slope / np.sqrt(total + dtype.type(params.epsilon))]


def zeros(params: Params, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Every element becomes 0."""
    for array in arrays:
        array[...] = 0
    return []
