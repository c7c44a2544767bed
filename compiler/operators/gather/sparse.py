"""Sparse forms of operators that read at indices: rows of a csr array, and of a row_sparse weight."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.storage.sparse import rows_at
from mxc.compiler.ops.expr import as_dtype
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Call, Form
from mxc.compiler.ops.storage import CSR, DEFAULT, INDEX, ROW_SPARSE, Csr, Given, Rows, csr_rows

Stypes = tuple[str, ...]


def take(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Rows of a csr array."""
    return Form((CSR,), _taken) if stypes == (CSR, DEFAULT) and params.axis == 0 and params.mode != "raise" else None


def _taken(c: Call) -> list[Given]:
    data, indices = c.inputs
    assert isinstance(data, Csr) and isinstance(indices, np.ndarray)
    numbers, count = as_dtype(indices, INDEX), data.shape[0]
    return [csr_rows(data, numbers % count if c.params.mode == "wrap" else np.clip(numbers, 0, count - 1))]


def embedding(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Rows of a row_sparse weight."""
    return Form((DEFAULT,), _embedded) if stypes == (DEFAULT, ROW_SPARSE) else None


def _embedded(c: Call) -> list[Given]:
    data, weight = c.inputs
    assert isinstance(data, np.ndarray) and isinstance(weight, Rows)
    numbers = np.clip(as_dtype(data, INDEX).ravel(), 0, weight.shape[0] - 1)
    return [rows_at(c, weight, numbers).reshape(c.shapes[0])]
