"""Convolutions of plain arrays, and their gradients to the data, with the filters in the lanes of vectors.

They are those of planes.py, from the same copies, for filters that fill vectors. A tile is some pixels of a row, each
of which meets vectors of weights: these lie as vectors are read best, no pixel between two rows is computed, and rows
may be short. What a tile sums up lies with the filters of a pixel side by side, so rows are transposed when they are
complete.

    for each tile of filters:
        for each block of channels:
            for each row, each few of its pixels:
                sums (+)= pixels x weights         over channels and taps
                transpose rows that are complete, and their epilogue
"""
from __future__ import annotations

import functools
from dataclasses import replace

from mxc.compiler.targets.cpu.emit.builder import Array, Value
from mxc.compiler.targets.cpu.library.cutting import N, Tiles, ceil_div
from mxc.compiler.targets.cpu.library.planes import OfPlanes, PlaneCut, Planes, TilesCall, print_around, sum_up
from mxc.compiler.targets.cpu.library.printing import Printing
from mxc.compiler.targets.cpu.library.taps import Side
from mxc.compiler.targets.cpu.library.tile import print_tiles
from mxc.compiler.targets.cpu.machine.isa import Isa


def most_pixels(isa: Isa, vectors: int) -> int:
    """How many pixels a tile of so many vectors of filters has at most. With AVX-512 registers could hold 14 for two
    vectors, but an Intel Xeon is 6 % slower by these than by 8 to 12."""
    return isa.rows * isa.vectors // vectors


def _cut(g: OfPlanes[N], isa: Isa) -> PlaneCut[N]:
    """How a convolution is cut: as one of planes, with rows of sums that have no pixels between them. The sums as they
    are computed lie behind those that are transposed."""
    cut: PlaneCut[N] = PlaneCut.of(g, isa)
    lanes = isa.lanes(g.dtype)
    pixels: N = cut.height * cut.width
    line: N = ceil_div(pixels, lanes) * lanes + lanes
    begin, size = cut.places[1], cut.phases[1] * g.block * (line + pixels) + lanes * g.block
    row: N = ceil_div(begin + size, 16) * 16
    end: N = row + cut.places[3] - cut.places[2]
    return replace(cut, line=line, places=[cut.places[0], begin, row, end])


def units(g: OfPlanes[int], isa: Isa) -> int:
    return _cut(g, isa).units


def scratch_elements(g: OfPlanes[int], isa: Isa) -> int:
    return _cut(g, isa).places[-1]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, isa = p.b, p.isa
    vectors = p.geometry.block // isa.lanes(p.dtype)

    def tile(pixels: int, vectors: int, values: list[Value]) -> None:
        given = TilesCall(*values)
        data, weights = (p.array(pointer) for pointer in (given.data, given.weights))
        sum_up(p, pixels, vectors, given, Side(data, given.plane, 0), Side(weights, given.depth, 1))

    shapes = [(pixels, vectors) for pixels in range(1, most_pixels(isa, vectors) + 1)]
    print_tiles(b, shapes, TilesCall.text(), tile, f"{TilesCall.text()}, i64 pixels",
                lambda values: lambda pixels, _: values[-1].equals(pixels))
    with b.function("turn", "ptr args, ptr noalias sums, ptr noalias line, i64 apart, i64 width", True) as values:
        args, sums, line, *extents = values
        FilterLanes(p, args).turn(p.array(sums), p.array(line), *extents)
    print_around(p, FilterLanes)


class FilterLanes(Planes):
    """One function of a kernel being printed."""

    @functools.cached_property
    def cut(self) -> PlaneCut[Value]:
        return _cut(self.g, self.isa)

    def between(self) -> Value:
        return self.cut.width

    # many parameters: those of planes
    def multiply(self, taps: Array, copy: Array, weights: Array, sums: Array, rows: Value, filters: Value,
                 block: Value, across: Value, ends: Value, finish: list[Value]) -> None:
        """As that of planes: the sums of a block of channels lie behind those that are transposed."""
        b, cut, mr, args = self.b, self.cut, self.mr, finish[0]
        pixels = cut.height * cut.width
        lines, sums = sums.at(across * mr * cut.line), sums.at(mr * (cut.phases[1] * cut.line + across * pixels))
        copy, weights, channels = self.of_block(copy, weights, block)
        cover = Tiles.of(cut.width, most_pixels(self.isa, mr // self.lanes), empty=False)
        share = ceil_div(filters, cover.count)
        for y in b.range(0, rows):
            row = sums.at(y * cut.width * mr)
            for t in b.range(0, cover.count):
                x = cover.start(t)
                call = TilesCall(channels, taps[0], taps.at(1).pointer, copy.at(y * cut.pitch + x).pointer, cut.plane,
                                 weights.pointer, cut.taps * mr, row.at(x * mr).pointer, b.lift(mr), block)
                b.call("multiply", [*call.values(), cover.rows(t)])
                with b.when(ends & (y > 0)):  # the row before, a few filters at a time
                    self._finish(finish, y - 1, t * share, b.minimum(share, filters - t * share))
            with b.when(block.equals(cut.blocks - 1)):
                b.call("turn", [args, row.pointer, lines.at(y * cut.width).pointer, cut.line, cut.width])
        with b.when(ends):
            self._finish(finish, rows - 1, b.lift(0), filters)

    def _finish(self, given: list[Value], row: Value, first: Value, filters: Value) -> None:
        """Calls the function `finish`, given what it is called with for all filters, for some of them and one row."""
        args, sums, line, _, image, channel, *place = given
        here = self.array(sums).at(first * self.cut.line).pointer
        self.b.call("finish", [args, here, line, filters, image, channel + first, *place, row, row + 1])

    def turn(self, sums: Array, line: Array, apart: Value, width: Value) -> None:
        """line[filter * apart + pixel] = sums[pixel][filter], for the pixels of a row. It reads and writes up to a
        vector of pixels more."""
        b, lanes, mr = self.b, self.lanes, self.mr
        for x in b.range(0, width, lanes):
            for j in range(0, mr, lanes):
                pixels = [sums.vector((x + i) * mr + j, lanes) for i in range(lanes)]
                for i, filters in enumerate(b.transpose(pixels)):
                    line.put((j + i) * apart + x, filters)
