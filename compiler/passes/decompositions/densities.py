"""Densities as formulas that broadcast."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import as_shape
from mxc.compiler.passes.densities import density_node, lined
from mxc.compiler.passes.registry import Options


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
