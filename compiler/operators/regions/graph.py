"""Decompositions and gradients of pooling over regions of images.

Pooling over regions is one routine, forward and backward.
"""
from __future__ import annotations

from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def roi_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The routine, forward. It reads no gradient then, and gets the regions in the gradient's place."""
    assert builder.old is not None and node.op is not None
    op = "_mxc_roi_pooling" if node.op.name == "ROIPooling" else "_mxc_roi_align"
    return [builder.make(op, *inputs, inputs[1], name=node.name, shape=builder.old.shape(Entry(node)), **node.params)]


def roi_pooling_grad(g: Gradient) -> list[Entry | None]:
    """The elements that were read get og by their weights; nothing flows into the regions."""
    return [g.make("_mxc_roi_pooling", *g.inputs, g.og, shape=g.shape(g.inputs[0]), backward=True, **g.params), None]


def roi_align_grad(g: Gradient) -> list[Entry | None]:
    """The forward operator's data get og by their weights, as in ROIPooling. The gradient operator is linear in
    out_grad, which gets the means of og."""
    data, rois, out_grad = g.inputs
    params = {**g.params, "backward": not g.params.backward}
    if not g.params.backward:
        return [g.make("_mxc_roi_align", data, rois, g.og, **{**params, "shape": g.shape(data)}), None, None]
    return [None, None, g.make("_mxc_roi_align", g.og, rois, out_grad, **{**params, "shape": g.shape(out_grad)})]
