"""Sums and values at indices."""
from __future__ import annotations

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call


def scatter_add(c: Context, params: Params) -> Call:
    """data (outer, count, inner), indices (count,) -> (outer, rows, inner)."""
    outer, count, inner = c.shape(0)
    return call("scatter_add", (outer, count, params.rows, inner), real=c.dtype(0))


def scatter_set(c: Context, params: Params) -> Call:
    """base (rows, inner), data (count, inner), indices (count,) -> (rows, inner)."""
    (rows, inner), (count, _) = c.shape(0), c.shape(1)
    return call("scatter_set", (count, rows, inner))
