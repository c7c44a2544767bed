"""Sparse forms of losses."""
from __future__ import annotations

from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Form
from mxc.compiler.ops.storage import CSR, DEFAULT


def label_in_parts(op: Operator, params: Params, stypes: tuple[str, ...]) -> Form | None:
    """Dense, of a csr label too."""
    return Form((DEFAULT,), is_told=False) if stypes == (DEFAULT, CSR) else None
