"""Sparse forms of products: of a csr array with dense and row_sparse ones."""
from __future__ import annotations

from functools import partial

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.storage.sparse import rows_at
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import LEAST_WORK, Call, Form, block_of, name_of
from mxc.compiler.ops.storage import CSR, DEFAULT, INDEX, ROW_SPARSE, Csr, Given, Rows, dense, stored

Stypes = tuple[str, ...]
FIXED = 256  # widest dense matrix whose width is a part of the code; the gain for wider ones is nothing
SHARED = 8  # columns of a transposed product for each thread: it looks at all elements, and adds up its own
# A mark for each row tells which rows a product has, unless there are so many rows for each element that sorting these
# takes less time.
SPARSE_ROWS = 256


def dot(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Which storage type comes out is as in MXNet: what `forward_stype` says, else dense of csr . x, row_sparse of the
    transposed one, csr of dense . csr."""
    lhs, rhs = stypes
    first, second, wanted = params.transpose_a, params.transpose_b, params.forward_stype
    if lhs == CSR and rhs != CSR and not second:
        out = wanted or (ROW_SPARSE if first else DEFAULT)
        if out != CSR and (first or out == DEFAULT):
            return Form((out,), partial(_transposed, out) if first else _csr_dot)
    if lhs == DEFAULT and rhs == CSR and not first:
        out = wanted or CSR
        if out == DEFAULT or (out == CSR and not second):
            return Form((out,), partial(_dot_csr, out))
    out = wanted or (CSR if (lhs, rhs, first) == (DEFAULT, CSR, False) else DEFAULT)
    return Form((out,))


def _real(array: np.ndarray) -> np.ndarray:
    """The array as routines compute with it: C-contiguous, float16 as float32."""
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float16 else None)


def _matrix(given: Given) -> Given:
    """The right side. Raises MXNetError where it is no matrix."""
    if len(given.shape) != 2:
        raise MXNetError(f"dot of a csr array takes a matrix, got the shape {given.shape}")
    return given


def _csr_dot(c: Call) -> list[Given]:
    lhs, rhs = c.inputs[0], _matrix(c.inputs[1])
    assert isinstance(lhs, Csr)
    if isinstance(rhs, Rows):  # only the rows that the columns name
        columns, places = np.unique(lhs.columns, return_inverse=True)
        lhs = Csr(lhs.values, places.astype(INDEX, copy=False), lhs.starts, (lhs.shape[0], len(columns)))
        rhs = rows_at(c, rhs, columns)
    assert isinstance(rhs, np.ndarray)
    values, matrix = _real(lhs.values), _real(rhs)
    rows, inner = c.shapes[0]
    out = c.empty((rows, inner), values.dtype)
    block = block_of(rows, inner * (1 + len(values) // max(rows, 1)))
    c.run("csr_dot", [values, lhs.columns, lhs.starts, matrix, out], (rows, inner, block), real=name_of(values.dtype),
          fixed=_fixed(inner))
    return [out]


def _fixed(inner: int) -> int:
    return inner if inner <= FIXED else 0


def _transposed(stype: str, c: Call) -> list[Given]:
    lhs, rhs = c.inputs[0], _matrix(c.inputs[1])
    assert isinstance(lhs, Csr)
    values, matrix = _real(lhs.values), _real(dense(rhs))
    results, inner = c.shapes[0]
    targets = lhs.columns
    if stype == ROW_SPARSE:
        rows, targets = _numbered(c, targets, results)
        results = len(rows)
    out = c.empty((results, inner), values.dtype)
    parts = max(1, min(c.threads, inner // SHARED, len(values) * inner // LEAST_WORK))
    c.run("csr_transposed_dot", [values, targets, lhs.starts, matrix, out], (lhs.shape[0], results, inner, parts),
          real=name_of(values.dtype), fixed=_fixed(inner))
    return [Rows(out, rows, c.shapes[0]) if stype == ROW_SPARSE else out]


def _numbered(c: Call, numbers: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of numbers below `limit`, ascending, and for each number its place among these."""
    count = len(numbers)
    if limit > min(SPARSE_ROWS * count, 1 << 31):
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.astype(INDEX, copy=False)
    found, places, total = np.empty(min(count, limit) + 1, INDEX), c.empty((count,), INDEX), np.empty(1, INDEX)
    c.run("rank_numbers", [numbers, c.empty((limit,), "int8"), c.empty((limit,), "int32"), found, places, total],
          (count, limit))
    return found[:total[0]], places


def _dot_csr(stype: str, c: Call) -> list[Given]:
    lhs, rhs = c.inputs
    assert isinstance(lhs, np.ndarray) and isinstance(rhs, Csr)
    if lhs.ndim != 2:
        raise MXNetError(f"dot with a csr array takes a matrix, got the shape {lhs.shape}")
    values, matrix = _real(rhs.values), _real(lhs)
    out, real = c.empty(c.shapes[0], values.dtype), name_of(values.dtype)
    c.run("dot_csr", [matrix, values, rhs.columns, rhs.starts, out], (len(lhs), *rhs.shape),
          transposed=bool(c.params.transpose_b), real=real)
    return [stored(out, stype)]


def of_kept_weight(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Dense, of a row_sparse weight or bias too."""
    return Form((DEFAULT,), is_told=False) if stypes[0] == DEFAULT and CSR not in stypes else None
