"""Gradients of operators on boxes."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_shape
from mxc.compiler.passes.gradients.context import Gradient


def box_nms(g: Gradient) -> list[Entry | None]:
    """og's rows back to where they came from, which the hidden output tells; as they are, where coordinates were
    converted too."""
    shape = g.shape(g.inputs[0])
    rows = prod(shape[:-1])
    order = as_shape(g.builder, g.outputs[1], (rows,))
    back = g.make("_mxc_scatter_add", as_shape(g.builder, g.og, (1, rows, shape[-1])), order, rows=rows)
    return [as_shape(g.builder, back, shape)]
