"""The reference of attention's products."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.attention.shape import depth
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _parts(params: Params, data: np.ndarray, count: int = 3) -> np.ndarray:
    """(count, length, batch, heads, depth), in float64: of queries, keys, values, the last `count`, or queries."""
    length, batch, _ = data.shape
    size = depth(params, data.shape, count)
    return np.moveaxis(data.astype(np.float64).reshape(length, batch, params.heads, count, size), 3, 0)


def selfatt_qk(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Queries times keys over the root of their depth, for each head of each example."""
    queries, keys, _ = _parts(params, inputs[0])
    return [_scores(queries, keys)]


def _scores(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    out = np.einsum("ibhd,jbhd->bhij", queries, keys) / np.sqrt(queries.shape[-1])
    return out.reshape(-1, *out.shape[2:])


def selfatt_valatt(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Attention times values, for each head of each example."""
    return [_attended(_parts(params, inputs[0])[2], inputs[1])]


def _attended(values: np.ndarray, attention: np.ndarray) -> np.ndarray:
    other, batch, heads, _ = values.shape
    length = attention.shape[1]
    weights = attention.astype(np.float64).reshape(batch, heads, length, other)
    return np.einsum("bhij,jbhd->ibhd", weights, values).reshape(length, batch, -1)


def encdec_qk(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Queries times keys of something else, over the root of their depth, for each head of each example."""
    return [_scores(_parts(params, inputs[0], 1)[0], _parts(params, inputs[1], 2)[0])]


def encdec_valatt(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Attention times values of something else, for each head of each example."""
    return [_attended(_parts(params, inputs[0], 2)[1], inputs[1])]
