"""Sums and values at indices."""
from __future__ import annotations

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call

COLUMNS = 4096  # of a unit, at most
PARTS = 16  # of the rows, at most: each looks at all indices
LOOK = 16  # columns that cost about what looking at an index does


def _cut(rows: int, inner: int) -> tuple[int, int]:
    """Rows and columns of a unit: what lies together is written in one go, by as many units as long rows pay for."""
    parts = max(1, min(PARTS, rows, inner // LOOK))
    return max(1, -(-rows // parts)), max(1, min(COLUMNS, inner))


def scatter_add(c: Context, params: Params) -> Call:
    """data (outer, count, inner), indices (count,) -> (outer, rows, inner)."""
    outer, count, inner = c.shape(0)
    return call("scatter_add", (outer, count, params.rows, inner, *_cut(params.rows, inner)), real=c.dtype(0))


def scatter_set(c: Context, params: Params) -> Call:
    """base (rows, inner), data (count, inner), indices (count,) -> (rows, inner)."""
    (rows, inner), (count, _) = c.shape(0), c.shape(1)
    return call("scatter_set", (count, rows, inner, *_cut(rows, inner)))
