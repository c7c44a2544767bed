"""The reference of matrix products."""
from __future__ import annotations

import functools

import numpy as np

from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def dot(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The contraction that the shape rule `dot` describes."""
    lhs, rhs = inputs
    wide = np.float64 if lhs.dtype.kind == "f" else lhs.dtype
    a = 0 if params["transpose_a"] else lhs.ndim - 1
    b = rhs.ndim - 1 if params["transpose_b"] else 0
    return [np.atleast_1d(np.tensordot(lhs.astype(wide), rhs.astype(wide), axes=([a], [b])))]


def batch_dot(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """A matrix product for each of the batch."""
    lhs, rhs = (a.astype(np.float64) if a.dtype.kind == "f" else a for a in inputs)
    return [np.matmul(lhs.swapaxes(-1, -2) if params["transpose_a"] else lhs,
                      rhs.swapaxes(-1, -2) if params["transpose_b"] else rhs)]


def khatri_rao(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Each column is the Kronecker product of the matrices' columns at that place."""
    return [functools.reduce(lambda a, b: (a[:, None] * b[None]).reshape(-1, a.shape[1]), inputs)]


def fully_connected(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                    ) -> list[np.ndarray]:
    """data times the transposed weight, plus the bias."""
    data, weight, *bias = (a.astype(np.float64) for a in inputs)
    if params.flatten:
        data = data.reshape(len(data), -1)
    out = data @ weight.T
    return [out + bias[0].reshape(-1) if bias else out]


def pack_rows(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(G, R, K) -> (G, ceil(R / block), K, block): rows in blocks, the last block filled up with zeros."""
    (data,) = inputs
    groups, rows, depth = data.shape
    blocks = -(-rows // params.block)
    filled = np.zeros((groups, blocks * params.block, depth), data.dtype)
    filled[:, :rows] = data
    return [filled.reshape(groups, blocks, params.block, depth).transpose(0, 1, 3, 2)]


def unpacked(packed: np.ndarray, rows: int) -> np.ndarray:
    """(G, blocks, K, block) -> (G, rows, K)"""
    groups, blocks, depth, block = packed.shape
    return packed.transpose(0, 1, 3, 2).reshape(groups, blocks * block, depth)[:, :rows]


def run_plain(op: str, params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
              **more: object) -> list[np.ndarray]:
    """`op` with those of its parameters that `params` has."""
    operator = table.get(op)
    given = {k: v for k, v in params.items() if k in operator.params}
    return operator.reference(operator.make_params(given | more), inputs, [inputs[0].dtype.name], is_train, rng)


def packed_fully_connected(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                           ) -> list[np.ndarray]:
    """FullyConnected of a matrix, without bias."""
    data, packed = inputs
    weight = unpacked(packed, params.num_hidden)[0]
    return run_plain("FullyConnected", params, [data, weight], is_train, rng, no_bias=True, flatten=False)
