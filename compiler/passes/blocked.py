"""Regions of a network over arrays whose channels lie in blocks.

A plain array (N, C, *space) becomes (N, C / B, *space, B), with as many channels B side by side as the target's vectors
have lanes. A convolution with a weight that changes rarely starts such a region, but not always where it would be the
whole region (`alone`). The operators behind it stay in blocks where they can: elementwise operators, pooling, joins of
channels, reductions over all of space. Where a region ends the array is rearranged (a reshape and a transpose, which
fuse with what reads them).
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_dtype, as_shape, geometry
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import static_nodes
from mxc.compiler.graph.quads import blocked_by_quads
from mxc.compiler.graph.tiles import tiled
from mxc.compiler.kernel.call_rule import window_of
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.kernel.plain import filter_block, fits_panels, fits_planes, plane_waste
from mxc.compiler.ops.operator import Kind
from mxc.compiler.ops.shapes import reduced_axes
from mxc.compiler.passes.registry import graph_pass
from mxc.compiler.passes.slices import by_slices
from mxc.compiler.passes.winograd import blocked_convolution, keeps_transformed, pays, transformed_weight

WHOLE = ("int8", "uint8", "int32")  # the dtypes of whole numbers that lie in blocks
POOLINGS = ("Pooling", "_mxc_int8_pooling")
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


class _Regions:
    """The new graph being made. in_blocks: the blocked form of old entries that have one. figures: the target's figures
    about blocks; None where the target wants nothing in blocks. current: the old node that is at its turn."""

    def __init__(self, graph: Graph, options: Options):
        self.graph, self.options, self.figures = graph, options, options.prefers.blocks
        self.builder = GraphBuilder(graph)
        self.static = static_nodes(graph, options.static)
        self.wanted = _wanted(graph, self.static)
        self.in_blocks: dict[Entry, Entry] = {}
        self.current: Node | None = None

    def lanes(self, entry: Entry) -> int:
        """Channels of a block for arrays like `entry`; 0 where it cannot lie in blocks."""
        shape, dtype = self.graph.shape(entry), self.graph.dtype(entry)
        fits = self.figures is not None and ("float" in dtype or dtype in WHOLE)
        lanes = self.options.target.lanes(dtype) if fits else 0
        fits = lanes > 1 and 3 <= len(shape) <= 5 and shape[1] % lanes == 0 and 0 not in shape
        return lanes if fits else 0

    def plain(self, old: Entry) -> Entry:
        """The new entry that stands for `old` as a plain array, in the shape that `old` has."""
        builder = self.builder
        if old not in builder.map:
            builder.at(old.node)
            builder.map[old] = self.unblocked(self.in_blocks[old], self.graph.shape(old))
            if self.current is not None:
                builder.at(self.current)
        return builder.map[old]

    def unblocked(self, blocked: Entry, shape: Shape) -> Entry:
        """A blocked entry as the plain one of `shape`."""
        rank = len(shape)
        order = (0, 1, rank, *range(2, rank))
        return as_shape(self.builder, self.builder.make("transpose", blocked, axes=order), shape)

    def blocked(self, old: Entry) -> Entry:
        """The new entry of `old` in blocks, which `lanes` allows."""
        if old not in self.in_blocks:
            self.in_blocks[old] = self.rearranged(self.plain(old), self.lanes(old))
        return self.in_blocks[old]

    def rearranged(self, entry: Entry, lanes: int) -> Entry:
        """A new entry (N, C, *space) in blocks."""
        builder = self.builder
        n, channels, *space = builder.shape(entry)
        if prod(space) == 1:
            return as_shape(builder, entry, (n, channels // lanes, *space, lanes))
        split = as_shape(builder, entry, (n, channels // lanes, lanes, *space))
        return builder.make("transpose", split, axes=(0, 1, *range(3, 3 + len(space)), 2))

    def node(self, node: Node) -> None:
        """Adds `node`, in blocks where it can be."""
        self.current = node
        self.builder.at(node)
        if self.fully_connected(node):
            return
        blocked = None
        if node.op is not None and node.num_outputs == 1 and self.lanes(Entry(node)):
            blocked = STARTS.get(node.op.name, _Regions.follower)(self, node)
        if blocked is not None:
            self.in_blocks[Entry(node)] = blocked
        elif not self.filled_up(node) and not self.reduced(node):
            for entry in node.inputs:
                self.plain(entry)
            self.builder.copy(node)

    def convolution(self, node: Node) -> Entry | None:
        """A convolution without bias; the data stay plain where their channels do not fill blocks."""
        data, weight = node.inputs
        lanes, groups, filters = self.lanes(Entry(node)), node.params.num_group, node.params.num_filter
        channels = self.graph.shape(data)[1]
        if weight.node not in self.static:
            return None
        if groups == filters == channels:
            if self.alone(node) and self.large(node):
                return None
            return self.builder.make("_mxc_blocked_depthwise", self.blocked(data), self.by_channel(node, lanes),
                                     name=node.name, **geometry(node))
        if (filters // groups) % lanes:
            return None
        fills = self.lanes(data) > 0 and (channels // groups) % lanes == 0
        if (not fills and groups > 1) or (self.alone(node) and self.quick(node, fills)):
            return None
        return self.into_blocks(node, lanes, filters) if fills else self.direct(node, lanes, 1, filters)

    def int8_convolution(self, node: Node) -> Entry | None:
        """A convolution of numbers of 8 bits; the data stay plain where their channels do not fill blocks, which are of
        whole words."""
        (data, weight), params = node.inputs, node.params
        lanes, groups, channels = self.lanes(Entry(node)), params.num_group, self.graph.shape(data)[1]
        fills = self.lanes(data) > 0 and lanes % 4 == 0 and channels // groups % lanes == 0
        if (weight.node not in self.static or params.num_filter // groups % lanes or (not fills and groups > 1)
                or (self.alone(node) and prod(params.kernel) == 1)):
            return None
        source, weights = self.blocked(data) if fills else self.plain(data), self.plain(weight)
        made = tiled(self.builder, node, source, weights, self.options, params.num_filter)
        return made or blocked_by_quads(self.builder, node, source, weights, self.options)

    def alone(self, node: Node) -> bool:
        """Whether a convolution has no neighbour in blocks: its data would be rearranged for it alone, and its result
        rearranged back."""
        return node.inputs[0] not in self.in_blocks and node not in self.wanted

    def quick(self, node: Node, fills: bool) -> bool:
        """Whether a convolution is as fast in plain arrays. That is so where their kernels fit and waste little, unless
        Winograd's way is faster in blocks; fills: whether the channels fill these."""
        data, prefers = node.inputs[0], self.options.prefers
        dtype, shape = self.graph.dtype(data), self.graph.shape(data)
        window = window_of(node.params, shape, self.graph.shape(Entry(node)), node.params.num_group)
        if prod(node.params.kernel) == 1 and fits_panels(window, dtype, prefers.panels):
            return True
        if by_slices(self.options, dtype, node.params, shape, self.graph.shape(Entry(node))):
            return True
        if fills and pays(self.graph, node, self.options):
            return False
        assert self.figures is not None
        lanes = self.options.target.lanes(dtype)
        return filter_block(window, dtype, prefers.filters, lanes) > 0 or (
            fits_planes(window, dtype, prefers.planes) and plane_waste(window, lanes) <= self.figures.waste)

    def large(self, node: Node) -> bool:
        """Whether a depthwise convolution has so large maps, or so much data, that plain arrays are faster."""
        assert self.figures is not None
        pixels = prod(self.graph.shape(Entry(node))[2:])
        elements = prod(self.graph.shape(node.inputs[0]))
        return pixels > self.figures.map_pixels or elements >= self.figures.data_elements

    def into_blocks(self, node: Node, lanes: int, filters: int) -> Entry:
        """The convolution of data in blocks into blocks, of `filters` filters; see `direct`."""
        if not pays(self.graph, node, self.options):
            return self.direct(node, lanes, lanes, filters)
        n, _, *space = self.graph.shape(Entry(node))
        shape, transforms = (n, filters // lanes, *space, lanes), not keeps_transformed(self.graph, node, self.options)
        if transforms:
            weight = self.packed(node, lanes)
        else:
            weight = transformed_weight(self.builder, node.name, self.options, self.weight(node))
        data = self.blocked(node.inputs[0])
        return blocked_convolution(self.builder, node, self.options, data, weight, shape, transforms)

    def direct(self, node: Node, lanes: int, block: int, filters: int) -> Entry:
        """The convolution with `filters` filters, whose result lies in blocks of `lanes` channels.

        filters: may be more than the node has; the others are zero. block: channels in a block of the data; 1: the data
        are plain.
        """
        data = node.inputs[0]
        source_of = self.blocked if block > 1 else self.plain
        if self.graph.dtype(data) == "bfloat16":
            made = tiled(self.builder, node, source_of(data), self.plain(node.inputs[1]), self.options, filters)
            if made is not None:
                return made
        packed = self.packed(node, block)
        source, columns = source_of(data), self.builder.shape(packed)[-1]
        paired = block > 1 and self.options.prefers.pairs is not None and self.graph.dtype(data) == "bfloat16"
        if paired:
            packed = self.in_pairs(packed)
        return self.builder.make("_mxc_blocked_convolution", source, packed, name=node.name, num_filter=filters,
                                 num_group=node.params.num_group, block=lanes, columns=columns, paired=paired,
                                 **geometry(node))

    def in_pairs(self, packed: Entry) -> Entry:
        """A packed weight, (groups, panels, depth, columns), with both elements of a pair of the depth side by side."""
        groups, panels, depth, columns = self.builder.shape(packed)
        pairs = as_shape(self.builder, packed, (groups, panels, depth // 2, 2, columns))
        made = self.builder.make("transpose", pairs, axes=(0, 1, 2, 4, 3))
        return as_dtype(self.builder, made, "bfloat16")

    def is_product(self, node: Node) -> bool:
        """Whether `node` is a convolution of one pixel and one tap, for several images: a product of matrices.

        For one image each weight is read once, and blocks are as fast as a product.
        """
        if node.op is None or node.op.name != "Convolution" or node.params.num_group > 1:
            return False
        data, weight = node.inputs
        shape, (_, _, *taps) = self.graph.shape(data), self.graph.shape(weight)
        return (shape[0] > 1 and prod(shape[2:]) == 1 == prod(taps) and not any(node.params.pad)
                and weight.node in self.static)

    def fully_connected(self, node: Node) -> bool:
        """Adds `node` as a fully connected layer if it is a product (`is_product`); returns whether it did."""
        if not self.is_product(node):
            return False
        data, weight = (self.plain(e) for e in node.inputs)
        rows, columns = (as_shape(self.builder, e, self.builder.shape(e)[:2]) for e in (data, weight))
        made = self.builder.make("FullyConnected", rows, columns, name=node.name, num_hidden=node.params.num_filter,
                                 no_bias=True)
        self.builder.map[Entry(node)] = as_shape(self.builder, made, self.graph.shape(Entry(node)))
        return True

    def filled_up(self, node: Node) -> bool:
        """Adds a convolution whose filters do not fill blocks, if that pays; returns whether it did. The new one has
        more filters, and a slice takes their channels off its plain result."""
        if node.op is None or node.op.name != "Convolution":
            return False
        data, weight = node.inputs
        lanes, filters = self.lanes(data), node.params.num_filter
        if data not in self.in_blocks or weight.node not in self.static or node.params.num_group > 1:
            return False
        whole = -(-filters // lanes) * lanes
        if self.figures is None or filters < self.figures.full * whole:
            return False
        n, _, *space = self.graph.shape(Entry(node))
        made = self.unblocked(self.into_blocks(node, lanes, whole), (n, whole, *space))
        self.builder.map[Entry(node)] = self.builder.make("slice_axis", made, axis=1, begin=0, end=filters)
        return True

    def by_channel(self, node: Node, lanes: int) -> Entry:
        """The weight of a depthwise convolution as its kernel reads it: (channel block, kernel, channel)."""
        builder, taps, filters = self.builder, prod(node.params.kernel), node.params.num_filter
        parts = as_shape(builder, self.weight(node), (filters // lanes, lanes, taps))
        return builder.make("transpose", parts, axes=(0, 2, 1))

    def weight(self, node: Node) -> Entry:
        """The weight in the dtype that products are computed in."""
        weight = self.plain(node.inputs[1])
        return as_dtype(self.builder, weight, computing_dtype(self.builder.dtype(weight)))

    def packed(self, node: Node, block: int) -> Entry:
        """The weight as kernels of data with `block` channels in a block read it: rows of (channel block, kernel,
        channel in the block), packed."""
        builder, weight, data = self.builder, self.weight(node), node.inputs[0]
        channels = self.graph.shape(data)[1] // node.params.num_group
        columns = self.options.target.tile(self.graph.dtype(data))[1]
        groups, filters, taps = node.params.num_group, node.params.num_filter, prod(node.params.kernel)
        if block > 1 and taps > 1:
            parts = as_shape(builder, weight, (filters, channels // block, block, taps))
            weight = builder.make("transpose", parts, axes=(0, 1, 3, 2))
        rows = as_shape(builder, weight, (groups, filters // groups, channels * taps))
        return builder.make("_mxc_pack_rows", rows, block=columns, name=f"{node.name}_packed")

    def follower(self, node: Node) -> Entry | None:
        """The result of `node` in blocks, where it reads blocks and its operator can work on them; else None."""
        assert node.op is not None
        if not any(e in self.in_blocks for e in node.inputs):
            return None
        if node.op.kind <= Kind.BROADCAST:
            return self.elementwise(node)
        if node.op.name in POOLINGS:
            return self.pooling(node)
        if node.op.name == "Concat" and node.params.dim == 1 and all(map(self.lanes, node.inputs)):
            parts = map(self.blocked, node.inputs)
            return self.builder.make("Concat", *parts, name=node.name, num_args=len(node.inputs), dim=1)
        return None

    def elementwise(self, node: Node) -> Entry | None:
        """A formula over the inputs' values at one place."""
        assert node.op is not None
        shape = self.graph.shape(Entry(node))
        if node.op.expression(node.params) is None or "shape" in node.params:
            return None
        lanes = self.lanes(Entry(node))
        if any(self.graph.shape(e) == shape and self.lanes(e) != lanes for e in node.inputs):
            return None  # an input has another dtype, and its vectors and blocks have another length
        inputs = [self.operand(e, shape, lanes) for e in node.inputs]
        made = Node(node.op, node.name, node.attrs, node.params, inputs)
        return self.builder.add(made)[0]

    def operand(self, old: Entry, shape: Shape, lanes: int) -> Entry:
        """An input of an elementwise operator with the result `shape`: the same, or one that is broadcast to it."""
        if self.graph.shape(old) == shape:
            return self.blocked(old)
        entry = self.plain(old)
        given = self.builder.shape(entry)
        if prod(given) == 1:
            return entry
        full = (1,) * (len(shape) - len(given)) + given
        if full[1] == 1:
            return as_shape(self.builder, entry, (*full, 1))
        return self.rearranged(as_shape(self.builder, entry, full), lanes)

    def pooling(self, node: Node) -> Entry | None:
        """Windows over space: the blocks of all images are images with the channels last."""
        assert node.op is not None
        builder, data = self.builder, node.inputs[0]
        if node.params.layout not in (None, "NCW", "NCHW", "NCDHW"):
            return None
        n, blocks, *space, lanes = builder.shape(self.blocked(data))
        images = as_shape(builder, self.blocked(data), (n * blocks, *space, lanes))
        params = {**node.params, "layout": CHANNELS_LAST[len(space)]}
        pooled = builder.make(node.op.name, images, name=node.name, **params)
        return as_shape(builder, pooled, (n, blocks, *builder.shape(pooled)[1:]))

    def reduced(self, node: Node) -> bool:
        """Adds a reduction of a blocked array over all of space, if `node` is one; returns whether it did. The result
        is plain: a reshape alone makes it so."""
        if node.op is None or node.op.kind != Kind.REDUCTION or node.op.reduce is None or len(node.inputs) != 1:
            return False
        (data,) = node.inputs
        rank = len(self.graph.shape(data))
        space = tuple(range(2, rank))
        if data not in self.in_blocks or isinstance(node.params["axis"], int):
            return False
        if reduced_axes(node.params, rank) != space:
            return False
        params = {**node.params, "axis": space, "exclude": False}
        params = {name: value for name, value in params.items() if name in node.params}
        made = self.builder.make(node.op.name, self.in_blocks[data], name=node.name, **params)
        self.builder.map[Entry(node)] = as_shape(self.builder, made, self.graph.shape(Entry(node)))
        return True


def _wanted(graph: Graph, static: set[Node]) -> set[Node]:
    """The nodes whose results are read, directly or through elementwise operators, by a node that gains by blocks: a
    convolution with a static weight, a pooling or a join."""
    wanted: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.op is None:
            continue
        if node.op.name in STARTS and node.inputs[1].node in static:
            wanted.add(node.inputs[0].node)
        elif node.op.name in (*POOLINGS, "Concat") or (node.op.kind <= Kind.BROADCAST and node in wanted):
            wanted.update(e.node for e in node.inputs)
    return wanted


STARTS = {"Convolution": _Regions.convolution, "_mxc_int8_convolution": _Regions.int8_convolution}


@graph_pass(needs=("shape", "dtype", "primitive"))
def blocked(graph: Graph, options: Options) -> Graph:
    """Lays convolutions with static weights, and what lies between them, out in blocks of channels.

    Where Winograd's algorithm is faster, a convolution becomes one of that kind.
    """
    regions = _Regions(graph, options)
    for node in graph.nodes:
        regions.node(node)
    return regions.builder.finish([regions.plain(e) for e in graph.outputs], graph.sinks)
