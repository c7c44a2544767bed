"""Index rules of operators that read in an order."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index
from mxc.compiler.kernel.ir import Value
from mxc.compiler.ops.table import Params


def take_along(c: Context, params: Params, index: Index) -> Value:
    """The element of data (rows, n) in the same row, at the place that order (rows, k) tells."""
    return c.load(0, (index[0], ir.cast(c.load(1, index), ir.INDEX)))
