"""What the operators of Winograd's convolution compute: the formulas of `ops/winograd.py`."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops import winograd
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.shapes.winograd import spread
from mxc.compiler.ops.table import Params


def winograd_factors(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(36, 9): what a flat kernel is multiplied by."""
    return [winograd.FACTORS.astype(np.float32)]


def winograd_data(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The transformed tiles of data in blocks."""
    (data,) = inputs
    n, blocks, height, width, lanes = data.shape
    plain = np.moveaxis(data, -1, 2).reshape(n, blocks * lanes, height, width)
    made = winograd.transformed(plain, spread(data.shape, params.pad), params.pad, params.tiles, lanes)
    return [made.astype(data.dtype)]


def winograd_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The convolution of transformed data, in blocks."""
    data, weight = inputs
    batch, blocks, height, width, lanes = params.shape
    rows = weight.transpose(0, 1, 3, 2).reshape(winograd.PLACES, -1, weight.shape[2])[:, : blocks * lanes]
    out = winograd.convolved(data, rows, batch, (height, width)).reshape(batch, blocks, lanes, height, width)
    return [np.moveaxis(out, 2, -1).astype(data.dtype)]
