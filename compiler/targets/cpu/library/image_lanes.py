"""Convolutions and their gradients to the data whose vectors hold one pixel of neighbouring images.

A tap that reads outside of the image is then left out for all lanes alike, whatever the stride: small maps take the
multiply-adds that they need, where a product over pixels takes those with zeros too.

A unit of work is one or two vectors of images, a group, a band of rows at one depth of the result, and some tiles of
MR rows (filters; in the gradient: channels):

    for each axis, each position of the band: which taps of the kernel read what
    for each block of channels (in the gradient: filters):
        copy what the band reads of them             [channel][place][image]
        for each few tiles of rows:
            pack their weights                       [channel][tap][MR]
            for each tile, each place, or two that read the same taps:
                sums (+)= weights x copy             MR vectors in registers, over taps and channels
            after the last block: the epilogue, over squares of the sums, transposed
"""
from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import LINE, UNITS, ceil_div, keep_sums, least, most, pack_lines
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split, volume
from mxc.compiler.targets.cpu.library.epilogue import Epilogue
from mxc.compiler.targets.cpu.machine.isa import Isa

DEPTH_BYTES = 1536  # of a block's weights, for each row
COPY_BYTES = 192 << 10  # of a block's copy, if a channel's is not larger
KEPT_BYTES = 256 << 10  # of a unit's sums, if a tile's are not larger
VECTORS = 64  # of a band's places, about
TOGETHER = 4  # tiles whose weights are packed at once: in the gradient they are neighbours


def tile_rows(isa: Isa) -> int:
    return isa.rows * isa.vectors


