"""The gradient of Winograd's convolution to its weight, of both sides' transformed tiles.

A unit of work is a few blocks of channels and a group of filters (`vectors` blocks):

    for each of the 36 places:
        for each part of the tiles, each few channels of the unit:
            sums (+)= data x gradient of the results, over the part's tiles    `rows` x `vectors` accumulators
    for each channel and block of filters: G' M G, and the epilogue over squares of the weight, transposed

The sums of a channel lie together, as [channel][place][filter].
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import WinogradWeightGrad
from mxc.compiler.ops.winograd import TAPS
from mxc.compiler.targets.cpu.emit.builder import Array, Value
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most, odd
from mxc.compiler.targets.cpu.library.epilogue import Axis
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, NoAlias, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.tile import keep_sums, print_tiles, zeros
from mxc.compiler.targets.cpu.library.winograd_tiles import PLACES, READ, both_sides, kernel_side, tile_count
from mxc.compiler.targets.cpu.machine.isa import Isa

CHUNK = 4  # a unit has at most so many blocks of channels: their sums fill a few hundred KB
PART = 128  # so many tiles are summed up at once: what is read of a group of filters then fits into the nearest cache


def tile_rows(isa: Isa) -> int:
    """Channels of a register tile: the largest power of two that it has room for divides a block."""
    return min(isa.lanes("float32"), 1 << (isa.rows.bit_length() - 1))


@dataclass(frozen=True)
class WeightGradCut(Generic[N]):
    """How the work is cut."""

    tiles: N
    blocks: N  # of channels
    filters: N  # blocks of filters
    groups: N  # of filters
    chunk: N  # blocks of channels of a unit
    chunks: N

    @classmethod
    def of(cls, g: WinogradWeightGrad[N], isa: Isa) -> WeightGradCut[N]:
        w = g.window
        blocks: N = w.channels // g.block
        filters: N = w.filters // g.block
        groups: N = ceil_div(filters, isa.vectors)
        chunks: N = most(ceil_div(blocks, CHUNK), least(blocks, ceil_div(UNITS, most(1, groups))))
        chunk, chunks = evenly(blocks, most(1, chunks))
        return cls(tile_count(w), blocks, filters, groups, chunk, chunks)


def units(g: WinogradWeightGrad[int], isa: Isa) -> int:
    cut = WeightGradCut.of(g, isa)
    return cut.groups * cut.chunks


def scratch_elements(g: WinogradWeightGrad[int], isa: Isa) -> int:
    return (WeightGradCut.of(g, isa).chunk * PLACES * isa.vectors + TAPS + 1) * g.block * g.block


@dataclass(frozen=True)
class TileCall(Parameters):
    """Sums over `tiles` tiles of a few channels times a group of filters. step: elements between its blocks. sums: of
    the first channel; they are added to what is there if `add`."""

    tiles: Integer
    data: Pointer
    grad: Pointer
    step: Integer
    sums: NoAlias
    add: Integer


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, isa = p.b, p.isa

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, rows, vectors, TileCall(*values))

    def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
        return lambda _, vectors: values[-1].equals(vectors)

    shapes = [(tile_rows(isa), vectors) for vectors in range(1, isa.vectors + 1)]
    print_tiles(b, shapes, TileCall.text(), tile, f"{TileCall.text()}, i64 vectors", fits_of, ("tile", "multiply"))
    with b.function("finish", "ptr args, ptr noalias sums, ptr noalias made, i64 channel, i64 filter", True) as f:
        args, sums, made, *place = f
        _WeightGrad(p, args).finish(p.array(sums), p.array(made), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _WeightGrad(p, args).units(args, first, last, scratch)


def _print_tile(p: Printing, rows: int, vectors: int, given: TileCall) -> None:
    """sums[channel][filter] = (add ? that : 0) + sum over tiles of data[tile][channel] * grad[tile][filter]."""
    b, lanes = p.b, p.isa.lanes(p.dtype)
    data, sums = p.array(given.data), p.array(given.sums)
    grads = [p.array(given.grad).at(given.step * j) for j in range(vectors)]
    totals = zeros(b, p.dtype, lanes, rows * vectors)
    for t in b.range(0, given.tiles, carry=totals):
        row, columns = data.at(t * lanes), [grad.vector(t * lanes, lanes) for grad in grads]
        for i in range(rows):
            x = row.broadcast(i, lanes)
            for j, column in enumerate(columns):
                totals[i * vectors + j] = b.fma(x, column, totals[i * vectors + j])
    step = PLACES * p.isa.vectors * lanes
    keep_sums(totals, [(sums, i * step + j * lanes) for i in range(rows) for j in range(vectors)], given.add)


class _WeightGrad(Function):
    """One function of a kernel being printed."""

    g: WinogradWeightGrad[Value]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, cut, lanes, most_vectors = self.b, WeightGradCut.of(self.g, self.isa), self.lanes, self.isa.vectors
        sums = self.array(scratch)
        made = sums.at(cut.chunk * (lanes * PLACES * most_vectors * lanes))
        for unit in b.range(first, last):
            group, chunk = split(unit, (cut.groups, cut.chunks))
            filter0, block0 = group * most_vectors, chunk * cut.chunk
            vectors = b.minimum(most_vectors, cut.filters - filter0)
            blocks = b.minimum(cut.chunk, cut.blocks - block0)
            self._multiply(cut, sums, (block0, blocks), (filter0, vectors))
            for block in b.range(0, blocks):
                for j in b.range(0, vectors):
                    here = sums.at((block * (lanes * PLACES * most_vectors) + j) * lanes)
                    b.call("finish", [args, here.pointer, made.pointer, (block0 + block) * lanes,
                                      (filter0 + j) * lanes])

    def _multiply(self, cut: WeightGradCut[Value], sums: Array, channels: tuple[Value, Value],
                  filters: tuple[Value, Value]) -> None:
        """The sums of some blocks (the first one, and how many) of channels and of filters, at all places."""
        b, lanes, rows, (data, grad) = self.b, self.lanes, tile_rows(self.isa), self.epilogue.buffers[:2]
        plane, columns = odd(cut.tiles) * lanes, self.isa.vectors * lanes
        for place in b.range(0, PLACES):
            for t in b.range(0, cut.tiles, PART):
                right = grad.at((place * cut.filters + filters[0]) * plane + t * lanes)
                for i in b.range(0, channels[1] * lanes, rows):
                    block, row = channels[0] + i // lanes, i % lanes
                    left = data.at((place * cut.blocks + block) * plane + t * lanes + row)
                    here = sums.at((i * PLACES + place) * columns)
                    part = b.minimum(PART, cut.tiles - t)
                    given = TileCall(part, left.pointer, right.pointer, plane, here.pointer, t)
                    b.call("multiply", [*given.values(), filters[1]])

    def finish(self, sums: Array, made: Array, channel: Value, filter0: Value) -> None:
        """G' M G and the epilogue for a block of channels and a block of filters."""
        b, w, lanes, columns = self.b, self.g.window, self.lanes, self.isa.vectors * self.lanes
        scale = b.number(1 / 576, self.zero.type)
        for c in b.range(0, lanes):
            here = sums.at(c * (PLACES * columns))
            products = [[here.vector((r * READ + k) * columns, lanes) for r in range(READ)] for k in range(READ)]
            for tap, value in enumerate(both_sides(b, kernel_side, products)):
                made.put((c * TAPS + tap) * lanes, value * scale)
        whole, everything = b.number(1, "i1"), b.first_lanes(b.lift(lanes), lanes)
        for x in b.range(0, TAPS * lanes, lanes):
            axes = inner_axes(b, self.g.flat, channel * TAPS + x, [w.channels, *w.kernel], lanes)
            rows = [made.vector((x + i) * lanes, lanes) for i in range(lanes)]

            def places(u: Value, axes: list[Axis] = axes) -> list[Axis]:
                return [filter0 + u, *axes]

            self.store_square(made.at(TAPS * lanes * lanes), rows, b.lift(lanes), whole, everything, places)
