"""Layers over numbers of 8 bits whose kernels take four of them at a time, as the bytes of an int32.

The data of such a kernel are uint8. To data of int8 it is 128 added, and taken out of the sums again.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_dtype, as_shape, other_axes
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options


def has_quads(options: Options) -> bool:
    """Whether the target computes with four numbers of 8 bits at a time."""
    target = options.target
    return target is not None and target.prefers.panels is not None and bool(target.tile("int32")[0])


def fits_quads(node: Node, channels: int, options: Options) -> bool:
    """Whether the target computes a convolution over four channels at a time: of planes, and of groups that do not
    share such four."""
    return (has_quads(options) and len(node.params.kernel) == 2
            and (node.params.num_group == 1 or channels // node.params.num_group % 4 == 0))


def with_zeros(builder: GraphBuilder, x: Entry, more: dict[int, tuple[int, int]]) -> Entry:
    """`x` with so many zeros before and behind it along each axis."""
    for axis, counts in more.items():
        ends = []
        for count in counts:
            shape = list(builder.shape(x))
            shape[axis] = count
            ends.append([builder.make("_zeros", shape=tuple(shape), dtype=builder.dtype(x))] if count else [])
        parts = [*ends[0], x, *ends[1]]
        x = builder.make("Concat", *parts, num_args=len(parts), dim=axis) if len(parts) > 1 else x
    return x


def quads(builder: GraphBuilder, x: Entry, axis: int, above: int = 0) -> Entry:
    """int32 that hold four neighbours along an axis each, the first one in the lowest byte. above: is added to them."""
    x = with_zeros(builder, x, {axis: (0, -builder.shape(x)[axis] % 4)})
    parts = []
    for k, factor in enumerate((1, 1 << 8, 1 << 16, 1 << 24)):
        part = builder.make("slice", x, begin=(None,) * axis + (k,), end=(None,) * (axis + 1),
                            step=(None,) * axis + (4,))
        if above:
            part = builder.make("_plus_scalar", as_dtype(builder, part, "int32"), scalar=above)
        part = as_dtype(builder, as_dtype(builder, part, "uint8"), "int32")
        parts.append(builder.make("_mul_scalar", part, scalar=factor) if factor > 1 else part)
    while len(parts) > 1:
        parts = [builder.make("elemwise_add", a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def excess(builder: GraphBuilder, weight: Entry) -> Entry:
    """What 128, added to the data, adds to the sums of each filter: a vector."""
    total = builder.make("sum", as_dtype(builder, weight, "int32"), axis=other_axes(len(builder.shape(weight)), 0))
    return builder.make("_mul_scalar", total, scalar=128)


def convolution_by_quads(
    builder: GraphBuilder, node: Node, data: Entry, weight: Entry, options: Options,
    known: dict[tuple[Entry, Shape], Entry],
) -> Entry:
    """The sums of a convolution of plain arrays. known: the fours of data, by what is put around them, which several
    convolutions may read."""
    params, signed = node.params, builder.dtype(data) == "int8"
    pad, around = params.pad, (0, 0)
    if signed:  # what is around the data is 0, and becomes 128 too
        pad, around = around, pad
    key = data, around
    if key not in known:
        whole = with_zeros(builder, data, {axis: (n, n) for axis, n in enumerate(around, 2) if n})
        known[key] = quads(builder, whole, 1, 128 if signed else 0)
    fours, weights = known[key], quads(builder, weight, 1)
    block, groups = options.target.tile("int32")[0], params.num_group
    rows = (groups, params.num_filter // groups, prod(builder.shape(weights)[1:]))
    packed = builder.make("_mxc_pack_rows", as_shape(builder, weights, rows), block=block, name=f"{node.name}_packed")
    made = builder.make("_mxc_quad_convolution", fours, packed, name=node.name, kernel=params.kernel,
                        stride=params.stride, dilate=params.dilate, pad=pad, num_filter=params.num_filter,
                        num_group=groups, block=block)
    if signed:
        made = builder.make("broadcast_sub", made, as_shape(builder, excess(builder, weight), (1, -1, 1, 1)))
    return made


def blocked_by_quads(builder: GraphBuilder, node: Node, data: Entry, weight: Entry, options: Options) -> Entry:
    """The sums of a convolution of data in blocks, or plain data, in blocks of as many filters as the target's vectors
    have lanes."""
    params, target = node.params, options.target
    four = builder.shape(data)[-1] // 4 if len(builder.shape(data)) == 5 else 1
    block, columns, taps = target.lanes("int32"), target.tile("int32")[1], prod(params.kernel)
    words = quads(builder, weight, 1)
    filters, depth = builder.shape(words)[:2]
    parts = as_shape(builder, words, (filters, depth // four, four, taps))
    if four > 1 and taps > 1:
        parts = builder.make("transpose", parts, axes=(0, 1, 3, 2))
    rows = as_shape(builder, parts, (params.num_group, filters // params.num_group, depth * taps))
    packed = builder.make("_mxc_pack_rows", rows, block=columns, name=f"{node.name}_packed")
    made = builder.make("_mxc_blocked_quads", data, packed, name=node.name, kernel=params.kernel, stride=params.stride,
                        dilate=params.dilate, pad=params.pad, num_filter=filters, num_group=params.num_group,
                        block=block, columns=columns)
    if builder.dtype(data) == "int8":
        more = as_shape(builder, excess(builder, weight), (1, filters // block, 1, 1, block))
        made = builder.make("broadcast_sub", made, more)
    return made


def product_by_quads(builder: GraphBuilder, node: Node, data: Entry, weight: Entry, options: Options,
                     ) -> list[Entry] | None:
    """Sums of products of rows that are whole words, of data of uint8; 128 is added to the weight of others and taken
    out of the sums again, unless the target has tiles. None where `node` is that already."""
    (rows, depth), tiles = builder.shape(data), options.prefers.tiles
    lifted, more = builder.dtype(data) == "int8" and tiles is None, -depth % 4
    if tiles is not None and not tiles.depth((depth + more) // 4):
        more = -depth % (4 * tiles.words)
    if node.params.lifted or not (lifted or more):
        return None
    long = [with_zeros(builder, each, {1: (0, more)}) for each in (data, weight)]
    made = builder.make("_mxc_int8_product", *long, name=node.name, lifted=lifted)
    if lifted:
        made = builder.make("broadcast_sub", made, as_shape(builder, excess(builder, data), (rows, 1)))
    return [made]
