"""Gradients of reductions that a formula cannot say."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops.shapes.basic import reduced_shape
from mxc.compiler.passes.building import as_shape, widened
from mxc.compiler.passes.gradients.context import Gradient


def norm(g: Gradient) -> list[Entry | None]:
    """ord 1: og * sign(x). ord 2: og * x / out."""
    data = widened(g.builder, g.inputs[0])
    kept = reduced_shape(g.params, g.shape(data), keepdims=True)
    og = as_shape(g.builder, widened(g.builder, g.og), kept)
    if g.params.ord == 1:
        return [g.make("broadcast_mul", g.make("sign", data), og)]
    out = as_shape(g.builder, widened(g.builder, g.outputs[0]), kept)
    return [g.make("broadcast_mul", data, g.make("elemwise_div", og, out))]
