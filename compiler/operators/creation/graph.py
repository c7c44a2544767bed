"""Decompositions of operators that make arrays from numbers and shapes."""
from __future__ import annotations

from mxc.compiler.graph.batch_rows import MixedRows, Rows, RowSite
from mxc.compiler.graph.building import along, filled, finished
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options


def shape_array(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The extents as a constant: they are known when the graph is compiled."""
    parts = [filled(builder, (1,), n, "int64") for n in builder.shape(inputs[0])]
    return parts if len(parts) == 1 else [builder.make("Concat", *parts, name=node.name, num_args=len(parts), dim=0)]


def size_array(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The number of elements as a constant: it is known when the graph is compiled."""
    count = 1
    for n in builder.shape(inputs[0]):
        count *= n
    return [filled(builder, (1,), count, "int64")]


def eye(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """1 where row + k is the column."""
    assert builder.old is not None
    shape = builder.old.shape(Entry(node))
    row, column = (along(builder, builder.make("_arange", start=0.0, stop=float(n), dtype="int64"), axis, 2)
                   for axis, n in enumerate(shape))
    moved = builder.make("_plus_scalar", row, scalar=float(node.params.k))
    return finished(builder, node, [builder.make("broadcast_equal", moved, column)])


def linspace(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """start + i * step in float64, then cast."""
    params = node.params
    steps = params.num - 1 if params.endpoint else params.num
    places = builder.make("_arange", start=0.0, stop=float(params.num), dtype="float64")
    step = (params.stop - params.start) / steps if steps else 0.0
    numbers = builder.make("_plus_scalar", builder.make("_mul_scalar", places, scalar=step), scalar=params.start)
    return finished(builder, node, [numbers])


def arange_rows(site: RowSite) -> list[Rows | None]:
    """Numbers that depend on places, and on the data's extent along one axis."""
    if site.varied_outs[0]:
        raise MixedRows("it numbers the rows of the batch")
    return [None]
