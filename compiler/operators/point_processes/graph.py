"""The gradient of likelihoods of events in time."""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops import table


def hawkesll_grad(g: Gradient) -> list[Entry | None]:
    """The slopes of each sample, times what flows into its likelihood. As in MXNet nothing flows back from the new
    state, nor into anything but lda, alpha and beta."""
    op = table.get("_mxc_hawkesll_slopes")
    node = Node(op, f"{g.node.name}_{g.label}_slopes", None, op.make_params({}), list(g.inputs))
    flowing = as_shape(g.builder, g.og, (g.shape(g.inputs[0])[0], 1))
    to_lda, *rates = (g.make("broadcast_mul", slope, flowing) for slope in g.builder.add(node))
    return [to_lda, *(g.make("sum", rate, axis=(0,)) for rate in rates), *[None] * 5]
