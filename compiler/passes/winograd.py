"""Which convolutions are computed by Winograd's F(4x4, 3x3), and the operators that they become.

For each result, channel and filter it multiplies 36 / 16 = 2.25 times in place of 9 times at best. In return it cuts
images into tiles, which may not fit, transforms data and results, and reads weights four times as large.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import winograd
from mxc.compiler.ops.operator import Params


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
        if self.factors is None:
            self.factors = self.builder.make("_mxc_winograd_factors")
        return _packed(self.builder, node, weight, self.factors, self.columns)


def _packed(builder: GraphBuilder, node: Node, weight: Entry, factors: Entry, columns: int, turned: bool = False) -> Entry:
    """What the factors make of each kernel, packed for each of the 36 places as rows of filters, or, `turned`, of
    channels."""
    filters, channels = builder.shape(weight)[:2]
    taps = as_shape(builder, weight, (filters * channels, winograd.TAPS))
    made = builder.make("dot", factors, taps, transpose_b=True)
    rows = as_shape(builder, made, (winograd.PLACES, filters, channels))
    if turned:
        rows = builder.make("transpose", rows, axes=(0, 2, 1))
    return builder.make("_mxc_pack_rows", rows, block=columns, name=f"{node.name}_packed")


# --- over plain arrays, in training


def pays_in_training(options: Options, dtype: str, params: Params, data: Shape, out: Shape) -> bool:
    """Whether a convolution of plain `data` to `out`, or a gradient of it, has the right form, and is faster this way
    on the target. The direct kernels spend no time on what taps read outside of small maps."""
    costs, lanes = options.prefers.training_winograd, options.target.lanes(dtype) if dtype == "float32" else 0
    if options.strict or costs is None or lanes < 2 or tuple(params.kernel) != (3, 3) or max(params.pad) > 2:
        return False
    if {*params.stride, *params.dilate} != {1} or params.num_group > 1 or data[1] % lanes or out[1] % lanes:
        return False
    n, channels, filters, tiles = out[0], data[1], out[1], out[0] * prod(winograd.grid(out))
    read = prod(sum(max(0, min(o, d + p - k) - max(0, p - k)) for k in range(3))
                for o, d, p in zip(out[2:], data[2:], params.pad, strict=True))
    cost = (winograd.PLACES * tiles + costs.weight) * channels * filters + costs.transform * tiles * (channels + filters)
    nbytes = winograd.PLACES * tiles * max(channels, filters) * 4
    return n * read * channels * filters > costs.gain * cost and nbytes <= costs.most_bytes


def _side(builder: GraphBuilder, options: Options, data: Entry, pad: Shape, out: Shape, of_results: bool = False) -> Entry:
    """The transformed tiles of an array, of results with the spatial extents `out`."""
    return builder.make("_mxc_winograd_side", data, pad=pad, out=out, block=options.target.lanes("float32"),
                        of_results=of_results)


def plain_convolution(builder: GraphBuilder, node: Node, options: Options, shape: Shape) -> Entry:
    """The convolution `node`, whose result has `shape`."""
    data, weight = (builder.map[e] for e in node.inputs)
    packed = _packed(builder, node, weight, builder.make("_mxc_winograd_factors"), options.target.tile("float32")[1])
    side = _side(builder, options, data, node.params.pad, shape[2:])
    return builder.make("_mxc_plain_winograd", side, packed, name=node.name, shape=shape)


def plain_data_grad(builder: GraphBuilder, node: Node, options: Options) -> Entry:
    """The gradient `node` of a convolution to its data: a convolution with the turned kernels of each channel."""
    out_grad, weight = (builder.map[e] for e in node.inputs)
    factors, shape = builder.make("_mxc_winograd_factors", turned=True), node.params.shape
    packed = _packed(builder, node, weight, factors, options.target.tile("float32")[1], turned=True)
    side = _side(builder, options, out_grad, tuple(2 - p for p in node.params.pad), shape[2:])
    return builder.make("_mxc_plain_winograd", side, packed, name=node.name, shape=shape)


def plain_weight_grad(builder: GraphBuilder, node: Node, options: Options) -> Entry:
    """The gradient `node` of a convolution to its weight."""
    data, out_grad = (builder.map[e] for e in node.inputs)
    shape = builder.shape(out_grad)
    sides = (_side(builder, options, data, node.params.pad, shape[2:]),
             _side(builder, options, out_grad, (0, 0), shape[2:], of_results=True))
    return builder.make("_mxc_winograd_weight_grad", *sides, name=node.name, shape=shape)
