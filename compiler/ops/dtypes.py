"""What dtype rules share: `def NAME(params, ins, outs) -> (ins, outs)` on NumPy's names; None: not known (yet)."""
from __future__ import annotations

from mxc.compiler.error import MXNetError

Dtypes = list[str | None]
_UNKNOWN = {None}


def merge_dtypes(dtypes: Dtypes) -> str | None:
    """The one dtype of all that are known. Raises MXNetError when they differ."""
    known = {*dtypes} - _UNKNOWN
    if len(known) > 1:
        raise MXNetError(f"expected the same dtype, got {' and '.join(d for d in dict.fromkeys(dtypes) if d)}")
    return known.pop() if known else None


def require_kind(dtype: str | None, kind: str, what: str) -> None:
    if dtype is not None and kind not in dtype:
        raise MXNetError(f"expected {what} of a{'n' if kind == 'int' else ''} {kind} dtype, got {dtype}")
