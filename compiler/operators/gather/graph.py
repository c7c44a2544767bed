"""Decompositions and gradients of operators that read and write at indices.

Indices become row numbers of a matrix, and rows are read and written. The gradient of reading at indices is writing
there, and the other way round. Nothing flows into an index.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.batch_rows import Rows, RowSite, same, without
from mxc.compiler.graph.building import as_dtype, as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient, ignores
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.gather.shape import rows_of


def take(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """In mode raise, take at indices that were checked; None in other modes, which need no check."""
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
    """pick of one element in each row."""
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
    """take of the rows whose numbers were checked."""
    data, indices = inputs
    shape, axes = builder.shape(data), builder.shape(indices)[0]
    rows, _ = rows_of(shape, axes)
    flat = builder.make("_mxc_checked_index", indices, name=f"{node.name}_index", shape=shape[:axes], negative=True)
    return [builder.make("take", as_shape(builder, data, (rows, *shape[axes:])), flat, name=node.name)]


def scatter_nd(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows written into zeros."""
    data, indices = inputs
    return [_written(builder, node, node.params.shape, data, indices)]


def scatter_set_nd(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows written into lhs."""
    base, data, indices = inputs
    return [_written(builder, node, builder.shape(base), data, indices, base)]


def index_copy(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows of new written into old."""
    old, indices, new = inputs
    where = as_shape(builder, indices, (1, *builder.shape(indices)))
    return [_written(builder, node, builder.shape(old), new, where, old)]


def _written(builder: GraphBuilder, node: Node, shape: tuple[int, ...], values: Entry, indices: Entry,
             base: Entry | None = None) -> Entry:
    """An array of that shape: rows of values where the indices tell, else what `base` has, or zeros."""
    axes = builder.shape(indices)[0]
    rows, inner = rows_of(shape, axes)
    flat = builder.make("_mxc_flat_index", indices, name=f"{node.name}_index", shape=shape[:axes])
    flat = as_shape(builder, flat, (rows_of(builder.shape(indices), 1)[1],))
    values = as_shape(builder, values, (builder.shape(flat)[0], inner))
    if base is None:
        out = builder.make("_mxc_scatter_rows", values, flat, name=node.name, rows=rows)
    else:
        out = builder.make("_mxc_scatter_set", as_shape(builder, base, (rows, inner)), values, flat, name=node.name)
    return as_shape(builder, out, shape)


def _added(g: Gradient, rows: Entry, shape: tuple[int, ...], axis: int, axes: int = 1) -> Entry:
    """og summed into zeros of `shape`. The `axes` axes from `axis` on are indexed; rows: their row-major positions."""
    outer, size, inner = prod(shape[:axis]), prod(shape[axis:axis + axes]), prod(shape[axis + axes:])
    count = prod(g.shape(rows))
    og = as_shape(g.builder, g.og, (outer, count, inner))
    back = g.make("_mxc_scatter_add", og, as_shape(g.builder, rows, (count,)), rows=size)
    return as_shape(g.builder, back, shape)


@ignores("indices")
def scatter_add_grad(g: Gradient) -> list[Entry | None]:
    """og at the indices, along its axis 1; zeros for an index that is out of range."""
    indices, rows = g.inputs[1], g.params.rows
    inside = g.make("elemwise_mul", g.make("_greater_scalar", indices, scalar=-1.0),  # Indices are cut: -0.5 is 0.
                    g.make("_lesser_scalar", indices, scalar=float(rows)))
    mask = as_dtype(g.builder, as_shape(g.builder, inside, (1, *g.shape(indices), 1)), g.dtype(g.og))
    return [g.make("broadcast_mul", g.make("take", g.og, indices, axis=1, mode="clip"), mask), None]


@ignores("indices")
def take_grad(g: Gradient) -> list[Entry | None]:
    """og added up at the indices, after these were clipped or wrapped."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    mode = "wrap" if g.params.mode == "wrap" else "clip"
    rows = g.make("_mxc_bound_index", g.inputs[1], size=shape[axis], mode=mode)
    return [_added(g, rows, shape, axis), None]


@ignores("data")
def embedding_grad(g: Gradient) -> list[Entry | None]:
    """og added up in the rows of the weight; with sparse_grad, in those alone that were read."""
    if g.params.sparse_grad:
        return sparse_embedding_grad(g)
    data, weight = g.inputs
    rows = g.make("_mxc_bound_index", data, size=g.params.input_dim)
    return [None, _added(g, rows, g.shape(weight), 0)]


@ignores("data")
def sparse_embedding_grad(g: Gradient) -> list[Entry | None]:
    """og added up in the rows of the weight that were read."""
    return [None, g.make("_mxc_add_rows", g.og, g.inputs[0], rows=g.params.input_dim)]


@ignores("index")
def pick_grad(g: Gradient) -> list[Entry | None]:
    """og where it was read, zeros elsewhere."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    return [g.make("_mxc_unpick", g.og, g.inputs[1], axis=axis, size=shape[axis], mode=g.params.mode,
                   kept=g.params.keepdims or len(shape) == 1), None]


