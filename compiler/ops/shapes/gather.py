"""Shapes of sums at indices."""
from __future__ import annotations

from mxc.compiler.ops.shapes.basic import Shapes
from mxc.compiler.ops.table import Params


def scatter_add(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (outer, count, inner), indices (count,) -> (outer, rows, inner)."""
    data = ins[0]
    if data is None:
        return ins, outs
    outer, count, inner = data
    return [data, (count,)], [(outer, params.rows, inner)]
