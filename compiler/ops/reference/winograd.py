"""What the operators of Winograd's convolution compute: the formulas of `ops/winograd.py`."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops import winograd
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.reference.packed import blocks_of, plain_of, unpacked
from mxc.compiler.ops.table import Params


def winograd_factors(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(36, 9): what a flat kernel is multiplied by."""
    return [winograd.FACTORS.astype(np.float32)]


def winograd_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The convolution of data in blocks, into blocks."""
    data, weight = inputs
    _, blocks, height, width, lanes = params.shape
    out = winograd.convolved(plain_of(data), unpacked(weight, blocks * lanes), params.pad, (height, width))
    return [blocks_of(out, lanes).astype(data.dtype)]
