"""The reference of activations chosen by a parameter."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.operators.activation.shape import SELU_ALPHA, SELU_SCALE
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws
from mxc.compiler.scalar_functions.special import erf


def leaky_relu(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """x above 0; below: slope x (leaky), gamma x (prelu), a random slope times x (rrelu), slope (exp(x) - 1) (elu),
    the same with selu's constants, all scaled (selu). gelu is x (1 + erf(x / sqrt 2)) / 2.

    The second output holds rrelu's slopes. In inference it holds zeros, and negative x are multiplied by (lower_bound +
    upper_bound) / 2.
    """
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
