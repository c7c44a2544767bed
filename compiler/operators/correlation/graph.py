"""Decomposition and gradient of correlation: borders, and a routine forward and one backward."""
from __future__ import annotations

from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import table


def correlation(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The correlation of both data with zeros around them."""
    params = dict(node.params)
    pad = params.pop("pad_size")
    if pad:
        width = (0, 0, 0, 0, pad, pad, pad, pad)
        inputs = [builder.make("Pad", entry, mode="constant", pad_width=width) for entry in inputs]
    return [builder.make("_mxc_correlation", *inputs, name=node.name, **params)]


def correlation_grad(g: Gradient) -> list[Entry | None]:
    """Both gradients are made at once."""
    op = table.get("_mxc_correlation_grad")
    node = Node(op, f"{g.node.name}_{g.label}_images", None, op.make_params(g.params), [*g.inputs, g.og])
    return list(g.builder.add(node))
