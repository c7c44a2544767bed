"""Decompositions and gradients of operators about storage. In graphs of dense arrays a cast is the data itself."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_dtype, as_shape
from mxc.compiler.graph.gradient_rule import Gradient, ignores
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def add_rows(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The sums as a dense array."""
    data, indices = inputs
    shape, count = builder.shape(data), prod(builder.shape(indices))
    inner = shape[len(builder.shape(indices)):]
    rows = builder.make("_mxc_bound_index", as_shape(builder, indices, (count,)), size=node.params.rows)
    made = builder.make("_mxc_scatter_add", as_shape(builder, data, (1, count, prod(inner))), rows, name=node.name,
                        rows=node.params.rows)
    return [as_shape(builder, made, (node.params.rows, *inner))]


@ignores("indices")
def add_rows_grad(g: Gradient) -> list[Entry | None]:
    """og at the rows."""
    data, indices = g.inputs
    return [as_shape(g.builder, g.make("take", g.og, indices), g.shape(data)), None]


def retain(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The data times 1 in the rows that are retained, 0 in others."""
    data, indices = inputs
    shape = builder.shape(data)
    named = builder.make("one_hot", indices, depth=shape[0], dtype="float32")
    kept = builder.make("_greater_scalar", builder.make("sum", named, axis=(0,)), scalar=0.0)
    column = as_shape(builder, as_dtype(builder, kept, "int8"), (shape[0], *(1,) * (len(shape) - 1)))
    wide = builder.make("broadcast_to", column, shape=shape)
    zeros = builder.make("zeros_like", data)
    return [builder.make("where", wide, data, zeros, name=node.name)]


@ignores("indices")
def retain_grad(g: Gradient) -> list[Entry | None]:
    """og in the rows that are retained."""
    return [g.make("_sparse_retain", g.make("cast_storage", g.og, stype="row_sparse"), g.inputs[1]), None]


def count_stored(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The elements that are not 0, counted."""
    marks = builder.make("Cast", builder.make("_not_equal_scalar", inputs[0], scalar=0.0), dtype="int64")
    axis = () if node.params.axis is None else (node.params.axis,)
    return [builder.make("sum", marks, name=node.name, axis=axis)]


def edges(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The elements that are there, -1 for zeros and outside of the matrix."""
    data, *given = inputs
    places = [as_dtype(builder, place, "int64") for place in given]
    within = [builder.make("clip", place, a_min=0.0, a_max=extent - 1.0)
              for place, extent in zip(places, builder.shape(data), strict=True)]
    found = builder.make("gather_nd", data, builder.make("stack", *within, num_args=2, axis=0))
    is_there = builder.make("_not_equal_scalar", found, scalar=0.0)
    for pair in zip(places, within, strict=True):
        is_there = builder.make("elemwise_mul", is_there, as_dtype(
            builder, builder.make("_equal", *pair), builder.dtype(is_there)))
    nothing = builder.make("_full", shape=builder.shape(found), value=-1.0, dtype=builder.dtype(found))
    return [builder.make("where", is_there, found, nothing, name=node.name)]
