"""Reading and writing at indices, by rows: indices become row numbers of a matrix."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.shapes.gather import rows_of
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.registry import Options


def take(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """Mode raise: indices that the host has checked."""
    data, indices = inputs
    if node.params.mode != "raise":
        return None
    size = builder.shape(data)[node.params.axis]
    row = as_shape(builder, indices, (1, *builder.shape(indices)))
    checked = builder.make("_mxc_checked_index", row, name=f"{node.name}_index", shape=(size,))
    return [builder.make("take", data, checked, name=node.name, axis=node.params.axis)]


def embedding(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows of the weight."""
    data, weight = inputs
    return [builder.make("take", weight, data, name=node.name)]


def batch_take(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """pick in the rows."""
    return [builder.make("pick", *inputs, name=node.name, axis=1)]


def onehot_encode(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """one_hot of the shape that the second array has."""
    indices, shaped = inputs
    return [builder.make("one_hot", indices, name=node.name, depth=builder.shape(shaped)[1],
                         dtype=builder.dtype(shaped))]


def fill_element(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A choice by one_hot between the rows' new elements and the old ones."""
    lhs, mhs, rhs = inputs
    rows, columns = builder.shape(lhs)
    here = builder.make("one_hot", rhs, name=f"{node.name}_here", depth=columns, dtype="uint8")
    wide = builder.make("broadcast_to", as_shape(builder, mhs, (rows, 1)), shape=(rows, columns))
    return [builder.make("where", here, wide, lhs, name=node.name)]


def gather_nd(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """take of the rows whose numbers the host has checked."""
    data, indices = inputs
    shape, axes = builder.shape(data), builder.shape(indices)[0]
    rows, _ = rows_of(shape, axes)
    flat = builder.make("_mxc_checked_index", indices, name=f"{node.name}_index", shape=shape[:axes], negative=True)
    return [builder.make("take", as_shape(builder, data, (rows, *shape[axes:])), flat, name=node.name)]


def scatter_nd(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows written into zeros."""
    data, indices = inputs
    zeros = filled(builder, node.params.shape, 0.0, builder.dtype(data))
    return [_written(builder, node, zeros, data, indices)]


def scatter_set_nd(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows written into lhs."""
    return [_written(builder, node, *inputs)]


def index_copy(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows of new written into old."""
    old, indices, new = inputs
    return [_written(builder, node, old, new, as_shape(builder, indices, (1, *builder.shape(indices))))]


def _written(builder: GraphBuilder, node: Node, base: Entry, values: Entry, indices: Entry) -> Entry:
    shape, axes = builder.shape(base), builder.shape(indices)[0]
    rows, inner = rows_of(shape, axes)
    flat = builder.make("_mxc_flat_index", indices, name=f"{node.name}_index", shape=shape[:axes])
    flat = as_shape(builder, flat, (rows_of(builder.shape(indices), 1)[1],))
    count = builder.shape(flat)[0]
    out = builder.make("_mxc_scatter_set", as_shape(builder, base, (rows, inner)),
                       as_shape(builder, values, (count, inner)), flat, name=node.name)
    return as_shape(builder, out, shape)
