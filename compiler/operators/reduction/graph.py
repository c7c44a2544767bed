"""Decompositions and gradients of reductions."""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops.shapes import reduced_shape


def argmax_channel(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """argmax over axis 1."""
    return [builder.make("argmax", inputs[0], axis=1, name=node.name)]


def norm_grad(g: Gradient) -> list[Entry | None]:
    """ord 1: og * sign(x). ord 2: og * x / out."""
    data = widened(g.builder, g.inputs[0])
    kept = reduced_shape(g.params, g.shape(data), keepdims=True)
    og = as_shape(g.builder, widened(g.builder, g.og), kept)
    if g.params.ord == 1:
        return [g.make("broadcast_mul", g.make("sign", data), og)]
    out = as_shape(g.builder, widened(g.builder, g.outputs[0]), kept)
    return [g.make("broadcast_mul", data, g.make("elemwise_div", og, out))]
