"""Sparse forms of operators that cut and join: boxes of csr arrays, and csr arrays one below the other."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Call, Form
from mxc.compiler.ops.storage import CSR, Csr, Given, csr_of

Stypes = tuple[str, ...]


def box(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Rows and columns that follow each other."""
    return Form((CSR,), _cut) if stypes == (CSR,) and not any(params.step) else None


def _cut(c: Call) -> list[Given]:
    (data,), begin, (rows, columns) = c.inputs, c.params.begin, c.shapes[0]
    assert isinstance(data, Csr)
    top, left = (slice(first, None).indices(extent)[0]
                 for first, extent in zip([*begin, None][:2], data.shape, strict=True))
    starts = data.starts[top:top + rows + 1]
    inside = slice(starts[0], starts[-1])
    values, found = data.values[inside], data.columns[inside] - left
    if columns == data.shape[1]:
        return [Csr(values.copy(), found, starts - starts[0], (rows, columns))]
    kept = (found >= 0) & (found < columns)
    numbers = np.repeat(np.arange(rows), np.diff(starts))
    return [csr_of(values[kept], numbers[kept], found[kept], (rows, columns))]


def concat(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Along the first axis."""
    return Form((CSR,), _joined) if {*stypes} == {CSR} and params.dim == 0 else None


def _joined(c: Call) -> list[Given]:
    given = [parts for parts in c.inputs if isinstance(parts, Csr)]
    lengths = np.concatenate([[0], *(np.diff(parts.starts) for parts in given)])
    return [Csr(np.concatenate([parts.values for parts in given]), np.concatenate([parts.columns for parts in given]),
                np.cumsum(lengths), (c.shapes[0][0], c.shapes[0][1]))]
