"""References of operators about storage, on dense arrays."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def retain(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The rows that the indices name; zeros in the others."""
    data, indices = inputs
    out, rows = np.zeros_like(data), np.unique(indices.astype(np.int64))
    rows = rows[(rows >= 0) & (rows < len(data))]
    out[rows] = data[rows]
    return [out]


def count_stored(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """How many elements are not 0."""
    return [np.asarray(np.count_nonzero(inputs[0], params.axis)).reshape(-1)]


def add_rows(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The data added up in the rows that the indices name."""
    data, indices = inputs
    inner = data.shape[indices.ndim:]
    out = np.zeros((params.rows, *inner), np.float64 if data.dtype.kind == "f" else data.dtype)
    rows = np.clip(np.nan_to_num(indices.astype(np.float64)).astype(np.int64), 0, params.rows - 1)
    np.add.at(out, rows.ravel(), data.reshape(-1, *inner))
    return [out]


def edges(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """What is not 0 at these places, one by one."""
    data, u, v = inputs
    out = np.full(len(u), -1).astype(data.dtype)
    for i, (row, column) in enumerate(zip(u.astype(np.int64), v.astype(np.int64), strict=True)):
        if 0 <= row < data.shape[0] and 0 <= column < data.shape[1] and data[row, column] != 0:
            out[i] = data[row, column]
    return [out]
