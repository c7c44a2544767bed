"""Which convolutions are computed by Winograd's F(4x4, 3x3), and the operators that they become.

It takes 4 multiplications in place of 9 for each result and filter at best, and pays for it with the tiles that images
are cut into, with the transformations of data and results, and with weights four times as large.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.ops import winograd
from mxc.compiler.passes.program import Storage

# Costs in multiply-adds of the kernels, measured on AVX2 (only their relations matter):
TRANSFORM = 500  # a channel of a tile of the data, or a filter of one of the results
WEIGHT = 8  # reading a weight
GAIN = 1.2  # of less than this the memory is not worth it
BANDS = 8  # of tiles, each with its own data, are enough units of work
LINE = 16  # elements, of 64 bytes that come from memory together


def pays(graph: Graph, node: Node, options: Options) -> bool:
    """Whether the convolution `node` of blocked data has the right form, and is faster this way."""
    (n, channels, *_), out, params = graph.shape(node.inputs[0]), graph.shape(Entry(node)), node.params
    formed = (tuple(params.kernel) == (3, 3) and {*params.stride, *params.dilate} == {1} and params.num_group == 1
              and graph.dtype(node.inputs[0]) == "float32")
    if options.strict or not formed:
        return False
    filters, pixels, tiles = out[1], n * prod(out[2:]), n * prod(winograd.grid(out))
    direct = 9 * channels * filters * (pixels + WEIGHT)
    cost = winograd.PLACES * channels * filters * (tiles + WEIGHT) + TRANSFORM * tiles * (channels + filters)
    return direct > GAIN * cost


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


def split_winograd(kernel: CallKernel, storages: Sequence[Storage]) -> list[tuple[CallKernel, list[Storage]]]:
    """The kernel itself with its storages; of few tiles, one for the data's side and one for the rest.

    Then threads share the tiles among them by their filters, and would each transform all of the data.
    """
    w, params = Window.of(kernel.extents), dict(kernel.params)
    if kernel.template != "winograd_convolution" or not _few_tiles(w):
        return [(kernel, list(storages))]
    tiles, block = int(params["tiles"]), int(params["block"])  # type: ignore[call-overload]
    lines = -(-calls.winograd_groups(w, tiles) * tiles * w.channels // LINE)
    pitch = (lines + 1 - lines % 2) * LINE  # an odd number of lines, or all places would meet in a few sets of a cache
    side = calls.winograd_data(kernel.name, kernel.buffers[0], w, kernel.extents[22:27], block, tiles, pitch)
    made = Storage("arena", kernel.buffers[0], (winograd.PLACES * pitch,), kernel.name)
    rest, data = _apart(replace(kernel, extents=(*kernel.extents[:-1], pitch)))
    return [(side, [storages[0], made]), (rest, [made, *storages[1:], *storages[:data]])]


def _apart(kernel: CallKernel) -> tuple[CallKernel, int]:
    """The kernel with an epilogue that reads the data, if it does, in one more buffer, as the operand becomes another;
    and how many buffers there are more."""
    values = [s.value for s in kernel.stores]
    found = [v for v in ir.walk(values) if v.op == "load" and v.data == 0]
    if not found:
        return kernel, 0
    new = calls.replaced(values, {id(v): ir.make("load", v.args, v.dtype, len(kernel.buffers)) for v in found})
    stores = tuple(replace(s, value=v) for s, v in zip(kernel.stores, new, strict=True))
    return replace(kernel, buffers=(*kernel.buffers, kernel.buffers[0]), stores=stores), 1


def _few_tiles(w: Window) -> bool:
    least, most = calls.WINOGRAD_BAND
    band = min(most, max(least, w.channels * w.filters // calls.WINOGRAD_KERNELS))
    return w.batch * prod(winograd.grid(w.out)) < BANDS * band
