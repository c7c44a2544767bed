"""The reference of attention's products."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.attention.shape import depth
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _parts(params: Params, data: np.ndarray) -> np.ndarray:
    """(3, length, batch, heads, depth), in float64: queries, keys, values."""
    length, batch, _ = data.shape
    size = depth(params, data.shape)
    return np.moveaxis(data.astype(np.float64).reshape(length, batch, params.heads, 3, size), 3, 0)


def selfatt_qk(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Queries times keys over the root of their depth, for each head of each example."""
    queries, keys, _ = _parts(params, inputs[0])
    out = np.einsum("ibhd,jbhd->bhij", queries, keys) / np.sqrt(queries.shape[-1])
    return [out.reshape(-1, *out.shape[2:])]


def selfatt_valatt(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Attention times values, for each head of each example."""
    values = _parts(params, inputs[0])[2]
    length, batch, heads, _ = values.shape
    attention = inputs[1].astype(np.float64).reshape(batch, heads, length, length)
    return [np.einsum("bhij,jbhd->ibhd", attention, values).reshape(length, batch, -1)]
