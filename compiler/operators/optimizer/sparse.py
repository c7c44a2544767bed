"""Sparse forms of updates: by a row_sparse gradient they change the rows that it has, and no others."""
from __future__ import annotations

from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Form
from mxc.compiler.ops.storage import CSR, ROW_SPARSE


def lazily(op: Operator, params: Params, stypes: tuple[str, ...]) -> Form | None:
    """The weight, kept as it is. With lazy_update=False there is no such form: all rows change."""
    lazy = stypes[1] == ROW_SPARSE and CSR not in stypes and params.get("lazy_update", True)
    return Form(stypes[:1]) if lazy else None


def lazily_of_kept(op: Operator, params: Params, stypes: tuple[str, ...]) -> Form | None:
    """As `lazily`, of a row_sparse weight; of a dense one, as in MXNet, all rows change."""
    return lazily(op, params, stypes) if stypes[0] == ROW_SPARSE else None
