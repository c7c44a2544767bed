"""Decompositions and gradients of Dropout.

Dropout is a product with a random mask.
"""
from __future__ import annotations

from mxc.compiler.graph.building import as_dtype, filled, random_numbers
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def dropout(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x * mask, with mask = 1 / keep where a random number is below keep = 1 - p and 0 elsewhere; and the mask.

    Along `axes` one number serves all elements. Where p is 0, and in inference unless the mode is "always", out is x
    and the mask is 1. Where p is 1, all is 0.
    """
    assert builder.old is not None
    data, params = inputs[0], node.params
    mask_own = Entry(node, 1)
    mask_shape, mask_dtype = builder.old.shape(mask_own), builder.old.dtype(mask_own)
    if params.p == 0 or (params.mode == "training" and not options.is_train):
        return [data, filled(builder, mask_shape, 1.0, mask_dtype)]
    keep = 1.0 - params.p
    random = random_numbers(builder, mask_shape)
    kept = builder.make("Cast", builder.make("_lesser_scalar", random, scalar=keep), dtype=builder.dtype(data))
    mask = builder.make("_mul_scalar", kept, scalar=1.0 / keep if keep else 0.0)
    out = builder.make("broadcast_mul", data, mask)
    return [out, as_dtype(builder, mask, mask_dtype)]


def dropout_grad(g: Gradient) -> list[Entry | None]:
    """og times the mask, output 1, which holds 0 or 1 / (1 - p); og itself where nothing is dropped."""
    if not (g.is_train or g.params.mode == "always") or g.params.p == 0.0:
        return [g.og]
    return [g.make("broadcast_mul", g.og, g.outputs[1])]
