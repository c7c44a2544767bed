"""Gradients of random operators."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_dtype, as_shape
from mxc.compiler.passes.gradients.context import Gradient


def multinomial(g: Gradient) -> list[Entry | None]:
    """What flows into the logarithm of a class's probability, over that probability, at the class."""
    if not g.params.get_prob or g.out_grads[1] is None:
        return [None]
    (data,), chosen = g.inputs, g.outputs[0]
    shape, count = g.shape(data), prod(g.shape(chosen))
    rows = prod(shape) // shape[-1]
    row = g.make("_arange", start=0.0, stop=float(rows), repeat=count // rows, dtype="int64")
    place = as_dtype(g.builder, as_shape(g.builder, chosen, (count,)), "int64")
    place = g.make("elemwise_add", g.make("_mul_scalar", row, scalar=float(shape[-1]), is_int=True), place)
    there = g.make("take", as_shape(g.builder, data, (prod(shape),)), place)
    part = g.make("elemwise_div", as_shape(g.builder, g.grad(1), (count,)), there)
    back = g.make("_mxc_scatter_add", as_shape(g.builder, part, (1, count, 1)), place, rows=prod(shape))
    return [as_shape(g.builder, back, shape)]
