"""Decompositions and gradients of pooling over regions where parts have channels of their own."""
from __future__ import annotations

from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import table


def ps_roi_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The routine, forward. It reads no gradient then, and gets the regions in the gradient's place."""
    assert builder.old is not None
    shape = builder.old.shape(Entry(node))
    return [builder.make("_mxc_ps_roi_pooling", *inputs, inputs[1], name=node.name, shape=shape, **node.params)]


def ps_roi_pooling_grad(g: Gradient) -> list[Entry | None]:
    """The elements that were read share og. The operator backward is linear in out_grad, which gets means of og."""
    data, rois, out_grad = g.inputs
    to = out_grad if g.params.backward else data
    params = {**g.params, "backward": not g.params.backward, "shape": g.shape(to)}
    if g.params.backward:
        return [None, None, g.make("_mxc_ps_roi_pooling", g.og, rois, out_grad, **params)]
    return [g.make("_mxc_ps_roi_pooling", data, rois, g.og, **params), None, None]


def deformable_ps_roi_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options,
                              ) -> list[Entry]:
    """The routine, which reads no trans where nothing moves."""
    trans = inputs[1] if node.params.no_trans else inputs[2]
    out = builder.make("_mxc_deformable_ps_roi_pooling", *inputs[:2], trans, name=node.name, **node.params)
    return [out, Entry(out.node, 1)]


def deformable_ps_roi_pooling_grad(g: Gradient) -> list[Entry | None]:
    """Both gradients are made at once."""
    op = table.get("_mxc_deformable_ps_roi_pooling_grad")
    node = Node(op, f"{g.node.name}_{g.label}_regions", None, op.make_params(g.params), [*g.inputs, g.og])
    to_data, to_trans = g.builder.add(node)
    return [to_data, None, None if g.params.no_trans else to_trans]
