"""Gradients of pooling over regions."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.gradients.context import Gradient


def roi_pooling(g: Gradient) -> list[Entry | None]:
    """To the elements that were read, by their weights; nothing flows into the regions."""
    op = "_mxc_roi_pooling" if g.node.op is not None and g.node.op.name == "ROIPooling" else "_mxc_roi_align"
    return [g.make(op, *g.inputs, g.og, shape=g.shape(g.inputs[0]), backward=True, **g.params), None]


def roi_align(g: Gradient) -> list[Entry | None]:
    """Forward, to the data as above. Of the gradient, which is linear in out_grad: the means of og, to out_grad."""
    data, rois, out_grad = g.inputs
    params = {**g.params, "backward": not g.params.backward}
    if not g.params.backward:
        return [g.make("_mxc_roi_align", data, rois, g.og, **{**params, "shape": g.shape(data)}), None, None]
    return [None, None, g.make("_mxc_roi_align", g.og, rois, out_grad, **{**params, "shape": g.shape(out_grad)})]
