"""Decompositions and gradients of pooling over regions of images.

Pooling over regions is one routine, forward and backward.
"""
from __future__ import annotations

from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def roi_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Without a gradient to read, the regions stand in its place."""
    assert builder.old is not None and node.op is not None
    op = "_mxc_roi_pooling" if node.op.name == "ROIPooling" else "_mxc_roi_align"
    return [builder.make(op, *inputs, inputs[1], name=node.name, shape=builder.old.shape(Entry(node)), **node.params)]


def roi_pooling_grad(g: Gradient) -> list[Entry | None]:
    """To the elements that were read, by their weights; nothing flows into the regions."""
    return [g.make("_mxc_roi_pooling", *g.inputs, g.og, shape=g.shape(g.inputs[0]), backward=True, **g.params), None]


def roi_align_grad(g: Gradient) -> list[Entry | None]:
    """Forward, to the data as of ROIPooling. Of the gradient, which is linear in out_grad, the means of og to that."""
    data, rois, out_grad = g.inputs
    params = {**g.params, "backward": not g.params.backward}
    if not g.params.backward:
        return [g.make("_mxc_roi_align", data, rois, g.og, **{**params, "shape": g.shape(data)}), None, None]
    return [None, None, g.make("_mxc_roi_align", g.og, rois, out_grad, **{**params, "shape": g.shape(out_grad)})]
