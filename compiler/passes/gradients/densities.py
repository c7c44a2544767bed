"""Gradients of densities: those of their formulas, summed over what shares a parameter."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_shape
from mxc.compiler.passes.densities import density_node, lined
from mxc.compiler.passes.gradients.context import Gradient


def density(g: Gradient) -> list[Entry | None]:
    """By the formulas of the operator that has the density's. Where nothing flows into the sample, of discrete
    distributions, nothing does from the other gradients either."""
    node = density_node(g.builder, g.node, g.inputs, f"{g.node.name}_density")
    assert node.op is not None
    if g.again and node.op.formula("sample") == "0":
        node.inputs[0] = g.make("BlockGrad", node.inputs[0])
    g.builder.add(node)
    inner = Gradient(g.builder, node, g.out_grads, g.asked, g.is_train)
    return [None if back is None else as_shape(g.builder, back, g.shape(entry))
            for entry, back in zip(g.inputs, inner.by_formula(), strict=True)]


def dirichlet(g: Gradient) -> list[Entry | None]:
    """Of the logarithm: (alpha - 1) / sample, and log(sample) + digamma(sum(alpha)) - digamma(alpha)."""
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
