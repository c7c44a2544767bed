"""What operators ask of the values of their parameters beyond types and bounds: the text of what is wrong, or "".

MXNet finds these when it computes. So a call of the operator by itself fails where its result is waited for
(`runtime/eager.py`), and a graph with it is refused when it is bound (`compiler/passes/infer.py`).
"""
from __future__ import annotations

from mxc.compiler.ops.table import Params


def above_zero(params: Params) -> str:
    """Parameters of a distribution, but `loc`."""
    for name in ("scale", "lam", "alpha", "beta"):
        if name in params and not getattr(params, name) > 0:
            return f"expected {name} above 0, got {params[name]}"
    return ""


def not_negative(params: Params) -> str:
    """Parameters of distributions of whole numbers; k may be 0, and p is a probability."""
    for name in ("lam", "k", "mu", "alpha"):
        if name in params and not getattr(params, name) >= 0:
            return f"expected {name} of at least 0, got {params[name]}"
    return f"expected p from 0 to 1, got {params.p}" if "p" in params and not 0 <= params.p <= 1 else ""


def ordered(params: Params) -> str:
    return "" if params.low <= params.high else f"expected low <= high, got low {params.low} and high {params.high}"


def integers(params: Params) -> str:
    """From low to high - 1, which the dtype must have."""
    if not params.low < params.high:
        return f"expected low < high, got low {params.low} and high {params.high}"
    if params.dtype != "int64" and not -2**31 <= params.low < params.high <= 2**31:
        return f"low {params.low} and high {params.high} are beyond int32; pass dtype='int64'"
    return ""
