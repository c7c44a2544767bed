"""The reference of reductions."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def argmax_channel(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """The first place of the largest element along axis 1; NaN is larger than all numbers."""
    return [inputs[0].argmax(1)]
