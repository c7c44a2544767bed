"""One side of Winograd's way over plain arrays: what becomes of the tiles of the data, or of the results' gradient.

A unit of work is a band of rows of tiles, of one image and one block of channels:

    copy what the band reads of the channels, transposed         [row][column][channel], zeros at the border
    for each tile: B' d B, or A y A'                             a vector of channels for each of the 36 places
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import WinogradSide
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Value
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import N, ceil_div, evenly, most, odd
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.winograd_tiles import READ, RESULTS, both_sides, data_side, grid, spread_side
from mxc.compiler.targets.cpu.machine.isa import Isa

COPY_BYTES = 128 << 10  # the copy of a band has at most so many bytes, unless that of one row of tiles has more


@dataclass(frozen=True)
class SideCut(Generic[N]):
    """How the work is cut."""

    border: int  # columns and rows that a tile reads beyond its results
    columns: N  # tiles of a row
    rows: N  # rows of tiles
    pitch: N  # pixels of a row of the copy
    height: N  # rows of tiles of a band
    bands: N
    blocks: N

    @classmethod
    def of(cls, g: WinogradSide[N]) -> SideCut[N]:
        _, rows, columns = grid(g.window)
        border = 0 if g.of_results else READ - RESULTS
        pitch: N = columns * RESULTS + border
        most_rows: N = most(1, COPY_BYTES // BYTES[g.dtype] // g.block // RESULTS // most(1, pitch))
        height, bands = evenly(rows, ceil_div(rows, most_rows))
        channels = g.window.filters if g.of_results else g.window.channels
        return cls(border, columns, rows, pitch, height, bands, channels // g.block)

    def copied(self, height: N) -> N:
        """Pixels of the copy of so many rows of tiles."""
        return (height * RESULTS + self.border) * self.pitch


def units(g: WinogradSide[int], isa: Isa) -> int:
    cut = SideCut.of(g)
    return g.window.batch * cut.blocks * cut.bands


def scratch_elements(g: WinogradSide[int], isa: Isa) -> int:
    cut = SideCut.of(g)
    return (cut.copied(cut.height) + g.block) * g.block  # copying writes whole squares


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b = p.b
    with b.function("copy", "ptr args, ptr noalias copy, i64 image, i64 block, i64 row, i64 height", True) as f:
        args, copy, *place = f
        _Side(p, args).copy(p.array(copy), *place)
    with b.function("transform", "ptr args, ptr noalias copy, i64 pitch, i64 block, i64 tile", True) as f:
        args, copy, *place = f
        _Side(p, args).transform(p.array(copy), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Side(p, args).units(args, first, last, scratch)


class _Side(Function):
    """One function of a kernel being printed."""

    g: WinogradSide[Value]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, copy = self.b, self.g.window, SideCut.of(self.g), self.array(scratch)
        for unit in b.range(first, last):
            image, block, band = split(unit, (w.batch, cut.blocks, cut.bands))
            row = band * cut.height
            height = b.minimum(cut.height, cut.rows - row)
            b.call("copy", [args, scratch, image, block, row, height])
            for i in b.range(0, height):
                for x in b.range(0, cut.columns):
                    place = copy.at((i * cut.pitch + x) * (RESULTS * self.lanes))
                    tile = (image * cut.rows + row + i) * cut.columns + x
                    b.call("transform", [args, place.pointer, cut.pitch, block, tile])
            tiles = w.batch * cut.rows * cut.columns
            with b.when((image + 1).equals(w.batch) & (row + height).equals(cut.rows) & (odd(tiles) > tiles)):
                b.call("copy", [args, scratch, image, block, cut.rows + 1, b.lift(1)])  # there is nothing
                b.call("transform", [args, scratch, cut.pitch, block, tiles])

    def copy(self, copy: Array, image: Value, block: Value, row: Value, height: Value) -> None:
        """What `height` rows of tiles from `row` on read of a block of channels; squares of zeros write its border."""
        b, w, g, cut, lanes = self.b, self.g.window, self.g, SideCut.of(self.g), self.lanes
        pad, (_, high, wide) = ((0, 0), w.out) if g.of_results else (w.pad[1:], w.data)
        for i in b.range(0, cut.copied(height) * lanes, lanes):
            copy.put(i, self.zero)
        source = self.epilogue.buffers[0].at(image * g.strides[0] + block * lanes * g.strides[1])
        for i in b.range(0, height * RESULTS + cut.border):
            y = row * RESULTS + i - pad[0]
            line, target = source.at(y * g.strides[3]), copy.at((i * cut.pitch + pad[1]) * lanes)
            for x in b.range(0, b.select(b.inside(y, high), b.minimum(wide, cut.pitch - pad[1]), b.lift(0)), lanes):
                mask = b.first_lanes(wide - x, lanes)
                square = [line.vector(c * g.strides[1] + x, lanes, mask) for c in range(lanes)]
                for u, pixel in enumerate(b.transpose(square)):
                    target.put((x + u) * lanes, pixel)

    def transform(self, copy: Array, pitch: Value, block: Value, tile: Value) -> None:
        """The transformed tile that begins at `copy`."""
        b, lanes = self.b, self.lanes
        side, size = (spread_side, RESULTS) if self.g.of_results else (data_side, READ)
        lines = [copy.at(pitch * (i * lanes)) for i in range(size)]
        made = both_sides(b, side, [[line.vector(j * lanes, lanes) for line in lines] for j in range(size)])
        walk = self.epilogue.walk([b.lift(0), block, tile, Lane(b.lift(0))], 0)
        for place, value in enumerate(made):
            walk.moved(place).store(value, self.dtype)
