"""Decompositions and gradients of slices, splits, joins and borders.

A node that makes many parts becomes several of a few parts each. Gradients go back to the elements that were read, and
are added up where an element was read several times.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mxc.compiler.graph.batch_rows import MixedRows, Rows, RowSite, by_shapes, same, without
from mxc.compiler.graph.building import as_shape, filled, own_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.slices.shape import crop_ranges, diagonal_axes, like_ranges, slice_ranges, split_places

MOST_PARTS = 23  # parts that one node makes: with the array divided they are MAX_BUFFERS, see lowering/fuse.py


def _sliced(builder: GraphBuilder, entry: Entry, places: Sequence[range]) -> Entry:
    """The elements of `entry` at `places` of each axis, which rise by 1."""
    if tuple(map(len, places)) == builder.shape(entry):
        return entry
    return builder.make("slice", entry, begin=tuple(r.start for r in places), end=tuple(r.stop for r in places))


def slice_like(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice from the first element on."""
    shapes = [builder.shape(e) for e in inputs]
    return [_sliced(builder, inputs[0], like_ranges(node.params, *shapes))]


def crop(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice of height and width."""
    like = builder.shape(inputs[1]) if len(inputs) == 2 else None
    return [_sliced(builder, inputs[0], crop_ranges(node.params, builder.shape(inputs[0]), like))]


def slice_assign_scalar(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice replaced by as many elements of one value."""
    data, params = inputs[0], node.params
    shape = tuple(map(len, slice_ranges(params, builder.shape(data))))
    value = filled(builder, shape, params.scalar, builder.dtype(data))
    return [builder.make("_slice_assign", data, value, name=node.name, begin=params.begin, end=params.end,
                         step=params.step)]


def stack(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The inputs, each with a new axis of extent 1, joined along that axis."""
    out = own_shape(builder, node)
    axis = node.params.axis % len(out)
    parts = [as_shape(builder, e, (*out[:axis], 1, *out[axis + 1:])) for e in inputs]
    return [builder.make("Concat", *parts, name=node.name, num_args=len(parts), dim=axis)]


def diag(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A vector becomes a matrix's diagonal."""
    if len(builder.shape(inputs[0])) > 1:
        return None
    return [builder.make("_mxc_on_diagonal", inputs[0], name=node.name, k=node.params.k,
                         shape=own_shape(builder, node))]


def slice_channel(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A slice for each part where there are many, since one kernel would have to write them all; else None."""
    assert builder.old is not None
    count, (data,) = node.params.num_outputs, inputs
    if count <= MOST_PARTS:
        return None
    shape = builder.shape(data)
    axis = node.params.axis % len(shape)
    size = shape[axis] // count
    return [as_shape(builder, builder.make("slice_axis", data, axis=axis, begin=i * size, end=(i + 1) * size),
                     builder.old.shape(Entry(node, i))) for i in range(count)]


def split_v2(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice for each part."""
    assert builder.old is not None
    shape = builder.shape(inputs[0])
    axis = node.params.axis % len(shape)
    places = split_places(node.params, shape[axis])
    parts = []
    for i, (begin, end) in enumerate(pairwise(places)):
        part = inputs[0] if len(places) == 2 else \
            builder.make("slice_axis", inputs[0], axis=axis, begin=begin, end=end)
        parts.append(as_shape(builder, part, builder.old.shape(Entry(node, i))))
    return parts


def concat_grad(g: Gradient) -> list[Entry | None]:
    """Each input's slice."""
    axis = g.params.dim % len(g.shape(g.outputs[0]))
    backs: list[Entry | None] = []
    begin = 0
    for entry, asked in zip(g.inputs, g.asked, strict=True):
        end = begin + g.shape(entry)[axis]
        backs.append(g.make("slice_axis", g.og, axis=axis, begin=begin, end=end) if asked else None)
        begin = end
    return backs


def slice_channel_grad(g: Gradient) -> list[Entry | None]:
    """SliceChannel: the outputs' gradients joined, zeros where nothing flows."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    part = tuple(dim // g.params.num_outputs if i == axis else dim for i, dim in enumerate(shape))
    parts = [as_shape(g.builder, g.grad(i), part) for i in range(len(g.outputs))]
    return [g.make("Concat", *parts, num_args=len(parts), dim=axis)]


def slice_axis_grad(g: Gradient) -> list[Entry | None]:
    """og where the slice lay, zeros before and after."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    begin = g.params.begin % shape[axis] if g.params.begin < 0 else g.params.begin
    after = shape[axis] - begin - g.shape(g.og)[axis]
    parts = [filled(g.builder, (*shape[:axis], count, *shape[axis + 1:]), 0.0, g.dtype(g.og)) if count else None
             for count in (begin, after)]
    joined = [e for e in (parts[0], g.og, parts[1]) if e is not None]
    return [g.make("Concat", *joined, num_args=len(joined), dim=axis) if len(joined) > 1 else g.og]


def _placed(g: Gradient, part: Entry, shape: Shape, places: Sequence[range]) -> Entry:
    """Zeros of `shape` with `part` at `places`, which rise by 1."""
    if shape == g.shape(part):
        return part
    return g.make("_slice_assign", filled(g.builder, shape, 0, g.dtype(part)), part,
                  begin=tuple(r.start for r in places), end=tuple(r.stop for r in places))


def strided_slice_grad(g: Gradient) -> list[Entry | None]:
    """slice: og where the elements were, zeros elsewhere."""
    zeros = filled(g.builder, g.shape(g.inputs[0]), 0, g.dtype(g.og))
    return [g.make("_slice_assign", zeros, g.og, begin=g.params.begin, end=g.params.end, step=g.params.step)]


def slice_assign_grad(g: Gradient) -> list[Entry | None]:
    """og outside of the box to the left array, inside of it to the right one."""
    box = {key: g.params[key] for key in ("begin", "end", "step")}
    outside = g.make("_slice_assign", g.og, filled(g.builder, g.shape(g.inputs[1]), 0, g.dtype(g.og)), **box)
    return [outside, g.make("slice", g.og, **box)]



def pad_grad(g: Gradient) -> list[Entry | None]:
    """og without its border, and the border added where its elements were read."""
    back, mode = g.og, g.params.mode
    for axis, (n, before, after) in enumerate(zip(g.shape(g.inputs[0]), g.params.pad_width[::2],
                                                  g.params.pad_width[1::2], strict=True)):
        if before or after:
            parts = [g.make("slice_axis", back, axis=axis, begin=before, end=before + n)]
            if mode != "constant":
                parts += [_border(g, back, axis, n, ends, at) for ends, at in
                          (((0, before), 0), ((before + n, before + n + after), n - 1)) if ends[0] < ends[1]]
            back = parts[0] if len(parts) == 1 else g.make("add_n", *parts, num_args=len(parts))
    return [back]


def _border(g: Gradient, grad: Entry, axis: int, n: int, ends: tuple[int, int], edge: int) -> Entry:
    """What the border between `ends` of `axis` adds to the n elements there: all to the one at `edge`, or mirrored."""
    part = g.make("slice_axis", grad, axis=axis, begin=ends[0], end=ends[1])
    count = ends[1] - ends[0]
    if g.params.mode == "edge":
        part, begin, count = g.make("sum", part, axis=(axis,), keepdims=True), edge, 1
    else:
        part, begin = g.make("reverse", part, axis=(axis,)), 1 if edge == 0 else n - 1 - count
    shape = g.shape(part)
    places = [range(begin, begin + count) if a == axis else range(d) for a, d in enumerate(shape)]
    return _placed(g, part, (*shape[:axis], n, *shape[axis + 1:]), places)


def diag_grad(g: Gradient) -> list[Entry | None]:
    """Zeros with og on the diagonal; where the data is a vector, the diagonal of og."""
    shape = g.shape(g.inputs[0])
    if len(shape) == 1:
        return [g.make("diag", g.og, k=g.params.k)]
    first, second = diagonal_axes(g.params, len(shape))
    return [g.make("_mxc_on_diagonal", g.og, k=g.params.k, axis1=first, axis2=second, shape=shape)]


def on_diagonal_grad(g: Gradient) -> list[Entry | None]:
    """og's diagonal."""
    return [g.make("diag", g.og, k=g.params.k, axis1=g.params.axis1, axis2=g.params.axis2)]


def split_v2_grad(g: Gradient) -> list[Entry | None]:
    """The outputs' gradients joined, zeros where nothing flows."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    places = split_places(g.params, shape[axis])
    parts = [as_shape(g.builder, g.grad(i), (*shape[:axis], end - begin, *shape[axis + 1:]))
             for i, (begin, end) in enumerate(pairwise(places))]
    return [parts[0] if len(parts) == 1 else g.make("Concat", *parts, num_args=len(parts), dim=axis)]


@by_shapes("begin", "end")
def slice_axis_rows(site: RowSite) -> list[Rows | None]:
    """The axes that are taken whole."""
    (shape,), (out,) = site.ins, site.outs
    axis = site.params.axis % len(shape)
    if site.params != site.other_params and axis not in site.varied_ins[0]:
        raise MixedRows("what it takes depends on the size of the batch")
    return [site.along(same(shape, [] if shape == out else [axis]))]


@by_shapes("begin", "end")
def slice_rows(site: RowSite) -> list[Rows | None]:
    """The axes that are taken, or replaced, whole and in their order."""
    shape, part = site.ins[0], site.ins[1] if len(site.ins) > 1 else site.outs[0]
    for name in ("begin", "end"):
        mine, other = (tuple(getattr(params, name)) for params in (site.params, site.other_params))
        if any(mine[axis] != other[axis] and axis not in site.varied_ins[0] for axis in range(len(mine))):
            raise MixedRows("what it takes depends on the size of the batch")
    turned = [axis for axis, step in enumerate(site.params.step) if step is not None and step < 0]
    axes = same(shape, [*turned, *(axis for axis in range(len(shape)) if shape[axis] != part[axis])])
    return [site.along(axes, axes)]


def concat_rows(site: RowSite) -> list[Rows | None]:
    """Every axis but the one along which parts lie."""
    axis = site.params.dim % len(site.outs[0])
    return [site.along(*(same(shape, [axis]) for shape in site.ins))]


def split_rows(site: RowSite) -> list[Rows | None]:
    """Every axis but the one that is divided."""
    shape = site.ins[0]
    axis = site.params.axis % len(shape)
    return site.everywhere(without(shape, axis) if site.params.squeeze_axis else same(shape, [axis]))


def pad_rows(site: RowSite) -> list[Rows | None]:
    """The axes without a border."""
    widths = site.params.pad_width
    return [site.along(same(site.ins[0], [i for i in range(len(site.ins[0])) if widths[2 * i] or widths[2 * i + 1]]))]
