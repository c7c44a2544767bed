"""Decompositions and gradients of pooling over regions of images.

Pooling over regions is one routine, forward and backward.
"""
from __future__ import annotations

from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options

LAST, SECOND = (0, 2, 3, 1), (0, 3, 1, 2)  # the axes of an array, with its channels moved there


def roi_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The routine, forward: the largest numbers of the same part are then vectors."""
    return _of_pixels(builder, node, inputs, "_mxc_roi_pooling")


def roi_align(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The routine, forward: the elements around a sample are then vectors."""
    return _of_pixels(builder, node, inputs, "_mxc_roi_align")


def _of_pixels(builder: GraphBuilder, node: Node, inputs: list[Entry], op: str) -> list[Entry]:
    """A routine of arrays with the channels last. Forward it reads no gradient, and gets the regions in its place."""
    assert builder.old is not None
    data, rois = inputs
    count, channels, rows, columns = builder.old.shape(Entry(node))
    pixels = builder.make("transpose", data, axes=LAST)
    shape = count, rows, columns, channels
    made = builder.make(op, pixels, rois, rois, name=f"{node.name}_pixels", shape=shape, **node.params)
    return [builder.make("transpose", made, name=node.name, axes=SECOND)]


def roi_pooling_grad(g: Gradient) -> list[Entry | None]:
    """The elements that were read get og by their weights; nothing flows into the regions."""
    data, rois = g.inputs
    images, channels, height, width = g.shape(data)
    pixels, og = (g.make("transpose", array, axes=LAST) for array in (data, g.og))
    made = g.make("_mxc_roi_pooling", pixels, rois, og, shape=(images, height, width, channels), backward=True,
                  **g.params)
    return [g.make("transpose", made, axes=SECOND), None]


def roi_align_grad(g: Gradient) -> list[Entry | None]:
    """The forward operator's data get og by their weights, as in ROIPooling. The gradient operator is linear in
    out_grad, which gets the means of og."""
    data, rois, out_grad = g.inputs
    params = {**g.params, "backward": not g.params.backward}
    if not g.params.backward:
        return [g.make("_mxc_roi_align", data, rois, g.og, **{**params, "shape": g.shape(data)}), None, None]
    return [None, None, g.make("_mxc_roi_align", g.og, rois, out_grad, **{**params, "shape": g.shape(out_grad)})]
