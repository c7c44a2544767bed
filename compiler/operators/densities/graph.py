"""Decompositions and gradients of densities.

Densities are formulas that broadcast. Their gradients are those of the formulas; a parameter's is summed over the
samples that share it.
"""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import table


def lined(builder: GraphBuilder, parameter: Entry, rank: int, kept: int = 0) -> Entry:
    """A parameter (*s, *last) as (*s, 1, ..., 1, *last) of `rank` axes; `kept`: how many axes `last` has."""
    shape = builder.shape(parameter)
    place = len(shape) - kept
    return as_shape(builder, parameter, (*shape[:place], *(1,) * (rank - len(shape)), *shape[place:]))


def density_node(builder: GraphBuilder, node: Node, inputs: Sequence[Entry], name: str) -> Node:
    """A node of the operator that has the formula of `node`'s density: `_mxc_pdf_NAME` for `_random_pdf_NAME`."""
    assert node.op is not None
    sample, *parameters = inputs
    rank = len(builder.shape(sample))
    op = table.get(node.op.name.replace("_random_", "_mxc_"))
    return Node(op, name, None, node.params, [sample, *(lined(builder, p, rank) for p in parameters)])


def density(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The operator with the formula."""
    return builder.add(density_node(builder, node, inputs, node.name))


def dirichlet(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """log: sum((alpha - 1) log(sample)) + lgamma(sum(alpha)) - sum(lgamma(alpha)), sums over the last axis."""
    assert builder.old is not None
    sample, alpha = inputs[0], lined(builder, inputs[1], len(builder.shape(inputs[0])), kept=1)
    powers = builder.make("broadcast_mul", builder.make("_minus_scalar", alpha, scalar=1.0),
                          builder.make("log", sample))
    total = builder.make("gammaln", builder.make("sum", alpha, axis=(-1,), keepdims=True))
    parts = builder.make("sum", builder.make("gammaln", alpha), axis=(-1,), keepdims=True)
    scale = builder.make("elemwise_sub", total, parts)
    logs = builder.make("broadcast_add", builder.make("sum", powers, axis=(-1,), keepdims=True), scale)
    out = logs if node.params.is_log else builder.make("exp", logs)
    return [as_shape(builder, out, builder.old.shape(Entry(node)))]


def density_grad(g: Gradient) -> list[Entry | None]:
    """The gradients of the operator that has the density's formula. Nothing flows into the sample of a discrete
    distribution, and when the parameters' gradients are differentiated, they pass nothing to the sample either."""
    node = density_node(g.builder, g.node, g.inputs, f"{g.node.name}_density")
    assert node.op is not None
    if g.again and node.op.formula("sample") == "0":
        node.inputs[0] = g.make("BlockGrad", node.inputs[0])
    g.builder.add(node)
    inner = Gradient(g.builder, node, g.out_grads, g.asked, g.is_train)
    return [None if back is None else as_shape(g.builder, back, g.shape(entry))
            for entry, back in zip(g.inputs, inner.by_formula(), strict=True)]


def dirichlet_grad(g: Gradient) -> list[Entry | None]:
    """The logarithm's gradients are (alpha - 1) / sample, and log(sample) + digamma(sum(alpha)) - digamma(alpha)."""
    sample, alpha = g.inputs
    shape, rank = g.shape(sample), len(g.shape(sample))
    og = g.og if g.params.is_log else g.make("elemwise_mul", g.og, g.outputs[0])
    og = as_shape(g.builder, og, (*shape[:-1], 1))
    wide = lined(g.builder, alpha, rank, kept=1)
    backs: list[Entry | None] = [None, None]
    if g.asked[0]:
        slope = g.make("broadcast_div", g.make("_minus_scalar", wide, scalar=1.0), sample)
        backs[0] = g.make("broadcast_mul", slope, og)
    if g.asked[1]:
        total = g.make("_mxc_digamma", g.make("sum", wide, axis=(-1,), keepdims=True))
        offset = g.make("broadcast_sub", total, g.make("_mxc_digamma", wide))
        slope = g.make("broadcast_add", g.make("log", sample), offset)
        back = g.sum_to(g.make("broadcast_mul", slope, og), g.shape(wide))
        backs[1] = as_shape(g.builder, back, g.shape(alpha))
    return backs
