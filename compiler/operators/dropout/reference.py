"""The reference of Dropout."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def dropout(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The data times a mask, and the mask: 1 / (1 - p) with probability 1 - p, else 0. In inference it is 1 everywhere,
    unless the mode is "always"."""
    data = inputs[0].astype(np.float64)
    shape = tuple(1 if i in params.axes else n for i, n in enumerate(data.shape))
    mask = np.ones(shape)
    if (is_train or params.mode == "always") and params.p > 0:
        keep = 1 - params.p
        mask = (rng.random(shape) < keep) / (keep or 1)
    return [data * mask, mask]
