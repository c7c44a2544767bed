"""Sparse forms of reductions: over the rows or columns of a csr array, and of all that is stored."""
from __future__ import annotations

from math import prod

import numpy as np

from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Call, Form
from mxc.compiler.ops.storage import CSR, DEFAULT, ROW_SPARSE, Csr, Given, Rows

Stypes = tuple[str, ...]


def _axis(params: Params) -> int | None:
    """The axis, where there is a single one that is counted from the front."""
    axis: int | tuple[int, ...] | None = params.axis
    axes: tuple[int, ...] = (axis,) if isinstance(axis, int) else axis or ()
    return axes[0] if len(axes) == 1 and axes[0] >= 0 and not params.get("exclude") else None


def of_matrix(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Sum or mean over the rows or the columns of a csr array."""
    kept = params.keepdims or _axis(params) not in (0, 1)
    return None if kept or stypes != (CSR,) else Form((DEFAULT,), _mean if op.name == "mean" else _sum)


def _sum(c: Call) -> list[Given]:
    (parts,) = c.inputs
    assert isinstance(parts, Csr)
    return [_sums(parts, parts.values, _axis(c.params), c.dtypes[0])]


def _mean(c: Call) -> list[Given]:
    (parts,), axis = c.inputs, _axis(c.params)
    assert isinstance(parts, Csr) and axis is not None
    total = _sums(parts, parts.values, axis, "float64" if np.dtype(c.dtypes[0]).kind == "f" else c.dtypes[0])
    return [total / parts.shape[axis] if total.dtype.kind == "f" else total // max(parts.shape[axis], 1)]


def _sums(parts: Csr, values: np.ndarray, axis: int | None, dtype: str) -> np.ndarray:
    """The sum of values in each column (axis 0), or in each row."""
    numbers, count = (parts.columns, parts.shape[1]) if axis == 0 else (parts.rows(), parts.shape[0])
    if np.dtype(dtype).kind == "f":
        return np.bincount(numbers, values, count).astype(dtype)
    out = np.zeros(count, dtype)  # bincount computes in float64
    np.add.at(out, numbers, values)
    return out


def norm(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """The root of the sum of squares of all that is stored, or of each row or column of a csr array."""
    axis = _axis(params)
    if params.ord != 2 or (params.axis is not None and (stypes != (CSR,) or axis not in (0, 1) or params.keepdims)):
        return None
    return Form((DEFAULT,), _norm)


def _norm(c: Call) -> list[Given]:
    (parts,), axis = c.inputs, _axis(c.params)
    assert not isinstance(parts, np.ndarray)
    squares = np.square(parts.values.astype(np.float64))
    if axis is None:
        return [np.full(c.shapes[0], np.sqrt(squares.sum()))]
    assert isinstance(parts, Csr)
    return [np.sqrt(_sums(parts, squares, axis, "float64"))]


def square_sum(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of a row_sparse matrix, over an axis; with keepdims, over the second, row_sparse too."""
    axis = _axis(params)
    if stypes != (ROW_SPARSE,) or axis not in (0, 1):
        return None
    return Form((ROW_SPARSE if axis == 1 and params.keepdims else DEFAULT,), _square_sum)


def _square_sum(c: Call) -> list[Given]:
    (parts,), shape = c.inputs, c.shapes[0]
    assert isinstance(parts, Rows)
    squares = np.square(parts.values.astype(np.float64 if parts.values.dtype.kind == "f" else parts.values.dtype))
    if _axis(c.params) == 0:
        return [squares.sum(0).reshape(shape)]
    sums = squares.reshape(len(parts.rows), prod(parts.shape[1:])).sum(1).astype(c.dtypes[0])
    if c.params.keepdims:
        return [Rows(sums[:, None], parts.rows, shape)]
    out = np.zeros(shape, c.dtypes[0])
    out[parts.rows] = sums
    return [out]
