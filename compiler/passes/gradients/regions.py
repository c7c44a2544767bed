"""Gradients of pooling over regions."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.gradients.context import Gradient


def roi_pooling(g: Gradient) -> list[Entry | None]:
    """To the elements that were read, by their weights; nothing flows into the regions."""
    op = "_mxc_roi_pooling" if g.node.op is not None and g.node.op.name == "ROIPooling" else "_mxc_roi_align"
    return [g.make(op, *g.inputs, g.og, shape=g.shape(g.inputs[0]), backward=True, **g.params), None]
