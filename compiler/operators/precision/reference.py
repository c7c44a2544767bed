"""Questions about arrays of several precisions, by NumPy."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.dtypes import MIXED
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def all_finite(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """1 if all elements of all arrays are finite, else 0"""
    return [np.array([all(np.isfinite(data).all() for data in inputs)], np.float32)]


def allclose(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """1 if all elements are close to each other, else 0; what is infinite is close to everything, as MXNet has it"""
    a, b = (x.astype(np.float64) for x in inputs)
    with np.errstate(invalid="ignore"):
        close = (a == b) | (abs(a - b) <= float(params.atol) + float(params.rtol) * abs(b))
    return [np.array((close | (np.isnan(a) & np.isnan(b) & bool(params.equal_nan))).all(), np.uint8)]


def sum_sq(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The sum of squares of each array"""
    return [np.array([np.square(data.astype(np.float64)).sum() for data in inputs])]


def multicast(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The arrays, those of mixed precision's dtypes in one of these"""
    found = [MIXED.index(data.dtype.name) for data in inputs if data.dtype.name in MIXED]
    common = MIXED[min(found) if params.cast_narrow else max(found)] if found else ""
    return [data.astype(common) if data.dtype.name in MIXED else data.copy() for data in inputs]
