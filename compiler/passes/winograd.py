"""The pass `winograd`: which convolutions are computed by Winograd's F(4x4, 3x3), and the operators that they become.

For each result, channel and filter it multiplies 36 / 16 = 2.25 times in place of 9 times at best. In return it cuts
images into tiles, which may not fit, transforms data and results, and reads weights four times as large.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import winograd


def pays(graph: Graph, node: Node, options: Options) -> bool:
    """Whether the convolution `node` of blocked data has the right form, and is faster this way on the target."""
    (n, channels, *_), out, params = graph.shape(node.inputs[0]), graph.shape(Entry(node)), node.params
    formed = (tuple(params.kernel) == (3, 3) and {*params.stride, *params.dilate} == {1} and params.num_group == 1
              and graph.dtype(node.inputs[0]) == "float32")
    costs = options.prefers.winograd
    if options.strict or not formed or costs is None:
        return False
    filters, pixels, tiles = out[1], n * prod(out[2:]), n * prod(winograd.grid(out))
    direct = 9 * channels * filters * (pixels + costs.weight)
    products = winograd.PLACES * channels * filters * (tiles + costs.weight)
    cost = products + costs.transform * tiles * (channels + filters)
    return direct > costs.gain * cost


class Winograd:
    """Makes the operators of such convolutions in a new graph. tile: the register tile of the target."""

    def __init__(self, builder: GraphBuilder, tile: tuple[int, int]):
        self.builder, (self.tiles, self.columns) = builder, tile
        self.factors: Entry | None = None

    def convolution(self, node: Node, data: Entry, weight: Entry, shape: tuple[int, ...]) -> Entry:
        """The convolution `node` of `data`, which lie in blocks, as the array `shape`, which does too.

        weight: plain.
        """
        return self.builder.make("_mxc_winograd_convolution", data, self.packed(node, weight), name=node.name,
                                 pad=tuple(node.params.pad), shape=shape, tiles=self.tiles)

    def packed(self, node: Node, weight: Entry) -> Entry:
        """G g G' of each kernel g, packed for each of the 36 places."""
        builder, (filters, channels) = self.builder, self.builder.shape(weight)[:2]
        if self.factors is None:
            self.factors = builder.make("_mxc_winograd_factors")
        taps = as_shape(builder, weight, (filters * channels, winograd.TAPS))
        made = builder.make("dot", self.factors, taps, transpose_b=True)
        rows = as_shape(builder, made, (winograd.PLACES, filters, channels))
        return builder.make("_mxc_pack_rows", rows, block=self.columns, name=f"{node.name}_packed")
