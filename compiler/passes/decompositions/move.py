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
    slice_ranges,
    split_places,
    swapped,
    upsampling_factors,
)
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.registry import Options

MOST_PARTS = 23  # parts that one node makes: with what it divides they are as many as one kernel may have


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
    data, params = inputs[0], node.params
    shape = tuple(map(len, slice_ranges(params, builder.shape(data))))
    value = filled(builder, shape, params.scalar, builder.dtype(data))
    return [builder.make("_slice_assign", data, value, name=node.name, begin=params.begin, end=params.end,
                         step=params.step)]


def reverse(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A slice with step -1."""
    axes = reversed_axes(node.params)
    if not axes:
        return inputs
    count = max(axes) + 1
    step = tuple(-1 if axis in axes else 1 for axis in range(count))
    return [builder.make("slice", inputs[0], name=node.name, begin=(None,) * count, end=(None,) * count, step=step)]


def upsampling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Height and width repeated, the results joined or added; or the deconvolution."""
    params, out = node.params, _own_shape(builder, node)
    if params.sample_type == "bilinear":
        g = geometry(bilinear(params))
        return [builder.make("_mxc_conv_data_grad", *inputs, name=node.name, kernel=g.kernel, stride=g.stride,
                             dilate=g.dilate, pad=g.pad, num_group=g.groups, shape=out)]
    large = []
    for entry, factor in zip(inputs, upsampling_factors(params, [builder.shape(e) for e in inputs]), strict=True):
        for axis in (2, 3) if factor > 1 else ():
            entry = builder.make("repeat", entry, repeats=factor, axis=axis)
        large.append(entry)
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


def slice_channel(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A slice for each part where there are many: one kernel would write them all."""
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
