"""What the operators of Winograd's convolution compute: the formulas of `ops/winograd.py`."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops import winograd
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.reference.packed import blocks_of, plain_of, unpacked
from mxc.compiler.ops.shapes.winograd import spread
from mxc.compiler.ops.table import Params


def winograd_factors(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(36, 9): what a flat kernel is multiplied by."""
    return [winograd.FACTORS.astype(np.float32)]


def winograd_data(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The transformed tiles of data in blocks."""
    (data,) = inputs
    out = spread(data.shape, params.pad)
    made = winograd.transformed(plain_of(data), out, params.pad, params.tiles, data.shape[-1])
    return [made.astype(data.dtype)]


def winograd_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The convolution of transformed data, in blocks."""
    data, weight = inputs
    batch, blocks, height, width, lanes = params.shape
    out = winograd.convolved(data, unpacked(weight, blocks * lanes), batch, (height, width))
    return [blocks_of(out, lanes).astype(data.dtype)]
