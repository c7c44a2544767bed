"""Sparse forms of operators that cut and join: boxes of csr arrays, and csr arrays one below the other."""
from __future__ import annotations

from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Call, Form
from mxc.compiler.ops.storage import CSR, Csr, Given, csr_joined, csr_of, csr_rows

Stypes = tuple[str, ...]


def box(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Rows and columns that follow each other."""
    return Form((CSR,), _cut) if stypes == (CSR,) and not any(params.step) else None


def _cut(c: Call) -> list[Given]:
    (data,), begin, (rows, columns) = c.inputs, c.params.begin, c.shapes[0]
    assert isinstance(data, Csr)
    top, left = (slice(first, None).indices(extent)[0]
                 for first, extent in zip([*begin, None][:2], data.shape, strict=True))
    inside = csr_rows(data, slice(top, top + rows))
    if columns == data.shape[1]:
        return [inside]
    found = inside.columns - left
    kept = (found >= 0) & (found < columns)
    return [csr_of(inside.values[kept], inside.rows()[kept], found[kept], (rows, columns))]


def concat(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Along the first axis."""
    return Form((CSR,), _joined) if {*stypes} == {CSR} and params.dim == 0 else None


def _joined(c: Call) -> list[Given]:
    return [csr_joined([parts for parts in c.inputs if isinstance(parts, Csr)])]
