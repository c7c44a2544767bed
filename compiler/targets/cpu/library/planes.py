"""Convolutions of plain arrays, and their gradients to the data, without unfolding: every tap reads the same copy.

What a band of rows reads is copied once, with zeros around it, as rows of one pitch that follow each other. Counted
through these rows, a pixel and what a tap reads for it lie as far apart for all pixels, so a vector of pixels may begin
anywhere. It runs over the ends of rows too, where what it computes is left out.

    copy                                           [channel][tap's depth][remainder of row and column][row][pixel]
    where each tap reads in the copy, and its weights
    for each tile of MR filters:
        for each block of channels:
            for each few vectors of pixels:
                sums (+)= weights x copy           MR x some vectors in registers, over channels and taps
                the epilogue of rows that are complete

With a stride, rows and columns that leave the same remainder by it lie together in the copy, which so has one pixel for
each result. In the gradient it is the results that do: those of one remainder are a phase, which reads the same taps.
A unit of work is a band of an image's rows at one depth, of one group, and some tiles of its filters (in the gradient:
rows of all phases, and tiles of channels).
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.plane_geometry import PlaneConvolution, PlaneDataGrad
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Number, Value
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Axis, Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, NoAlias, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.rows import bring_rows, reached
from mxc.compiler.targets.cpu.library.taps import Side, Walk, add_taps
from mxc.compiler.targets.cpu.library.tile import keep_sums, print_tiles, zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND_PIXELS = 512  # a band has about so many pixels: a tile's sums for it stay in the nearest cache
COPY_BYTES = 384 << 10  # the copy of a band has at most so many bytes, unless that for one row has more
DEPTH_BYTES = 1024  # the weights of a block have at most so many bytes for each filter: a tile then stays in that cache
AHEAD = 2  # a channel's data are asked for so many channels before they are copied
WIDEST = 8  # so many vectors of pixels are computed at once, at most

OfPlanes = PlaneConvolution[N] | PlaneDataGrad[N]


def wide(isa: Isa, rows: int) -> int:
    """How many vectors of pixels a tile of so many rows has: as many as registers hold."""
    return min(WIDEST, (isa.registers - 1) // (rows + 1))


def heights(isa: Isa) -> range:
    """The rows of the tiles that are printed."""
    return range(2, isa.rows + 1, 2)


@dataclass(frozen=True)
class PlaneCut(Generic[N]):
    """How a convolution is cut. Pairs are of rows and columns."""

    depth: N  # channels that are summed over
    filters: N  # of the results of a group
    read: Sequence[N]
    written: Sequence[N]
    taps: N
    parts: tuple[N, N]  # remainders by the stride that lie apart in the copy
    phases: tuple[N, N]  # of the results
    before: tuple[N, N]  # pixels that a phase reads before its own
    width: N  # results of a phase in a row
    height: N  # rows of a phase in a band
    bands: N
    rows: N  # of the copy, for one remainder
    pitch: N
    plane: N  # elements of the copy of a channel
    block: N  # channels of a block
    blocks: N
    tiles: N  # of the filters
    chunk: N  # tiles of a unit
    chunks: N
    units: N
    places: Sequence[N]  # in elements of the scratch: where copy, sums and a row begin, and its size
    line: N  # elements between the sums of a filter and the next

    @classmethod
    def of(cls, g: OfPlanes[N], isa: Isa) -> PlaneCut[N]:
        w, size, lanes, mr = g.window, BYTES[g.dtype], isa.lanes(g.dtype), g.block
        one: N = least(1, most(1, w.batch))  # the number 1, of the kind of the others
        depth, filters, read, written = w.channels, w.filters, w.data, w.out
        if isinstance(g, PlaneDataGrad):
            depth, filters, read, written = w.filters, w.channels, w.out, w.data
        parts, phases, before, shifts, extents = [], [], [], [], []
        for x in (1, 2):
            span, stride = (w.kernel[x] - 1) * w.dilate[x], w.stride[x]
            if isinstance(g, PlaneDataGrad):
                before.append(most(0, span - w.pad[x]) // stride)
                shifts.append(before[-1] + (stride - 1 + w.pad[x]) // stride)
                parts.append(one)
                phases.append(stride)
                extents.append(ceil_div(written[x], stride))
            else:
                before.append(one - 1)
                shifts.append(span // stride)
                parts.append(least(stride, span + 1))
                phases.append(one)
                extents.append(written[x])
        taps: N = volume(w.kernel)
        width: N = most(1, extents[1])
        pitch: N = width + shifts[1]
        slices: N = depth * w.kernel[0] * parts[0] * parts[1]
        fitting: N = most(1, COPY_BYTES // size // most(1, slices * pitch) - shifts[0])
        height: N = least(most(1, extents[0]), least(fitting, most(1, BAND_PIXELS // pitch)))
        bands: N = ceil_div(extents[0], height)
        height = most(1, ceil_div(extents[0], most(1, bands)))
        rows: N = height + shifts[0]
        plane: N = w.kernel[0] * parts[0] * parts[1] * rows * pitch
        of_phase: N = w.kernel[0] * ceil_div(w.kernel[1], phases[0]) * ceil_div(w.kernel[2], phases[1])
        blocks: N = most(1, ceil_div(depth * of_phase, DEPTH_BYTES // size))
        block, blocks = evenly(depth, blocks)
        tiles: N = ceil_div(filters, mr)
        others: N = w.batch * w.groups * written[0] * bands
        chunks: N = most(1, least(tiles, ceil_div(UNITS, most(1, others))))
        chunk, chunks = evenly(tiles, chunks)
        line: N = ceil_div(height * pitch, lanes) * lanes + WIDEST * lanes
        table: N = phases[0] * phases[1] * (1 + 2 * taps) * (8 // size)
        places = [ceil_div(table, 16) * 16]
        for part in (depth * plane + shifts[0] * pitch + 2 * WIDEST * lanes, phases[1] * mr * line,
                     phases[1] * width + 2 * lanes):
            places.append(ceil_div(places[-1] + part, 16) * 16)
        return cls(depth, filters, read, written, taps, (parts[0], parts[1]), (phases[0], phases[1]),
                   (before[0], before[1]), width, height, bands, rows, pitch, plane, block, blocks, tiles, chunk,
                   chunks, others * chunks, places, line)


def units(g: OfPlanes[int], isa: Isa) -> int:
    return PlaneCut.of(g, isa).units


def scratch_elements(g: OfPlanes[int], isa: Isa) -> int:
    return PlaneCut.of(g, isa).places[-1]


@dataclass(frozen=True)
class TilesCall(Parameters):
    """A tile of pixels by a tile of filters.

    table: for each tap, where it reads in the copy from the first pixel on, and where its weights begin. plane, depth:
    from channel to channel in the copy, and in the weights. sums: those of the filters are `line` elements apart; they
    are added to what is there if `add`.
    """

    channels: Integer
    taps: Integer
    table: Pointer
    data: Pointer
    plane: Integer
    weights: Pointer
    depth: Integer
    sums: NoAlias
    line: Integer
    add: Integer


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, isa = p.b, p.isa
    some = {rows: sorted({1, ceil_div(wide(isa, rows), 2), wide(isa, rows)}) for rows in heights(isa)}

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, rows, vectors, TilesCall(*values))

    def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
        *_, rows_here, left = values

        def fits(rows: int, vectors: int) -> Value:
            fewer = [n for n in some[rows] if n < vectors]
            there = (rows_here > rows - 2) & (rows_here <= rows) & (left <= vectors)
            return there & (left > fewer[-1]) if fewer else there

        return fits

    shapes = [(rows, vectors) for rows in heights(isa) for vectors in some[rows]]
    print_tiles(b, shapes, TilesCall.text(), tile, f"{TilesCall.text()}, i64 rows, i64 left", fits_of)
    print_around(p, Planes)


def print_around(p: Printing, kind: type[Planes]) -> None:
    """The kernel's function, and those that it calls beside `multiply`."""
    b = p.b
    with b.function("table", "ptr args, ptr table, i64 d", True) as (args, table, d):
        kind(p, args).table(Array(b, table, "int64"), d)
    with b.function("copy", "ptr args, ptr noalias target, i64 image, i64 channel, i64 d, i64 h", True) as values:
        args, target, *place = values
        kind(p, args).copy(p.array(target), *place)
    where = ("ptr args, ptr noalias sums, ptr noalias line, i64 filters, i64 image, i64 channel, i64 d, i64 h, "
             "i64 phase, i64 pitch, i64 apart, i64 first, i64 last")
    with b.function("finish", where, True) as (args, sums, line, *place):
        kind(p, args).finish(p.array(sums), p.array(line), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        kind(p, args).units(args, first, last, scratch)


def _print_tile(p: Printing, rows: int, vectors: int, given: TilesCall) -> None:
    """sums[row][pixel] = (add ? sums[row][pixel] : 0) + over channels and taps: weights[row] * copy[pixel]."""
    data, weights = (p.array(pointer) for pointer in (given.data, given.weights))
    sum_up(p, rows, vectors, given, Side(weights, given.depth, 1), Side(data, given.plane, 0))


def sum_up(p: Printing, rows: int, vectors: int, given: TilesCall, factors: Side, columns: Side) -> None:
    """A tile of so many factors by so many vectors."""
    b, lanes = p.b, p.isa.lanes(p.dtype)
    total, sums = zeros(b, p.dtype, lanes, rows * vectors), p.array(given.sums)
    add_taps(b, p.isa, total, rows, Walk(given.channels, given.taps, Array(b, given.table, "int64"), factors, columns))
    lines = [sums.at(given.line * i) for i in range(rows)]
    keep_sums(total, [(line, j * lanes) for line in lines for j in range(vectors)], given.add)


class Planes(Function):
    """One function of a kernel being printed."""

    g: OfPlanes[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g, self.mr = self.g, printing.geometry.block
        self.window, self.transposed, self.stride = g.window, isinstance(g, PlaneDataGrad), printing.geometry.stride
        self.strides = g.out_strides if isinstance(g, PlaneDataGrad) else g.data_strides
        self.data, self.weight = self.epilogue.buffers[:2]
        self.written = g.window.data if self.transposed else g.window.out
        self.phases = g.window.stride[1:] if self.transposed else (self.b.lift(1), self.b.lift(1))

    @functools.cached_property
    def cut(self) -> PlaneCut[Value]:
        """Printed where it is first asked for: not every function needs its divisions."""
        return PlaneCut.of(self.g, self.isa)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, mr = self.b, self.window, self.cut, self.mr
        memory, table = self.array(scratch), Array(b, scratch, "int64")
        copy, sums, line = (memory.at(place) for place in cut.places[:3])
        seen = [b.lift(-1)]  # the depth that the table is for
        for unit in b.range(first, last, carry=seen):
            chunk = unit % cut.chunks
            image, group, d, band = split(unit // cut.chunks, (w.batch, w.groups, cut.written[0], cut.bands))
            h = band * cut.height
            rows = b.minimum(cut.height, ceil_div(cut.written[1], cut.phases[0]) - h)
            with b.when(d.differs(seen[0])):
                b.call("table", [args, table.pointer, d])
            seen[0] = d
            with b.when(unit.equals(first) | chunk.equals(0)):  # else the unit before has copied it
                b.call("copy", [args, copy.pointer, image, group * cut.depth, d, h])
            for f in b.range(chunk * cut.chunk, b.minimum((chunk + 1) * cut.chunk, cut.tiles)):
                weights = self.weight.at((group * cut.tiles + f) * (cut.depth * cut.taps * mr))
                there, channel = b.minimum(mr, cut.filters - f * mr), group * cut.filters + f * mr
                for high in b.range(0, cut.phases[0]):
                    finish = [args, sums.pointer, line.pointer, there, image, channel, d, h, high, self.between(),
                              cut.line]
                    for block in b.range(0, cut.blocks):
                        for across in b.range(0, cut.phases[1]):
                            taps = table.at((high * cut.phases[1] + across) * (1 + cut.taps * 2))
                            ends = block.equals(cut.blocks - 1) & across.equals(cut.phases[1] - 1)
                            self.multiply(taps, copy, weights, sums, rows, there, block, across, ends, finish)

    def between(self) -> Value:
        """From row to row of the sums."""
        return self.cut.pitch

    # many parameters: what a tile reads, and what follows it
    def multiply(self, taps: Array, copy: Array, weights: Array, sums: Array, rows: Value, filters: Value,
                 block: Value, across: Value, ends: Value, finish: list[Value]) -> None:
        """What a block of channels adds to the sums of `filters` filters for `rows` rows of the phase `across`. ends:
        whether nothing is added after it, so that the function `finish` is called with rows once they are complete:
        what these bring to memory goes on meanwhile."""
        b, cut, lanes = self.b, self.cut, self.lanes
        sums = sums.at(across * self.mr * cut.line)
        copy, weights, channels = self.of_block(copy, weights, block)
        pixels = (rows - 1) * cut.pitch + cut.width
        vectors = b.lift(wide(self.isa, self.isa.rows))
        for height in reversed(heights(self.isa)):
            vectors = b.select(filters <= height, b.lift(wide(self.isa, height)), vectors)
        done = [b.lift(0)]  # rows
        for begin in b.range(0, pixels, vectors * lanes, carry=done):
            left = b.minimum(vectors, ceil_div(pixels - begin, lanes))
            call = TilesCall(channels, taps[0], taps.at(1).pointer, copy.at(begin).pointer, cut.plane, weights.pointer,
                             cut.taps * self.mr, sums.at(begin).pointer, cut.line, block)
            b.call("multiply", [*call.values(), filters, left])
            there = b.minimum(rows, (begin + vectors * lanes + cut.pitch - cut.width) // cut.pitch)
            with b.when(ends & (there > done[0])):
                b.call("finish", [*finish, done[0], there])
            done[0] = there

    def of_block(self, copy: Array, weights: Array, block: Value) -> tuple[Array, Array, Value]:
        """Where the data and the weights of a block of channels begin, and how many channels it has."""
        cut, first = self.cut, block * self.cut.block
        return (copy.at(first * cut.plane), weights.at(first * (cut.taps * self.mr)),
                self.b.minimum(cut.block, cut.depth - first))

    def table(self, table: Array, d: Value) -> None:
        """For each phase: how many taps read inside at depth `d`, and, for these, where in the copy and the weights."""
        b, w, cut = self.b, self.window, self.cut
        for phase in b.range(0, cut.phases[0] * cut.phases[1]):
            here = table.at(phase * (1 + cut.taps * 2))
            rests, found = (phase // cut.phases[1], phase % cut.phases[1]), [b.lift(0)]
            for tap in b.range(0, cut.taps, carry=found):
                kd, *inner = split(tap, w.kernel)
                there = self._slice(d, kd)[1]
                plane, moved = kd, []
                for x in range(2):
                    part, shift, exact = self._shift(x, inner[x], rests[x])
                    plane, there = plane * cut.parts[x] + part, there & exact
                    moved.append(shift)
                place = here.at(1 + found[0] * 2)
                place[0] = (plane * cut.rows + moved[0]) * cut.pitch + moved[1]
                place[1] = tap * self.mr
                found[0] = found[0] + b.select(there, b.lift(1), b.lift(0))
            here[0] = found[0]

    def _slice(self, d: Value, kd: Value) -> tuple[Value, Value]:
        """The depth at which a tap reads, and whether there is one."""
        b, w = self.b, self.window
        if not self.transposed:
            z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
            return z, b.inside(z, self.cut.read[0])
        moved = d + w.pad[0] - kd * w.dilate[0]
        z = moved // w.stride[0]
        return z, b.inside(z, self.cut.read[0]) & (z * w.stride[0]).equals(moved)

    def _shift(self, x: int, k: Value, rest: Value) -> tuple[Value, Value, Value]:
        """Which part of the copy tap k of an axis (0: rows, 1: columns) reads, how much further than the result's own
        place, and whether it reads for the phase of this remainder."""
        w, axis = self.window, x + 1
        moved, stride = k * w.dilate[axis], w.stride[axis]
        if not self.transposed:
            return moved % stride, moved // stride, self.b.lift(1).equals(1)
        moved = rest + w.pad[axis] - moved + self.cut.before[x] * stride
        return self.b.lift(0), moved // stride, (moved % stride).equals(0)

    # --- copying

    def copy(self, target: Array, image: Value, channel: Value, d: Value, h: Value) -> None:
        """Copies what the band of rows from `h` on (in the gradient: of each phase) reads of a group's channels."""
        b, w, cut = self.b, self.window, self.cut
        high, across = cut.parts
        for n in range(WIDEST + 1):  # tiles read a little more: no numbers that are slow to multiply with
            target.put(cut.depth * cut.plane + n * self.lanes, self.zero)
        for c in b.range(0, cut.depth):
            plane = self.data.at(image * self.strides[0] + (channel + c) * self.strides[1])
            for kd in b.range(0, w.kernel[0]):
                z, exists = self._slice(d, kd)
                with b.when(exists):
                    for part in b.range(0, high * across):
                        to = target.at(c * cut.plane + (kd * high * across + part) * (cut.rows * cut.pitch))
                        self._copy_part(to, plane.at(z * self.strides[2]), h, (part // across, part % across))

    def _copy_part(self, target: Array, source: Array, h: Value, part: tuple[Value, Value]) -> None:
        """Copies the rows and columns of one remainder."""
        b, cut = self.b, self.cut
        strides = [b.lift(1)] * 2 if self.transposed else list(self.window.stride[1:])
        top, left = (part[x] - (cut.before[x] if self.transposed else self.window.pad[x + 1]) for x in range(2))
        top = top + h * strides[0]
        rows = *reached(b, top, strides[0], cut.read[1], cut.rows), cut.rows
        columns = *reached(b, left, strides[1], cut.read[2], cut.pitch), cut.pitch
        along: Number = 1 if self.transposed else self.stride or strides[1]
        bring_rows(self.lanes, target, source.at(top * self.strides[3] + left), rows, columns,
                   (strides[0] * self.strides[3], along), self.loaded, self.strides[1] * AHEAD)

    # --- results

    # many parameters: those of `finish` in the kernel
    def finish(self, sums: Array, line: Array, filters: Value, image: Value, channel: Value, d: Value, h: Value,
               phase: Value, pitch: Value, apart: Value, first: Value, last: Value) -> None:
        """The epilogue over the sums of `filters` filters from `channel` on, for the rows first <= i < last of a band
        that begins at `h`, in a phase of rows. pitch, apart: from row to row, and from filter to filter, of the
        sums."""
        b, lanes, phases, (_, high, width) = self.b, self.lanes, self.phases, self.written
        whole = width - width % lanes
        mask = b.first_lanes(width - whole, lanes)
        for r in b.range(0, filters):
            for i in b.range(first, last):
                y = (h + i) * phases[0] + phase
                with b.when(y < high):
                    row = self._row(sums.at(r * apart + i * pitch), line, apart)
                    for begin, end, exists in ((b.lift(0), whole, None), (whole, width, mask)):
                        for x in b.range(begin, end, lanes):
                            inner: list[Axis] = [Lane((d * high + y) * width + x)] if self.g.flat else [d, y, Lane(x)]
                            self.epilogue.store([image, channel + r, *inner], row.vector(x, lanes), self.dtype, exists)

    def _row(self, sums: Array, line: Array, apart: Value) -> Array:
        """A row of results, put together of those of all phases of columns."""
        b, lanes, phases, step = self.b, self.lanes, self.phases[1], self.mr * apart
        if not self.transposed or self.stride == 1:
            return sums
        width = ceil_div(self.written[2], phases)
        if self.stride == 2:
            picks = [[lane + n * lanes // 2 + other for lane in range(lanes // 2) for other in (0, lanes)]
                     for n in range(2)]
            for x in b.range(0, width, lanes):
                even, odd = (sums.at(step * n).vector(x, lanes) for n in range(2))
                for n in range(2):
                    line.put(x * 2 + n * lanes, b.shuffle(even, odd, picks[n]))
            return line
        for phase in b.range(0, phases):
            for x in b.range(0, width):
                line[x * phases + phase] = sums.at(phase * step)[x]
        return line
