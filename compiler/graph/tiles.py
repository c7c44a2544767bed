"""Convolutions by tiles, whose rows are words: 32 bits that hold two numbers of bfloat16, or four of 8 bits."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_shape, geometry
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.quads import with_zeros

NUMBERS = {"uint8": 4, "int8": 4, "bfloat16": 2}  # of a word, by the data's dtype


def tiled(
    builder: GraphBuilder, node: Node, data: Entry, weight: Entry, options: Options, filters: int,
) -> Entry | None:
    """The convolution `node` of data in blocks, or plain data, by tiles, in blocks; None where the target has no tiles
    for it. filters: may be more than the node has; the others are zero."""
    params, groups, rank = node.params, node.params.num_group, len(node.params.kernel)
    shape, per, tiles = builder.shape(data), NUMBERS.get(builder.dtype(data), 0), options.prefers.tiles
    if tiles is None or not per:
        return None
    lanes, columns = options.target.lanes("float32"), options.target.tile("float32")[1]
    if len(shape) == rank + 2:  # a row of a tile has the pixels that a row of the kernel reads
        inner, depth = per, params.kernel[-1]
        if groups > 1 or rank == 1 or depth > tiles.words or (*params.dilate, 1)[rank - 1] > 1:
            return None
    elif shape[-1] % per:
        return None
    else:
        blocks, words = shape[1] // groups, shape[-1] // per
        depth = words * next(n for n in range(max(1, tiles.words // words), 0, -1) if blocks % n == 0)
        inner = per * depth
    packed = packed_words(builder, weight, groups, per, inner, columns, node.name)
    return builder.make("_mxc_tiled_convolution", data, packed, name=node.name, num_filter=filters, num_group=groups,
                        block=lanes, columns=columns, depth=depth, **geometry(node))


def packed_words(
    builder: GraphBuilder, weight: Entry, groups: int, per: int, inner: int, columns: int, name: str,
) -> Entry:
    """A weight (filters, channels, *kernel) as tiles read it: (groups, panels, words of the depth, columns, numbers of
    a word), where the depth is (channels / inner, kernel, inner)."""
    weight = with_zeros(builder, weight, {1: (0, -builder.shape(weight)[1] % per)})
    filters, channels, *kernel = builder.shape(weight)
    taps = prod(kernel)
    if taps > 1:
        parts = as_shape(builder, weight, (filters, channels // inner, inner, taps))
        weight = builder.make("transpose", parts, axes=(0, 1, 3, 2))
    rows = as_shape(builder, weight, (groups, filters // groups, channels * taps))
    packed = builder.make("_mxc_pack_rows", rows, block=columns, name=f"{name}_packed")
    words = as_shape(builder, packed, (*builder.shape(packed)[:2], channels * taps // per, per, columns))
    return builder.make("transpose", words, axes=(0, 1, 2, 4, 3))
