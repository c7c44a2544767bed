"""Operators on boxes as a routine, which finds what is kept, and a gather, which fuses with its neighbours."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import as_shape
from mxc.compiler.passes.registry import Options


def box_nms(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The order of the boxes that are kept, then their rows."""
    data, params = inputs[0], node.params
    shape = builder.shape(data)
    rows = prod(shape[:-1])
    if params.topk == 0:
        order = builder.make("_arange", start=0.0, stop=float(rows), dtype="int32")
        return [data, as_shape(builder, order, (*shape[:-1], 1))]
    given = {k: v for k, v in params.items() if k != "out_format"}
    order = builder.make("_mxc_box_order", as_shape(builder, data, (rows // shape[-2], *shape[-2:])), **given)
    order = as_shape(builder, order, (rows,))
    out = builder.make("_mxc_kept_boxes", as_shape(builder, data, (rows, shape[-1])), order, name=node.name,
                       coord_start=params.coord_start, in_format=params.in_format, out_format=params.out_format)
    return [as_shape(builder, out, shape), as_shape(builder, order, (*shape[:-1], 1))]
