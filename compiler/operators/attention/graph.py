"""Decompositions of attention's products: slices of the projections, multiplied head by head."""
from __future__ import annotations

from math import sqrt

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.attention.shape import depth

QUERIES, KEYS, VALUES = range(3)


def _part(builder: GraphBuilder, node: Node, data: Entry, which: int, count: int = 3) -> Entry:
    """(batch * heads, length, depth): one of so many parts, the queries, keys or values."""
    shape = builder.shape(data)
    heads, size = shape[1] * node.params.heads, depth(node.params, shape, count)
    one = as_shape(builder, data, (shape[0], heads, count, size))
    if count > 1:
        one = builder.make("slice_axis", one, axis=2, begin=which, end=which + 1)
    return builder.make("transpose", as_shape(builder, one, (shape[0], heads, size)), axes=(1, 0, 2))


def selfatt_qk(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Queries times keys transposed, over the root of their depth."""
    return _scores(builder, node, *(_part(builder, node, inputs[0], which) for which in (QUERIES, KEYS)))


def encdec_qk(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Queries times keys of something else transposed, over the root of their depth."""
    return _scores(builder, node, _part(builder, node, inputs[0], 0, 1), _part(builder, node, inputs[1], 0, 2))


def _scores(builder: GraphBuilder, node: Node, queries: Entry, keys: Entry) -> list[Entry]:
    scaled = builder.make("_mul_scalar", queries, scalar=1 / sqrt(builder.shape(queries)[2]))
    return [builder.make("batch_dot", scaled, keys, transpose_b=True, name=node.name)]


def selfatt_valatt(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Attention times values, with the heads behind the batch again."""
    return _attended(builder, node, _part(builder, node, inputs[0], VALUES), inputs[1])


def encdec_valatt(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Attention times values of something else, with the heads behind the batch again."""
    return _attended(builder, node, _part(builder, node, inputs[0], 1, 2), inputs[1])


def _attended(builder: GraphBuilder, node: Node, values: Entry, attention: Entry) -> list[Entry]:
    assert builder.old is not None
    made = builder.make("batch_dot", attention, values)
    return [as_shape(builder, builder.make("transpose", made, axes=(1, 0, 2), name=node.name),
                     builder.old.shape(Entry(node)))]
