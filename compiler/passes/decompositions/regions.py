"""Pooling over regions as a routine that both passes share."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.registry import Options


def roi_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Without a gradient to read, the regions stand in its place."""
    assert builder.old is not None and node.op is not None
    op = "_mxc_roi_pooling" if node.op.name == "ROIPooling" else "_mxc_roi_align"
    return [builder.make(op, *inputs, inputs[1], name=node.name, shape=builder.old.shape(Entry(node)), **node.params)]