def row_step(isa: Isa) -> int:
    """Tiles are printed for multiples of so many rows: half of a tall tile may have one that is not used."""
    return max(1, tile_rows(isa) // 12)


def _is_gradient(kernel: CallKernel) -> bool:
    return kernel.template == "image_data_grad"


def _dtype(kernel: CallKernel) -> str:
    return computing_dtype(str(dict(kernel.params)["dtype"]))


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    depth: Number  # channels that are summed over
    rows: Number
    read: Sequence[Number]
    written: Sequence[Number]
    taps: Number
    vectors: Number  # of images
    wide: Number  # vectors of a unit
    height: Number  # rows of a band
    bands: Number
    block: Number  # channels of a block
    blocks: Number
    tiles: Number
    sums: Number  # elements of a tile's sums
    chunk: Number  # tiles of a unit
    chunks: Number
    units: Number
    places: Sequence[Number]  # in elements of the scratch: where copy, weights, square and sums begin, and its size

    @classmethod
    def of(cls, w: Window, transposed: bool, dtype: str, isa: Isa) -> Cut:
        """For the sizes `w`, which are numbers of Python or of the printed program."""
        size, lanes, mr = BYTES[dtype], isa.lanes(dtype), tile_rows(isa)
        depth, rows, read, written = w.channels, w.filters, w.data, w.out
        if transposed:
            depth, rows, read, written = w.filters, w.channels, w.out, w.data
        taps: Any = volume(w.kernel)
        vectors: Any = ceil_div(w.batch, lanes)
        wide: Any = most(1, least(2, vectors))
        width: Any = most(1, written[2])
        bands: Any = most(1, ceil_div(written[1], most(1, VECTORS // (wide * width))))
        height: Any = most(1, ceil_div(written[1], bands))
        reads: list[Any] = []
        for x, count in enumerate((1, height)):
            reach: Any = (w.kernel[x] - 1) * w.dilate[x] + count - 1
            far = reach // w.stride[x] + 2 if transposed else reach + (count - 1) * (w.stride[x] - 1) + 1
            reads.append(least(read[x], far))
        plane: Any = reads[0] * reads[1] * read[2] * wide * lanes + LINE // size
        block: Any = most(1, least(DEPTH_BYTES // size // most(1, taps), COPY_BYTES // size // plane))
        blocks: Any = most(1, ceil_div(depth, block))
        block = most(1, ceil_div(depth, blocks))
        tiles: Any = ceil_div(rows, mr)
        sums: Any = (height * width + lanes) * wide * mr * lanes
        chunk: Any = most(1, least(tiles, KEPT_BYTES // size // sums))
        others: Any = ceil_div(vectors, wide) * w.groups * written[0] * bands
        chunks: Any = most(ceil_div(tiles, chunk), least(tiles, ceil_div(UNITS, most(1, others))))
        chunk = most(1, ceil_div(tiles, most(1, chunks)))
        chunks = ceil_div(tiles, chunk)
        table: Any = (1 + height + width) * NUMBERS * (8 // size)
        places = [ceil_div(table, 16) * 16]
        for part in (block * plane + lanes * lanes, least(chunk, TOGETHER) * (block * taps * mr + lanes),
                     lanes * lanes, chunk * sums):
            places.append(ceil_div(places[-1] + part, 16) * 16)
        return cls(depth, rows, read, written, taps, vectors, wide, height, bands, block, blocks, tiles, sums, chunk,
                   chunks, others * chunks, places)


def _cut(kernel: CallKernel, isa: Isa) -> Cut:
    return Cut.of(Window.of(kernel.extents), _is_gradient(kernel), _dtype(kernel), isa)


def units(kernel: CallKernel, isa: Isa) -> int:
    return int(_cut(kernel, isa).units)  # type: ignore[arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    return int(_cut(kernel, isa).places[-1])  # type: ignore[arg-type]


@dataclass
class Taps:
    """The taps of a position on an axis: how many; the first one and what it reads; what is from each to the next one;
    how much further the next position of the phase reads with the same taps, or 0."""

    count: Value
    first: Value
    source: Value
    step: Value
    source_step: Value
    next: Value

    @classmethod
    def at(cls, table: Array, position: Number) -> Taps:
        return cls(*[table[position * NUMBERS + i] for i in range(NUMBERS)])  # type: ignore[operator]


NUMBERS = len(fields(Taps))


@dataclass
class Band:
    """What a unit computes. copy: where the pixel 0 would be; pitches: of its axes. axes: the tables of taps. wide:
    vectors of images."""

    copy: Array
    plane: Value
    pitches: Sequence[Value]
    axes: Sequence[Array]
    height: Value
    wide: Value


# Four loops, each with its count and its steps in the copy and in the weights. The second of two vectors is `apart` in
# the copy, and its sums `further`.
TILE = ", ".join(["ptr copy, ptr weights, ptr noalias sums, i64 apart, i64 further, i64 add",
                  *(f"i64 count{n}, i64 copy{n}, i64 weight{n}" for n in range(4))])


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    mr, step = tile_rows(isa), row_step(isa)
    heights_of = {1: sorted({1, 2, 4, *range(mr // 2, mr + 1, step)}), 2: [*range(step, mr // 2 + 1, step)]}
    for vectors, heights in heights_of.items():
        for count in heights:
            _print_tile(b, isa, dtype, count, vectors)
        with b.function(f"multiply_{vectors}", f"{TILE}, i64 rows", internal=True) as (*rest, rows):
            below = 0
            for count in heights:
                with b.when((rows > below) & (rows <= count)):
                    b.leave(f"tile_{count}_{vectors}", rest)
                below = count

    def made(args: Value) -> _Images:
        return _Images(kernel, b, isa, dtype, epilogue_of(args))

    where = "ptr args, ptr noalias target, i64 image, i64 wide, i64 channel, i64 channels, i64 d, i64 ds, i64 h, i64 hs"
    with b.function("copy", where, True) as (args, target, *place):
        made(args).copy(Array(b, target, dtype), *place)
    where = "ptr args, ptr noalias target, i64 group, i64 tile, i64 tiles, i64 channel, i64 channels"
    with b.function("pack", where, True) as (args, target, *place):
        made(args).pack(Array(b, target, dtype), *place)
    where = ("ptr args, ptr noalias sums, ptr noalias square, i64 image, i64 wide, i64 row, i64 rows, i64 pixel, "
             "i64 pixels")
    with b.function("finish", where, True) as (args, sums, square, *place):
        made(args).finish(Array(b, sums, dtype), Array(b, square, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        made(args).units(args, first, last, scratch)


def _print_tile(b: Builder, isa: Isa, dtype: str, rows: int, vectors: int) -> None:
    """sums[v][row] = (add ? sums[v][row] : 0) + over four loops: weights[row] * copy[v]."""
    lanes = isa.lanes(dtype)
    grid = [(v, i) for v in range(vectors) for i in range(rows)]
    with b.function(f"tile_{rows}_{vectors}", TILE, internal=True) as (copy, weights, sums, apart, further, add, *rest):
        loops = [rest[i : i + 3] for i in range(0, len(rest), 3)]
        totals = [b.zero(vector_type(TYPES[dtype], lanes)) for _ in grid]

        def nest(level: int, here: Array, column: Array) -> None:
            if level < len(loops):
                count, copy_step, weight_step = loops[level]
                for i in b.range(0, count, carry=totals):
                    nest(level + 1, here.at(i * copy_step), column.at(i * weight_step))
                return
            images = [here.at(apart * v).vector(0, lanes) for v in range(vectors)]
            for row in range(rows):
                x = column.broadcast(row, lanes)
                for v in range(vectors):
                    at = v * rows + row
                    totals[at] = b.fma(x, images[v], totals[at])

        nest(0, Array(b, copy, dtype), Array(b, weights, dtype))
        for v in range(vectors):
            here = Array(b, sums, dtype).at(further * v)
            keep_sums(here, totals[v * rows : (v + 1) * rows], [i * lanes for i in range(rows)], add)


def _dot(places: Sequence[Number], steps: Sequence[Number]) -> Any:
    total: Any = 0
    for place, step in zip(places, steps, strict=True):
        total = place * step + total  # type: ignore[operator]
    return total


class _Images:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, isa: Isa, dtype: str, epilogue: Epilogue):
        self.b, self.isa, self.dtype, self.epilogue = b, isa, dtype, epilogue
        self.lanes, self.mr, self.line = isa.lanes(dtype), tile_rows(isa), LINE // BYTES[dtype]
        self.transposed, self.flat = _is_gradient(kernel), bool(dict(kernel.params)["flat"])
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        self.strides = epilogue.extents[22:]
        self.image, self.weight = epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> Any:
        """Printed where it is first asked for: not every function needs its divisions."""
        return Cut.of(self.window, self.transposed, self.dtype, self.isa)

    def tile(self, number: Value) -> tuple[Value, Value]:
        """The first row of a tile, and its rows: as many in all tiles, or one less in the last ones."""
        b, cut = self.b, self.cut
        size = cut.rows // b.maximum(1, cut.tiles)
        longer = cut.rows - size * cut.tiles
        return number * size + b.minimum(number, longer), size + b.select(number < longer, b.lift(1), b.lift(0))

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, lanes = self.b, self.window, self.cut, self.lanes
        memory, tables = Array(b, scratch, self.dtype), Array(b, scratch, "int64")
        copy, weights, square, sums = (memory.at(place) for place in cut.places[:4])
        axes = [tables.at(n * NUMBERS) for n in (0, 1, cut.height + 1)]
        self._table(axes[2], 2, b.lift(0), b.lift(cut.written[2]))
        for unit in b.range(first, last):
            counts = ceil_div(cut.vectors, cut.wide), w.groups, cut.written[0], cut.bands, cut.chunks
            part, group, d, number, chunk = split(unit, counts)
            image, wide = part * cut.wide * lanes, b.minimum(cut.wide, cut.vectors - part * cut.wide)
            h, tile0 = number * cut.height, chunk * cut.chunk
            height = b.minimum(cut.height, cut.written[1] - h)
            z, z_end = self._table(axes[0], 0, d, b.lift(1))
            y, y_end = self._table(axes[1], 1, h, height)
            pitches = (y_end - y) * cut.read[2] * wide * lanes, wide * lanes * cut.read[2], wide * lanes
            plane = (z_end - z) * pitches[0] + self.line
            band = Band(copy.at(0 - z * pitches[0] - y * pitches[1]), plane, pitches, axes, height, wide)
            tiles = b.minimum(cut.chunk, cut.tiles - tile0)
            for block in b.range(0, cut.blocks):
                channel = block * cut.block
                channels = b.minimum(cut.block, cut.depth - channel)
                b.call("copy", [args, copy.pointer, image, wide, group * cut.depth + channel, channels, z, z_end - z, y,
                                y_end - y])
                for t in b.range(0, tiles):
                    row, rows = self.tile(tile0 + t)
                    with b.when((t % TOGETHER).equals(0)):
                        b.call("pack", [args, weights.pointer, group, tile0 + t, b.minimum(TOGETHER, tiles - t),
                                        channel, channels])
                    here = sums.at(t * cut.sums)
                    packed = weights.at(t % TOGETHER * (channels * cut.taps * self.mr + lanes))
                    self._multiply(here, band, packed, rows, channels, block)
                    with b.when(block.equals(cut.blocks - 1)):
                        pixel = (d * cut.written[1] + h) * cut.written[2]
                        b.call("finish", [args, here.pointer, square.pointer, image, wide, group * cut.rows + row,
                                          rows, pixel, height * cut.written[2]])

    @functools.cached_property
    def phases(self) -> Value:
        """Positions that are so far apart in a row read the same taps, but at the ends."""
        return self.b.lift(self.window.stride[2] if self.transposed else 1)

    def _multiply(self, sums: Array, band: Band, weights: Array, rows: Value, channels: Value, add: Value) -> None:
        """A tile's sums at all places of a band, over a block's channels: by two places that read the same taps."""
        b, width = self.b, self.cut.written[2]
        of_depth, one_vector = Taps.at(band.axes[0], 0), band.wide.equals(1)
        for i in b.range(0, band.height):
            of_row = Taps.at(band.axes[1], i)
            for phase in b.range(0, self.phases):
                place = [phase]
                for _ in b.range(phase, width, self.phases, carry=place):
                    column = Taps.at(band.axes[2], b.minimum(place[0], width - 1))
                    next_one = b.select(one_vector, column.next, b.lift(0))
                    with b.when(place[0] < width):
                        here = sums.at((i * width + place[0]) * band.wide * (self.mr * self.lanes))
                        self._place(here, band, weights, (of_depth, of_row, column), next_one, rows, channels, add)
                    place[0] = place[0] + self.phases * b.select(next_one.equals(0), b.lift(1), b.lift(2))

    def _place(self, sums: Array, band: Band, weights: Array, taps: tuple[Taps, Taps, Taps], next_one: Value,
               rows: Value, channels: Value, add: Value) -> None:
        """The same at one place, and at the next one of its phase if that reads `next_one` further."""
        b, w, mr, lanes = self.b, self.window, self.mr, self.lanes
        steps: Any = w.kernel[1] * w.kernel[2] * mr, w.kernel[2] * mr, b.lift(mr)  # type: ignore[operator]
        here = band.copy.at(_dot([t.source for t in taps], band.pitches)).pointer
        factors = weights.at(_dot([t.first for t in taps], steps))
        images = band.wide.equals(2)
        apart = b.select(images, b.lift(lanes), next_one * band.pitches[2])
        further = b.select(images, b.lift(1), self.phases) * (mr * lanes)
        loops = [(t.count, t.source_step * p, t.step * s) for t, p, s in zip(taps, band.pitches, steps, strict=True)]
        inner, outer = (channels, band.plane, b.lift(self.cut.taps) * mr), loops.pop()
        longer = channels >= outer[0]  # the longest loop is the innermost
        loops += [tuple(b.select(longer, x, y) for x, y in zip(*pair, strict=True))  # type: ignore[misc]
                  for pair in ((outer, inner), (inner, outer))]
        rest = [apart, further, add, *itertools.chain.from_iterable(loops)]
        with b.when(apart.equals(0)):
            b.call("multiply_1", [here, factors.pointer, sums.pointer, *rest, rows])
        with b.when(apart.differs(0)):  # the registers hold half of the rows
            step = row_step(self.isa)
            half: Any = b.select(rows <= mr // 2, rows, b.lift(ceil_div(rows, 2 * step) * step))
            for first, count in ((b.lift(0), half), (half, rows - half)):
                b.call("multiply_2", [here, factors.at(first).pointer, sums.at(first * lanes).pointer, *rest, count])

    def _table(self, table: Array, x: int, first: Value, count: Value) -> list[Value]:
        """Fills in the taps of `count` positions on axis x; gives the begin and end of what they read."""
        b, w = self.b, self.window
        stride, dilate, pad, read = w.stride[x], w.dilate[x], w.pad[x], self.cut.read[x]
        ends = [b.lift(read), b.lift(0)]
        for i in b.range(0, count, carry=ends):
            place = table.at(i * NUMBERS)
            found = [b.lift(0)] * 5  # how many; the first tap, what it reads; the last one
            for k in b.range(0, w.kernel[x], carry=found):
                if self.transposed:
                    moved = first + i + pad - k * dilate
                    source = moved // stride
                    exists = b.inside(source, read) & (source * stride).equals(moved)
                else:
                    source = (first + i) * stride - pad + k * dilate
                    exists = b.inside(source, read)
                is_first = exists & found[0].equals(0)
                new = found[0] + 1, k, source, k, source
                found[:] = [b.select(is_first if n in (1, 2) else exists, new[n], old) for n, old in enumerate(found)]
            many, tap, source, last, last_source = found
            gaps = b.maximum(1, many - 1)
            numbers = many, tap, source, (last - tap) // gaps, (last_source - source) // gaps, b.lift(0)
            for n, number in enumerate(numbers):
                place[n] = number
            phases = self.phases if x == 2 else 1
            with b.when(i >= phases):
                before = table.at((i - phases) * NUMBERS)
                same = many.equals(before[0])
                for n in (1, 3, 4):
                    same = same & numbers[n].equals(before[n])
                before[NUMBERS - 1] = b.select(same, source - before[2], b.lift(0))
            low, high = b.minimum(source, last_source), b.maximum(source, last_source) + 1
            ends[:] = [b.select(many > 0, b.minimum(ends[0], low), ends[0]),
                       b.select(many > 0, b.maximum(ends[1], high), ends[1])]
        return [b.minimum(*ends), ends[1]]

    def copy(self, target: Array, image: Value, wide: Value, channel: Value, channels: Value, d: Value, ds: Value,
             h: Value, hs: Value) -> None:
        """[channel][d][h][w][image]; images behind the last one are as that.

        A line more behind each channel: else these would often lie a power of two apart.
        """
        b, w, s, lanes = self.b, self.window, self.strides, self.lanes
        width = self.cut.read[2]
        together = s[3].equals(s[4] * width)
        runs, count = b.select(together, b.lift(1), hs), b.select(together, hs * width, b.lift(width))
        for v in b.range(0, wide):
            numbers = [b.minimum(image + v * lanes + i, w.batch - 1) * s[0] for i in range(lanes)]
            for c in b.range(0, channels):
                for z in b.range(0, ds):
                    for r in b.range(0, runs):
                        source = self.image.at((channel + c) * s[1] + (d + z) * s[2] + (h + r) * s[3])
                        place = (z * runs + r) * count * wide + v
                        here = target.at(c * (ds * hs * width * wide * lanes + self.line) + place * lanes)
                        self._copy_run(here, source, numbers, count, wide * lanes)

    def _copy_run(self, target: Array, source: Array, numbers: list[Value], count: Value, pitch: Value) -> None:
        """target[x][image] = source[number of the image + x]."""
        b, lanes, convert, step = self.b, self.lanes, self.epilogue.arithmetic.loaded, self.strides[4]
        whole = b.select(step.equals(1), count - count % lanes, b.lift(0))
        for x in b.range(0, whole, lanes):
            rows = [convert(source.vector(number + x, lanes), source.dtype) for number in numbers]
            for i, row in enumerate(b.transpose(rows)):
                target.put((x + i) * pitch, row)
        for x in b.range(whole, count):
            for i, number in enumerate(numbers):
                target[x * pitch + i] = convert(source[number + x * step], source.dtype)

    def pack(self, target: Array, group: Value, tile0: Value, tiles: Value, channel: Value, channels: Value) -> None:
        """[tile][channel][tap][MR], a vector more behind each tile; lines behind a tile's rows: anything."""
        b, cut, mr = self.b, self.cut, self.mr
        taps = b.lift(cut.taps)
        for t in b.range(0, tiles):
            row, rows = self.tile(tile0 + t)
            here = target.at(t * (channels * taps * mr + self.lanes))
            if self.transposed:
                source = self.weight.at(((group * cut.depth + channel) * cut.rows + row) * taps)
                parts = channels, cut.rows * taps, taps * mr
                pack_lines(self, self.epilogue, here, source, mr, rows, taps, b.lift(1), taps, parts)
            else:
                step = cut.depth * taps
                source = self.weight.at((group * cut.rows + row) * step + channel * taps)
                pack_lines(self, self.epilogue, here, source, mr, rows, step, b.lift(1), channels * taps)

    def finish(self, sums: Array, square: Array, image: Value, wide: Value, row: Value, rows: Value, pixel: Value,
               pixels: Value) -> None:
        """The epilogue over a tile's sums, [pixel][vector][row][image], a square of pixels and images at a time."""
        b, lanes, mr = self.b, self.lanes, self.mr
        for x in b.range(0, pixels, lanes):
            axes = inner_axes(b, self.flat, pixel + x, self.cut.written, lanes)
            whole, mask = pixels - x >= lanes, b.first_lanes(pixels - x, lanes)
            for v in b.range(0, wide):
                image0 = image + v * lanes
                images = b.minimum(lanes, self.window.batch - image0)
                for r in b.range(0, rows):
                    columns = [sums.vector((((x + i) * wide + v) * mr + r) * lanes, lanes) for i in range(lanes)]
                    for i, line in enumerate(b.transpose(columns)):
                        square.put(i * lanes, line)
                    for u in b.range(0, b.select(whole, images, b.lift(0))):
                        self.epilogue.store([image0 + u, row + r, *axes], square.vector(u * lanes, lanes), self.dtype)
                    for u in b.range(0, b.select(whole, b.lift(0), images)):
                        self.epilogue.store([image0 + u, row + r, *axes], square.vector(u * lanes, lanes), self.dtype,
                                            mask)
