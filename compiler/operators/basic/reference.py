"""The reference of elementwise operators."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def where(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """x where the condition is not 0, else y; a vector condition chooses rows."""
    condition, x, y = inputs
    test = condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim)) != 0
    return [np.where(test, x, y)]


def div_sqrt_dim(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The data over the root of its last extent."""
    return [inputs[0] / np.sqrt(np.asarray(inputs[0].shape[-1], inputs[0].dtype))]
