"""The reference of losses."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.softmax.reference import softmax_over
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def softmax_output(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """softmax over axis 1 (multi_output), the last axis (preserve_shape), or everything in a sample."""
    x = inputs[0].astype(np.float64)
    if params.multi_output:
        return [softmax_over(x, 1)]
    return [softmax_over(x, x.ndim - 1 if params.preserve_shape else tuple(range(1, x.ndim)) or (0,))]


def first_of(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The first input: what regression outputs pass on."""
    return [inputs[0]]


def logistic_output(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """sigmoid of the first input."""
    x = inputs[0].astype(np.float64)
    powers = np.exp(-np.abs(x))
    return [np.where(x >= 0, 1, powers) / (1 + powers)]


def softmax_cross_entropy(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """The sum of -log(softmax at the label's class). A probability below 1e-8 counts as 1e-8; so does that of a label
    that is no class."""
    x, label = inputs[0].astype(np.float64), np.trunc(inputs[1]).astype(np.int64)
    powers = np.exp(x - x.max(1, keepdims=True))
    chosen = np.where(label[:, None] == np.arange(x.shape[1]), powers / powers.sum(1, keepdims=True), 0).sum(1)
    return [-np.log(np.maximum(chosen, 1e-8)).sum(keepdims=True)]
