"""Operators that move elements as slices, transposes, repetitions of axes of extent 1, and rearrangements of them."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.ops.shapes.convolution import geometry
from mxc.compiler.ops.shapes.move import (
    bilinear,
    crop_ranges,
    like_ranges,
    reversed_axes,
    split_places,
    swapped,
    upsampling_factors,
)
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.registry import Options


def _own_shape(builder: GraphBuilder, node: Node) -> Shape:
    assert builder.old is not None
    return builder.old.shape(Entry(node))


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
    data, where = inputs[0], {k: node.params[k] for k in ("begin", "end", "step")}
    shape = builder.shape(builder.make("slice", data, **where))
    value = filled(builder, shape, node.params.scalar, builder.dtype(data))
    return [builder.make("_slice_assign", data, value, name=node.name, **where)]


def reverse(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice with step -1."""
    axes = reversed_axes(node.params)
    if not axes:
        return inputs
    count = max(axes) + 1
    step = tuple(-1 if axis in axes else 1 for axis in range(count))
    return [builder.make("slice", inputs[0], name=node.name, begin=(None,) * count, end=(None,) * count, step=step)]


def repeated(builder: GraphBuilder, entry: Entry, split: Shape, wide: Shape, result: Shape) -> Entry:
    """`entry` as `split`, whose axes of extent 1 are repeated to `wide`, as `result`."""
    if split != wide:
        entry = builder.make("broadcast_to", as_shape(builder, entry, split), shape=wide)
    return as_shape(builder, entry, result)


def tile_shapes(shape: Shape, reps: Shape) -> tuple[Shape, Shape]:
    """Before each axis one of extent 1, and that one as long as the axis is repeated."""
    rank = max(len(shape), len(reps))
    shape, reps = (1,) * (rank - len(shape)) + tuple(shape), (1,) * (rank - len(reps)) + tuple(reps)
    pairs = list(zip(reps, shape, strict=True))
    return tuple(n for _, d in pairs for n in (1, d)), tuple(n for pair in pairs for n in pair)


def tile(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """An axis of extent 1 before each, repeated."""
    split, wide = tile_shapes(builder.shape(inputs[0]), node.params.reps)
    return [repeated(builder, inputs[0], split, wide, _own_shape(builder, node))]


def repeat_shapes(shape: Shape, repeats: int, axis: int | None) -> tuple[Shape, Shape]:
    """After the axis (after all without one) an axis of extent 1, and that one `repeats` long."""
    after = len(shape) if axis is None else axis % len(shape) + 1
    return (*shape[:after], 1, *shape[after:]), (*shape[:after], repeats, *shape[after:])


def repeat(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """An axis of extent 1 after the axis, repeated."""
    split, wide = repeat_shapes(builder.shape(inputs[0]), node.params.repeats, node.params.axis)
    return [repeated(builder, inputs[0], split, wide, _own_shape(builder, node))]


def upsampling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """An axis of extent 1 after height and after width, repeated; the results joined or added. Or the deconvolution."""
    params, out = node.params, _own_shape(builder, node)
    if params.sample_type == "bilinear":
        g = geometry(bilinear(params))
        return [builder.make("_mxc_conv_data_grad", *inputs, name=node.name, kernel=g.kernel, stride=g.stride,
                             dilate=g.dilate, pad=g.pad, num_group=g.groups, shape=out)]
    shapes = [builder.shape(e) for e in inputs]
    large = [repeated(builder, entry, (n, c, h, 1, w, 1), (n, c, h, factor, w, factor), (n, c, *out[2:]))
             for entry, (n, c, h, w), factor in zip(inputs, shapes, upsampling_factors(params, shapes), strict=True)]
    if len(large) == 1:
        return large
    if params.multi_input_mode == "sum":
        return [builder.make("add_n", *large, name=node.name, num_args=len(large))]
    return [builder.make("Concat", *large, name=node.name, num_args=len(large), dim=1)]


def swap_axis(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A transpose."""
    return [builder.make("transpose", inputs[0], name=node.name,
                         axes=swapped(node.params, len(builder.shape(inputs[0]))))]


def stack(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Joined along an axis of extent 1 that each gets."""
    out = _own_shape(builder, node)
    axis = node.params.axis % len(out)
    parts = [as_shape(builder, e, (*out[:axis], 1, *out[axis + 1:])) for e in inputs]
    return [builder.make("Concat", *parts, name=node.name, num_args=len(parts), dim=axis)]


def depth_to_space(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A transpose of blocks."""
    size, out = node.params.block_size, _own_shape(builder, node)
    n, c, h, w = builder.shape(inputs[0])
    blocks = as_shape(builder, inputs[0], (n, size, size, c // size**2, h, w))
    return [as_shape(builder, builder.make("transpose", blocks, axes=(0, 3, 4, 1, 5, 2)), out)]


def space_to_depth(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A transpose of blocks."""
    size, out = node.params.block_size, _own_shape(builder, node)
    n, c, h, w = builder.shape(inputs[0])
    blocks = as_shape(builder, inputs[0], (n, c, h // size, size, w // size, size))
    return [as_shape(builder, builder.make("transpose", blocks, axes=(0, 3, 5, 1, 2, 4)), out)]


def diag(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A vector becomes a matrix's diagonal."""
    if len(builder.shape(inputs[0])) > 1:
        return None
    return [builder.make("_mxc_on_diagonal", inputs[0], name=node.name, k=node.params.k,
                         shape=_own_shape(builder, node))]


def broadcast_like(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """broadcast_axis and broadcast_like: a repetition to the shape that the operator gives."""
    shape = _own_shape(builder, node)
    return [inputs[0] if builder.shape(inputs[0]) == shape else
            builder.make("broadcast_to", inputs[0], name=node.name, shape=shape)]


def shape_array(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The extents, which are known."""
    parts = [filled(builder, (1,), n, "int64") for n in builder.shape(inputs[0])]
    return parts if len(parts) == 1 else [builder.make("Concat", *parts, name=node.name, num_args=len(parts), dim=0)]


def size_array(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The number of elements, which is known."""
    count = 1
    for n in builder.shape(inputs[0]):
        count *= n
    return [filled(builder, (1,), count, "int64")]


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


def div_sqrt_dim(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A division by a number."""
    return [builder.make("_div_scalar", inputs[0], name=node.name, scalar=sqrt(builder.shape(inputs[0])[-1]))]


def khatri_rao(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Products of rows with rows, one matrix after the other."""
    result = inputs[0]
    for entry in inputs[1:]:
        (rows, columns), (more, _) = builder.shape(result), builder.shape(entry)
        product = builder.make("broadcast_mul", as_shape(builder, result, (rows, 1, columns)),
                               as_shape(builder, entry, (1, more, columns)))
        result = as_shape(builder, product, (rows * more, columns))
    return [result]
