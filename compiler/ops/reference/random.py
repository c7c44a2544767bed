"""Reference implementations of random operators: the numbers that compiled code draws, by NumPy."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.table import Params


def rand(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Uniform numbers in [0, 1) of the run's stream that `offset` names."""
    return [rng.random(params.shape, params.dtype, params.offset)]


def key(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Seed and offset of that stream."""
    return [rng.key(params.offset)]