@ignores("index")
def unpick_grad(g: Gradient) -> list[Entry | None]:
    """og at the index."""
    grad, index = g.inputs
    back = g.make("pick", g.og, index, axis=g.params.axis, mode=g.params.mode, keepdims=g.params.kept)
    return [as_shape(g.builder, back, g.shape(grad)), None]


@ignores("indices")
def gather_nd_grad(g: Gradient) -> list[Entry | None]:
    """og added up at the indices."""
    shape, axes = g.shape(g.inputs[0]), g.shape(g.inputs[1])[0]
    rows = g.make("_mxc_checked_index", g.inputs[1], shape=shape[:axes], negative=True)
    return [_added(g, rows, shape, 0, axes), None]


def _read(g: Gradient, indices: Entry, like: Entry) -> Entry:
    """og at the indices in the columns, zeros for those outside, in the shape of `like`."""
    shape, axes = g.shape(g.og), g.shape(indices)[0]
    rows, inner = rows_of(shape, axes)
    flat = g.make("_mxc_flat_index", indices, shape=shape[:axes])
    flat = as_shape(g.builder, flat, (prod(g.shape(flat)),))
    read = g.make("take", as_shape(g.builder, g.og, (rows, inner)), flat)
    zeros = filled(g.builder, g.shape(read), 0.0, g.dtype(g.og))
    inside = g.make("_greater_equal_scalar", flat, scalar=0.0)
    return as_shape(g.builder, g.make("where", inside, read, zeros), g.shape(like))


@ignores("indices")
def scatter_nd_grad(g: Gradient) -> list[Entry | None]:
    """og at the indices; each of several that are equal gets it, as in MXNet."""
    return [_read(g, g.inputs[1], g.inputs[0]), None]


@ignores("index_vector")
def index_copy_grad(g: Gradient) -> list[Entry | None]:
    """og for new at the indices, and for old where there is none."""
    _, indices, new = g.inputs
    columns = as_shape(g.builder, indices, (1, *g.shape(indices)))
    zeros = filled(g.builder, g.shape(new), 0.0, g.dtype(new))
    kept = g.make("_contrib_index_copy", g.og, indices, zeros) if g.asked[0] else None
    return [kept, None, _read(g, columns, new) if g.asked[2] else None]


def count_sketch(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The routine, forward."""
    return [builder.make("_mxc_count_sketch", *inputs, name=node.name, size=node.params.out_dim)]


def count_sketch_grad(g: Gradient) -> list[Entry | None]:
    """It is linear in the data: each element gets that of its place, times its sign. Places and signs get nothing."""
    data, places, signs = g.inputs
    size = g.shape(data)[-1]
    return [g.make("_mxc_count_sketch", g.og, places, signs, size=size, backward=not g.params.backward), None, None]


def take_rows(site: RowSite) -> list[Rows | None]:
    """The axes of the indices, in the place of the one along which they pick, and the data's others."""
    data, indices = site.ins
    axis = site.params.axis % len(data)
    others = {i: i if i < axis else i + len(indices) - 1 for i in range(len(data)) if i != axis}
    return [site.along(others, {i: i + axis for i in range(len(indices))})]


def embedding_rows(site: RowSite) -> list[Rows | None]:
    """Every axis of the indices."""
    return [site.along(same(site.ins[0]), {})]


def pick_rows(site: RowSite) -> list[Rows | None]:
    """Every axis but the one along which indices pick."""
    data, index = site.ins
    axis = site.params.axis % len(data)
    kept = {i: i for i in range(len(data)) if i != axis} if site.params.keepdims else without(data, axis)
    if len(index) == len(data):
        return [site.along(kept, kept)]
    return [site.along(kept, {i - (i > axis): place for i, place in kept.items()})]


def gather_rows(site: RowSite) -> list[Rows | None]:
    """The axes of the indices behind the first, which has places in the data."""
    return [site.along({}, {i: i - 1 for i in range(1, len(site.ins[1]))})]
