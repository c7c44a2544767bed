"""Orders, scans and counts."""
from __future__ import annotations

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call

SPARE = 32  # candidates beyond twice the k that are asked for


def argsort(c: Context, params: Params) -> Call:
    """data (rows, n) -> (rows, k). Few of many are kept apart while the rest is passed over."""
    rows, n = c.shape(0)
    dtype = c.dtype(0)
    room = min(n, 2 * params.k + SPARE)
    top = 0 if "float" in dtype else 255 if dtype == "uint8" else -1
    return call("argsort", (rows, n, params.k, room), ascending=params.is_ascend, top=top, real=dtype)


def put_along(c: Context, params: Params) -> Call:
    """data, order (rows, k) -> (rows, n)."""
    return call("put_along", (*c.shape(0), params.n), real=c.dtype(0))


def cumsum(c: Context, params: Params) -> Call:
    """data (outer, n, inner) -> the same."""
    return call("cumsum", c.shape(0), reverse=params.reverse, real=c.dtype(0))


def histogram(c: Context, params: Params) -> Call:
    """data (n), edges (bins + 1) -> (bins)."""
    return call("histogram", (c.shape(0)[0], c.shape(1)[0] - 1))
