"""Decompositions and gradients of operators that rearrange or repeat elements."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.graph.batch_rows import MixedRows, Rows, RowSite, by_shapes, trailing
from mxc.compiler.graph.building import as_shape, own_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.arrange.shape import reversed_axes, swapped


def to_own_shape(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The first input's elements in the shape that the operator gives (Flatten, expand_dims)."""
    assert builder.old is not None
    return [as_shape(builder, inputs[0], builder.old.shape(Entry(node)))]


def reverse(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice with step -1 along each of the axes."""
    axes = reversed_axes(node.params)
    if not axes:
        return inputs
    count = max(axes) + 1
    step = tuple(-1 if axis in axes else 1 for axis in range(count))
    return [builder.make("slice", inputs[0], name=node.name, begin=(None,) * count, end=(None,) * count, step=step)]


def swap_axis(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A transpose."""
    return [builder.make("transpose", inputs[0], name=node.name,
                         axes=swapped(node.params, len(builder.shape(inputs[0]))))]


def broadcast_like(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """broadcast_axis and broadcast_like: a repetition to the shape that the operator gives."""
    shape = own_shape(builder, node)
    return [inputs[0] if builder.shape(inputs[0]) == shape else
            builder.make("broadcast_to", inputs[0], name=node.name, shape=shape)]


def reshape_grad(g: Gradient) -> list[Entry | None]:
    """og in the input's shape."""
    return [as_shape(g.builder, g.og, g.shape(g.inputs[0]))]


def transpose_grad(g: Gradient) -> list[Entry | None]:
    """og transposed by the inverse permutation; without `axes` the forward pass has reversed the axes."""
    ndim = len(g.shape(g.inputs[0]))
    axes = tuple(a % ndim for a in g.params.axes) or tuple(range(ndim))[::-1]
    inverse = tuple(axes.index(i) for i in range(ndim))
    return [g.make("transpose", g.og, axes=inverse)]


def broadcast_grad(g: Gradient) -> list[Entry | None]:
    """og summed over the axes that were repeated."""
    return [g.sum_to(g.og, g.shape(g.inputs[0]))]


def sum_over(g: Gradient, entry: Entry, wide: Shape, axes: Sequence[int], shape: Shape) -> Entry:
    """`entry` as `wide`, summed over `axes`, as `shape`."""
    entry = as_shape(g.builder, entry, wide)
    axes = tuple(a for a in axes if wide[a] > 1)
    if axes:
        entry = g.make("sum", entry, axis=axes, keepdims=True)
    return as_shape(g.builder, entry, shape)


def tile_grad(g: Gradient) -> list[Entry | None]:
    """og summed over the copies: each axis is split into (number of copies, extent in the input)."""
    shape, reps = g.shape(g.inputs[0]), tuple(g.params.reps)
    rank = max(len(shape), len(reps))
    ones = (1,) * rank
    pairs = zip((ones + reps)[-rank:], (ones + shape)[-rank:], strict=True)
    wide = tuple(n for pair in pairs for n in pair)
    return [sum_over(g, g.og, wide, range(0, len(wide), 2), shape)]


def repeat_grad(g: Gradient) -> list[Entry | None]:
    """og summed over the copies of each element: they form an axis of their own behind `axis`, or behind all axes."""
    shape, axis = g.shape(g.inputs[0]), g.params.axis
    after = len(shape) if axis is None else axis % len(shape) + 1
    return [sum_over(g, g.og, (*shape[:after], g.params.repeats, *shape[after:]), (after,), shape)]


def again_grad(g: Gradient) -> list[Entry | None]:
    """reverse: og reversed in the same way."""
    assert g.node.op is not None
    return [g.make(g.node.op.name, g.og, **g.params)]


def depth_to_space_grad(g: Gradient) -> list[Entry | None]:
    """space_to_depth of og, the inverse of the operator."""
    return [g.make("space_to_depth", g.og, **g.params)]


def space_to_depth_grad(g: Gradient) -> list[Entry | None]:
    """depth_to_space of og, the inverse of the operator."""
    return [g.make("depth_to_space", g.og, **g.params)]


@by_shapes("shape")
def reshape_rows(site: RowSite) -> list[Rows | None]:
    """All elements in their order."""
    return [site.reshaped()]


def squeeze_rows(site: RowSite) -> list[Rows | None]:
    """All elements in their order, where it is known which axes go."""
    if site.params.axis is None:
        raise MixedRows("without `axis` it also removes the axis of a batch of one row")
    return [site.reshaped()]


def transpose_rows(site: RowSite) -> list[Rows | None]:
    """Every axis, in another place."""
    ndim = len(site.ins[0])
    axes = site.params.axes or range(ndim)[::-1]
    return [site.along({axis % ndim: place for place, axis in enumerate(axes)})]


@by_shapes("shape")
def broadcast_rows(site: RowSite) -> list[Rows | None]:
    """Every axis; what is the same in every row is so when it is spread along them."""
    return [None if site.rows[0] is None else site.along(trailing(site.ins[0], site.outs[0]))]


def tile_rows(site: RowSite) -> list[Rows | None]:
    """Every axis; copies of the axis of the batch lie one behind the other."""
    shape, out, rows = site.ins[0], site.outs[0], site.rows[0]
    axes = {axis: place for axis, place in trailing(shape, out).items() if shape[axis] == out[place]}
    if rows is None or rows.axis in axes:
        return [site.along(axes)]
    place = rows.axis + len(out) - len(shape)
    return [Rows(place, rows.outer * out[place] // shape[rows.axis], rows.inner)]


def repeat_rows(site: RowSite) -> list[Rows | None]:
    """Every axis; copies of an element lie side by side."""
    shape, rows, axis = site.ins[0], site.rows[0], site.params.axis
    if axis is None:
        raise MixedRows("without `axis` it makes one axis of all")
    if rows is None or rows.axis != axis % len(shape):
        return [site.along({i: i for i in range(len(shape)) if i != axis % len(shape)})]
    return [rows._replace(inner=rows.inner * site.params.repeats)]
