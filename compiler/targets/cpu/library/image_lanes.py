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
from typing import Generic

from mxc.compiler.kernel.geometry import ImageConvolution, ImageDataGrad
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Number, Value
from mxc.compiler.targets.cpu.library.blocks import LINE, Lines, pack_lines
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Axis
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, NoAlias, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.tile import keep_sums, print_tiles, zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

DEPTH_BYTES = 1536  # the weights of a block have at most so many bytes for each row
COPY_BYTES = 192 << 10  # the copy of a block has at most so many bytes, unless that of one channel has more
KEPT_BYTES = 256 << 10  # the sums of a unit have at most so many bytes, unless those of one tile have more
VECTORS = 64  # the places of a band are about so many vectors
TOGETHER = 4  # the weights of so many tiles are packed at once: in the gradient they are neighbours in memory

OfImages = ImageConvolution[N] | ImageDataGrad[N]


def tile_rows(isa: Isa) -> int:
    return isa.rows * isa.vectors


def row_step(isa: Isa) -> int:
    """Tiles are printed for multiples of so many rows; where a tall tile is halved, a half may have an unused row."""
    return max(1, tile_rows(isa) // 12)


@dataclass(frozen=True)
class ImageCut(Generic[N]):
    """How a convolution is cut."""

    depth: N  # channels that are summed over
    rows: N
    read: Sequence[N]
    written: Sequence[N]
    taps: N
    vectors: N  # of images
    wide: N  # vectors of a unit
    height: N  # rows of a band
    bands: N
    block: N  # channels of a block
    blocks: N
    tiles: N
    sums: N  # elements of a tile's sums
    chunk: N  # tiles of a unit
    chunks: N
    units: N
    places: Sequence[N]  # in elements of the scratch: where copy, weights, square and sums begin, and its size

    @classmethod
    def of(cls, g: OfImages[N], isa: Isa) -> ImageCut[N]:
        w, transposed, dtype = g.window, isinstance(g, ImageDataGrad), computing_dtype(g.dtype)
        size, lanes, mr = BYTES[dtype], isa.lanes(dtype), tile_rows(isa)
        depth, rows, read, written = w.channels, w.filters, w.data, w.out
        if transposed:
            depth, rows, read, written = w.filters, w.channels, w.out, w.data
        taps: N = volume(w.kernel)
        vectors: N = ceil_div(w.batch, lanes)
        wide: N = most(1, least(2, vectors))
        width: N = most(1, written[2])
        bands: N = most(1, ceil_div(written[1], most(1, VECTORS // (wide * width))))
        height: N = most(1, ceil_div(written[1], bands))
        reads: list[N] = []
        counts: list[N | int] = [1, height]
        for x, count in enumerate(counts):
            reach: N = (w.kernel[x] - 1) * w.dilate[x] + count - 1
            far = reach // w.stride[x] + 2 if transposed else reach + (count - 1) * (w.stride[x] - 1) + 1
            reads.append(least(read[x], far))
        plane: N = reads[0] * reads[1] * read[2] * wide * lanes + LINE // size
        block: N = most(1, least(DEPTH_BYTES // size // most(1, taps), COPY_BYTES // size // plane))
        blocks: N = most(1, ceil_div(depth, block))
        block = most(1, ceil_div(depth, blocks))
        tiles: N = ceil_div(rows, mr)
        sums: N = (height * width + lanes) * wide * mr * lanes
        chunk: N = most(1, least(tiles, KEPT_BYTES // size // sums))
        others: N = ceil_div(vectors, wide) * w.groups * written[0] * bands
        chunks: N = most(ceil_div(tiles, chunk), least(tiles, ceil_div(UNITS, most(1, others))))
        chunk, chunks = evenly(tiles, most(1, chunks))
        table: N = (1 + height + width) * NUMBERS * (8 // size)
        places = [ceil_div(table, 16) * 16]
        for part in (block * plane + lanes * lanes, least(chunk, TOGETHER) * (block * taps * mr + lanes),
                     lanes * lanes, chunk * sums):
            places.append(ceil_div(places[-1] + part, 16) * 16)
        return cls(depth, rows, read, written, taps, vectors, wide, height, bands, block, blocks, tiles, sums, chunk,
                   chunks, others * chunks, places)


def units(g: OfImages[int], isa: Isa) -> int:
    return ImageCut.of(g, isa).units


def scratch_elements(g: OfImages[int], isa: Isa) -> int:
    return ImageCut.of(g, isa).places[-1]


@dataclass
class Taps:
    """The taps of a position on an axis that read inside of the image.

    count: how many. first, source: the first tap, and the place that it reads. step, source_step: the distance from tap
    to tap, and of the places that they read. next: how much further the next position of the phase reads with the same
    taps, or 0 if its taps are others.
    """

    count: Value
    first: Value
    source: Value
    step: Value
    source_step: Value
    next: Value

    @classmethod
    def at(cls, table: Array, position: Number) -> Taps:
        return cls(*[table[position * NUMBERS + i] for i in range(NUMBERS)])


NUMBERS = len(fields(Taps))


@dataclass
class ImageBand:
    """What a unit computes. copy: where the image's pixel 0 would be in the copy; plane: elements of a channel of it;
    pitches: elements between its slices, rows and pixels. axes: the tables of taps. wide: vectors of images."""

    copy: Array
    plane: Value
    pitches: Sequence[Value]
    axes: Sequence[Array]
    height: Value
    wide: Value


# A tile is four loops, each with its count and its steps in the copy and in the weights. The second of two vectors lies
# `apart` elements further in the copy, and its sums lie `further` elements further.
TILE = ", ".join(["ptr copy, ptr weights, ptr noalias sums, i64 apart, i64 further, i64 add",
                  *(f"i64 count{n}, i64 copy{n}, i64 weight{n}" for n in range(4))])


@dataclass(frozen=True)
class CopyCall(Parameters):
    """The part of the images that is copied: `wide` vectors of images from `image` on, `channels` channels from
    `channel` on, `ds` slices from `d` on, and `hs` rows from `h` on."""

    args: Pointer
    target: NoAlias
    image: Integer
    wide: Integer
    channel: Integer
    channels: Integer
    d: Integer
    ds: Integer
    h: Integer
    hs: Integer


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, mr, step = p.b, tile_rows(p.isa), row_step(p.isa)
    heights_of = {1: sorted({1, 2, 4, *range(mr // 2, mr + 1, step)}), 2: [*range(step, mr // 2 + 1, step)]}

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, rows, vectors, values)

    for vectors, heights in heights_of.items():
        shapes = [(rows, vectors) for rows in heights]
        print_tiles(b, shapes, TILE, tile, f"{TILE}, i64 rows", _fitting(heights), ("tile", f"multiply_{vectors}"))
    with b.function("copy", CopyCall.text(), True) as values:
        given = CopyCall(*values)
        _Images(p, given.args).copy(given)
    where = "ptr args, ptr noalias target, i64 group, i64 tile, i64 tiles, i64 channel, i64 channels"
    with b.function("pack", where, True) as (args, target, *place):
        _Images(p, args).pack(p.array(target), *place)
    where = ("ptr args, ptr noalias sums, ptr noalias square, i64 image, i64 wide, i64 row, i64 rows, i64 pixel, "
             "i64 pixels")
    with b.function("finish", where, True) as (args, sums, square, *place):
        _Images(p, args).finish(p.array(sums), p.array(square), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Images(p, args).units(args, first, last, scratch)


def _fitting(heights: list[int]) -> Callable[[list[Value]], Callable[[int, int], Value]]:
    """Tells which of the tiles of these heights is meant: the lowest that has room for the rows."""
    below = dict(zip(heights, [0, *heights], strict=False))

    def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
        here = values[-1]
        return lambda height, _: (here > below[height]) & (here <= height)

    return fits_of


def _print_tile(p: Printing, rows: int, vectors: int, values: list[Value]) -> None:
    """sums[v][row] = (add ? sums[v][row] : 0) + over four loops: weights[row] * copy[v]."""
    b, lanes = p.b, p.isa.lanes(p.dtype)
    copy, weights, sums, apart, further, add, *rest = values
    loops = [rest[i : i + 3] for i in range(0, len(rest), 3)]
    totals = zeros(b, p.dtype, lanes, vectors * rows)

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

    nest(0, p.array(copy), p.array(weights))
    for v in range(vectors):
        here = p.array(sums).at(further * v)
        keep_sums(totals[v * rows : (v + 1) * rows], [(here, i * lanes) for i in range(rows)], add)


def _dot(places: Sequence[Value], steps: Sequence[Value]) -> Value:
    total: Number = 0
    for place, step in zip(places, steps, strict=True):
        total = place * step + total
    assert isinstance(total, Value), "there is at least one place"
    return total


class _Images(Function):
    """One function of a kernel being printed."""

    g: OfImages[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g, self.mr, self.line = self.g, tile_rows(self.isa), LINE // BYTES[self.dtype]
        self.window, self.transposed = g.window, isinstance(g, ImageDataGrad)
        self.strides = g.out_strides if isinstance(g, ImageDataGrad) else g.data_strides
        self.image, self.weight = self.epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> ImageCut[Value]:
        """Printed where it is first asked for: not every function needs its divisions."""
        return ImageCut.of(self.g, self.isa)

    def tile(self, number: Value) -> tuple[Value, Value]:
        """The first row of a tile, and its rows: as many in all tiles, or one less in the last ones."""
        b, cut = self.b, self.cut
        size = cut.rows // b.maximum(1, cut.tiles)
        longer = cut.rows - size * cut.tiles
        return number * size + b.minimum(number, longer), size + b.select(number < longer, b.lift(1), b.lift(0))

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, lanes = self.b, self.window, self.cut, self.lanes
        memory, tables = self.array(scratch), Array(b, scratch, "int64")
        copy, weights, square, sums = (memory.at(place) for place in cut.places[:4])
        axes = [tables.at(n * NUMBERS) for n in (0, 1, cut.height + 1)]
        self._table(axes[2], 2, b.lift(0), cut.written[2])
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
            band = ImageBand(copy.at(0 - z * pitches[0] - y * pitches[1]), plane, pitches, axes, height, wide)
            tiles = b.minimum(cut.chunk, cut.tiles - tile0)
            for block in b.range(0, cut.blocks):
                channel = block * cut.block
                channels = b.minimum(cut.block, cut.depth - channel)
                b.call("copy", CopyCall(args, copy.pointer, image, wide, group * cut.depth + channel, channels, z,
                                        z_end - z, y, y_end - y).values())
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
        """The distance of positions in a row that read the same taps, except at the row's ends."""
        return self.window.stride[2] if self.transposed else self.b.lift(1)

    def _multiply(self, sums: Array, band: ImageBand, weights: Array, rows: Value, channels: Value, add: Value) -> None:
        """Adds up a tile's sums at all places of a band, over a block's channels, two places at a time where these read
        the same taps."""
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

    def _place(self, sums: Array, band: ImageBand, weights: Array, taps: tuple[Taps, Taps, Taps], next_one: Value,
               rows: Value, channels: Value, add: Value) -> None:
        """Adds up a tile's sums at one place, and also at the next place of its phase, which reads `next_one` further,
        unless that is 0."""
        b, w, mr, lanes = self.b, self.window, self.mr, self.lanes
        steps = w.kernel[1] * w.kernel[2] * mr, w.kernel[2] * mr, b.lift(mr)
        here = band.copy.at(_dot([t.source for t in taps], band.pitches)).pointer
        factors = weights.at(_dot([t.first for t in taps], steps))
        images = band.wide.equals(2)
        apart = b.select(images, b.lift(lanes), next_one * band.pitches[2])
        further = b.select(images, b.lift(1), self.phases) * (mr * lanes)
        loops = [(t.count, t.source_step * p, t.step * s) for t, p, s in zip(taps, band.pitches, steps, strict=True)]
        inner, outer = (channels, band.plane, self.cut.taps * mr), loops.pop()
        longer = channels >= outer[0]  # the longest loop is the innermost
        loops += [tuple(b.select(longer, x, y) for x, y in zip(*pair, strict=True))  # type: ignore[misc]
                  for pair in ((outer, inner), (inner, outer))]
        rest = [apart, further, add, *itertools.chain.from_iterable(loops)]
        with b.when(apart.equals(0)):
            b.call("multiply_1", [here, factors.pointer, sums.pointer, *rest, rows])
        with b.when(apart.differs(0)):  # two vectors: the registers hold sums of half of the rows
            step = row_step(self.isa)
            half = b.select(rows <= mr // 2, rows, b.lift(ceil_div(rows, 2 * step) * step))
            for first, count in ((b.lift(0), half), (half, rows - half)):
                b.call("multiply_2", [here, factors.at(first).pointer, sums.at(first * lanes).pointer, *rest, count])

    def _table(self, table: Array, x: int, first: Value, count: Value) -> list[Value]:
        """Fills in the taps of `count` positions on axis x; gives the begin and end of what they read."""
        b, w = self.b, self.window
        stride, dilate, pad, read = w.stride[x], w.dilate[x], w.pad[x], self.cut.read[x]
        ends = [read, b.lift(0)]
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

    def copy(self, given: CopyCall) -> None:
        """Copies a part of the images as [channel][d][h][w][image]; behind the last image it repeats that one.

        Each channel has a line more behind it: without that, channels would often lie a power of two apart.
        """
        b, w, s, lanes, wide, hs = self.b, self.window, self.strides, self.lanes, given.wide, given.hs
        width, target = self.cut.read[2], self.array(given.target)
        together = s[3].equals(s[4] * width)
        runs, count = b.select(together, b.lift(1), hs), b.select(together, hs * width, width)
        for v in b.range(0, wide):
            numbers = [b.minimum(given.image + v * lanes + i, w.batch - 1) * s[0] for i in range(lanes)]
            for c in b.range(0, given.channels):
                for z in b.range(0, given.ds):
                    for r in b.range(0, runs):
                        source = self.image.at((given.channel + c) * s[1] + (given.d + z) * s[2] + (given.h + r) * s[3])
                        place = (z * runs + r) * count * wide + v
                        here = target.at(c * (given.ds * hs * width * wide * lanes + self.line) + place * lanes)
                        self._copy_run(here, source, numbers, count, wide * lanes)

    def _copy_run(self, target: Array, source: Array, numbers: list[Value], count: Value, pitch: Value) -> None:
        """target[x][image] = source[number of the image + x]."""
        b, lanes, convert, step = self.b, self.lanes, self.loaded, self.strides[4]
        whole = b.select(step.equals(1), count - count % lanes, b.lift(0))
        for x in b.range(0, whole, lanes):
            rows = [convert(source.vector(number + x, lanes), source.dtype) for number in numbers]
            for i, row in enumerate(b.transpose(rows)):
                target.put((x + i) * pitch, row)
        for x in b.range(whole, count):
            for i, number in enumerate(numbers):
                target[x * pitch + i] = convert(source[number + x * step], source.dtype)

    def pack(self, target: Array, group: Value, tile0: Value, tiles: Value, channel: Value, channels: Value) -> None:
        """Packs weights as [tile][channel][tap][MR], with a vector more behind each tile; lines behind a tile's rows
        get anything."""
        b, cut, mr = self.b, self.cut, self.mr
        taps = cut.taps
        for t in b.range(0, tiles):
            row, rows = self.tile(tile0 + t)
            here = target.at(t * (channels * taps * mr + self.lanes))
            if self.transposed:
                source = self.weight.at(((group * cut.depth + channel) * cut.rows + row) * taps)
                parts = channels, cut.rows * taps, taps * mr
                pack_lines(self.epilogue, self.lanes, here, Lines(source, rows, taps, b.lift(1), taps), mr, parts)
            else:
                step = cut.depth * taps
                source = self.weight.at((group * cut.rows + row) * step + channel * taps)
                lines = Lines(source, rows, step, b.lift(1), channels * taps)
                pack_lines(self.epilogue, self.lanes, here, lines, mr)

    def finish(self, sums: Array, square: Array, image: Value, wide: Value, row: Value, rows: Value, pixel: Value,
               pixels: Value) -> None:
        """The epilogue over a tile's sums, [pixel][vector][row][image], a square of pixels and images at a time."""
        b, lanes, mr = self.b, self.lanes, self.mr
        for x in b.range(0, pixels, lanes):
            axes = inner_axes(b, self.g.flat, pixel + x, self.cut.written, lanes)
            whole, mask = pixels - x >= lanes, b.first_lanes(pixels - x, lanes)
            for v in b.range(0, wide):
                image0 = image + v * lanes
                images = b.minimum(lanes, self.window.batch - image0)
                for r in b.range(0, rows):
                    columns = [sums.vector((((x + i) * wide + v) * mr + r) * lanes, lanes) for i in range(lanes)]

                    def places(u: Value, image: Value = image0, r: Value = r, axes: list[Axis] = axes) -> list[Axis]:
                        return [image + u, row + r, *axes]

                    self.store_square(square, columns, images, whole, mask, places)
