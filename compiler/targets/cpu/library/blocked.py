"""Direct convolution of arrays whose channels lie in blocks: a vector holds the filters of one block.

A unit of work is a band of output rows of one image, and some of its filters:

    offsets of the band's pixels and of the kernel's taps, in the data or in the copy, unless these follow each other
    copy what the band reads, with zeros around it     only if `copied`: borders, other dtypes, plain arrays
    for each group of filters (`vectors` blocks), each grain of channels:
        for each tile of up to MR pixels:
            tile (+)= pixels x filters                 MR x `vectors` accumulators in registers
            after the last grain: the epilogue         in registers too, if it is brief

A pixel's channels are broadcast one by one, of bfloat16 in pairs, or, of numbers of 8 bits, four by four as the bytes
of an int32; weights come as one vector after the other. Tiles of a band differ by one pixel at most, so there is no
short last one; in a band with few pixels, each pixel is a tile.
"""
from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import BlockedConvolution, BlockedQuads
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import prefetch
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, Tiles, ceil_div, evenly, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Axis, Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.rows import fill_line, within_border
from mxc.compiler.targets.cpu.library.tile import (
    LIFT,
    multiply,
    multiply_pairs,
    multiply_quads,
    print_tiles,
    same_shape,
    sizes,
    zeros,
)
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND_PIXELS = 224  # a band has about so many output pixels
COPY_BYTES = 192 << 10  # a band's copy has at most so many bytes, unless the copy for one output row has more
GRAIN_BYTES = 128 << 10  # all tiles of a band read so many bytes of weights before they read the next ones


@dataclass(frozen=True)
class TilesCall(Parameters):
    """`count` tiles that follow each other.

    pixels, offsets: tables of where pixels and taps are in `data`. step: elements between channel blocks of the data.
    tile: where the first tile's sums are kept, with tile_step elements between two tiles. more: 1 if the sums begin
    with what is kept, else 0. last: 1 if the epilogue follows, else 0. image, block, pixel: where the first tile's
    results are in the output.
    """

    args: Pointer
    count: Integer
    blocks: Integer
    taps: Integer
    pixels: Pointer
    offsets: Pointer
    data: Pointer
    weights: Pointer
    step: Integer
    tile: Pointer
    tile_step: Integer
    more: Integer
    last: Integer
    image: Integer
    block: Integer
    pixel: Integer


@dataclass(frozen=True)
class BlockedCut(Generic[N]):
    """How a convolution is cut."""

    taps: N
    columns: int  # filters of a group
    blocks: N  # channel blocks of a convolution group
    filters: N  # filter groups of a convolution group
    height: N  # output rows of a band
    bands: N
    rows: N  # of the copy
    pitch: N  # pixels of a row of the copy
    chunk: N  # filter groups of a unit
    chunks: N
    grain: N  # channel blocks at once
    grains: N
    units: N

    @classmethod
    def of(cls, g: BlockedConvolution[N], isa: Isa) -> BlockedCut[N]:
        w, block = g.window, g.data_block
        size, (_, columns) = max(BYTES[g.dtype], 4), isa.tile(g.dtype)
        taps = volume(w.kernel)
        blocks = w.channels // block
        pitch = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilate[2] + 1
        reach = (w.kernel[1] - 1) * w.dilate[1] + 1
        height: N = most(1, BAND_PIXELS // most(1, w.out[2]))
        if g.copied:
            fitting = COPY_BYTES // size // most(1, w.channels * w.kernel[0] * pitch)
            height = least(height, most(1, (most(fitting, reach) - reach) // w.stride[1] + 1))
        bands: N = ceil_div(w.out[1], most(1, least(height, w.out[1])))
        height = ceil_div(w.out[1], most(1, bands))
        places = w.batch * w.groups * w.out[0] * bands
        filters: N = ceil_div(w.filters, columns)
        chunks: N = most(1, least(filters, ceil_div(UNITS * (1 - g.alone), most(1, places))))
        chunk, chunks = evenly(filters, chunks)
        grain: N = most(1, GRAIN_BYTES // size // columns // most(1, taps * block))
        grains: N = ceil_div(blocks, most(1, least(grain, blocks)))
        grain = ceil_div(blocks, most(1, grains))
        rows = (height - 1) * w.stride[1] + reach
        return cls(taps, columns, blocks, filters, height, bands, rows, pitch, chunk, chunks, grain, grains,
                   places * chunks)

    def layout(self: BlockedCut[N], g: BlockedConvolution[N], isa: Isa) -> tuple[N, N, N]:
        """In elements of the scratch: where the copy begins, where the tiles begin, and its size."""
        w = g.window
        lanes, wide = isa.lanes(g.dtype), 8 // max(BYTES[g.dtype], 4)
        pixels = self.height * w.out[2]
        copy: N = ceil_div((pixels + self.taps) * wide, 16) * 16
        tiles = copy
        if g.copied:
            lines = self.blocks * w.kernel[0] * most(1, self.rows)
            tiles = ceil_div(copy + lines * self.pitch * g.data_block + lanes, 16) * 16
        kept: N = most(isa.rows, least(self.grains - 1, 1) * pixels)  # a single grain needs a single tile
        return copy, tiles, tiles + kept * self.columns


def units(g: BlockedConvolution[int], isa: Isa) -> int:
    return BlockedCut.of(g, isa).units


def scratch_elements(g: BlockedConvolution[int], isa: Isa) -> int:
    return BlockedCut.of(g, isa).layout(g, isa)[2]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    g: BlockedConvolution[int] = p.geometry
    b, isa = p.b, p.isa

    def tile(pixels: int, vectors: int, values: list[Value]) -> None:
        given = TilesCall(*values)
        _Blocked(p, given.args).tiles(pixels, vectors, given)

    shapes = [(pixels, vectors) for pixels in (1, *sizes(isa.rows))
              for vectors in range(isa.vectors if g.whole else 1, isa.vectors + 1)]
    print_tiles(b, shapes, TilesCall.text(), tile, f"{TilesCall.text()}, i64 size, i64 vectors", same_shape)
    if g.copied:
        with b.function("copy", "ptr args, ptr noalias target, i64 image, i64 group, i64 d, i64 h", True) as f:
            args, target, *place = f
            _Blocked(p, args).copy(p.array(target), *place)
    where = "ptr args, ptr noalias tile, i64 image, i64 block, i64 vectors, i64 pixel, i64 pixels"
    with b.function("finish", where, True) as (args, tile_at, *place):
        _Blocked(p, args).finish(p.array(tile_at), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Blocked(p, args).units(args, first, last, scratch)


class _Blocked(Function):
    """One function of a kernel being printed."""

    g: BlockedConvolution[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        self.window, self.strides, self.block = self.g.window, self.g.data_strides, self.g.data_block
        self.data, self.weight = self.epilogue.buffers[:2]
        if self.g.paired:  # from here on a pair is an element of the computing dtype's size
            self.data, self.weight = printing.array(self.data.pointer), printing.array(self.weight.pointer)
        self.quads = isinstance(printing.geometry, BlockedQuads)
        if isinstance(self.g, BlockedQuads):
            self.signed = self.data.dtype == "int8"
            if not self.g.plain:  # what is read of the data is four numbers of 8 bits, not one
                self.data = self.array(self.data.pointer)

    @functools.cached_property
    def cut(self) -> BlockedCut[Value]:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return BlockedCut.of(self.g, self.isa)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut = self.b, self.window, self.cut
        memory = self.array(scratch)
        copy_at, tiles_at, _ = cut.layout(self.g, self.isa)
        copy, tiles = memory.at(copy_at), memory.at(tiles_at)
        pixels = Array(b, scratch, "int64")
        taps = pixels.at(cut.height * w.out[2])
        steps = self._steps()
        self._tap_offsets(taps, steps)
        keep = b.select(cut.grains > 1, b.lift(cut.columns), b.lift(0))  # elements kept of each pixel
        for unit in b.range(first, last):
            chunk = unit % cut.chunks
            image, group, d, band = split(unit // cut.chunks, (w.batch, w.groups, w.out[0], cut.bands))
            h = band * cut.height
            rows = b.minimum(cut.height, w.out[1] - h)
            count = rows * w.out[2]
            if not self.g.pointwise:
                self._pixel_offsets(pixels, rows, steps)
            if self.g.copied:
                b.call("copy", [args, copy.pointer, image, group, d, h])
                source = copy
            else:
                start = image * self.strides[0] + group * cut.blocks * self.strides[1]
                source = self.data.at(start + d * w.stride[0] * steps[1] + h * w.stride[1] * steps[2])
            cover = Tiles.of(count, self.isa.rows)
            rest = cover.count - cover.longer
            for f in b.range(chunk * cut.chunk, b.minimum((chunk + 1) * cut.chunk, cut.filters)):
                vectors = b.minimum(self.isa.vectors, w.filters // self.lanes - f * self.isa.vectors)
                for grain in b.range(0, cut.grains):
                    begin = grain * cut.grain
                    blocks = b.minimum(cut.grain, cut.blocks - begin)
                    row = ((group * cut.filters + f) * cut.blocks + begin) * cut.taps * (self.block * cut.columns)
                    weights, line = self.weight.at(row), source.at(begin * steps[0])
                    more = b.minimum(grain, 1)
                    last = b.select(grain.equals(cut.grains - 1), b.lift(1), b.lift(0))
                    first_block = group * (w.filters // self.lanes) + f * self.isa.vectors
                    runs = [(b.lift(0), cover.size + 1, cover.longer),
                            (cover.longer * (cover.size + 1), cover.size, rest)]
                    for p, here, tiles_here in runs:
                        pixel, table = (d * w.out[1] + h) * w.out[2] + p, pixels.at(p).pointer
                        data = (line.at(p * self.block) if self.g.pointwise else line).pointer
                        few = here < sizes(self.isa.rows)[0]
                        tiles_here, here = b.select(few, tiles_here * here, tiles_here), b.select(few, b.lift(1), here)
                        given = TilesCall(
                            args, tiles_here, blocks, cut.taps, table, taps.pointer, data, weights.pointer, steps[0],
                            tiles.at(p * keep).pointer, here * keep, more, last, image, first_block, pixel)
                        b.call("multiply", [*given.values(), here, vectors])

    def tiles(self, pixels: int, vectors: int, given: TilesCall) -> None:
        """Sums of data[pixel + tap] * weight[filter] over channels and taps, for `vectors` blocks of filters."""
        b, lanes, columns = self.b, self.lanes, self.isa.tile(self.dtype)[1]
        places = [i * columns + j * lanes for i in range(pixels) for j in range(vectors)]
        source, weight = self.array(given.data), self.array(given.weights)
        brief = self.g.flat and self.epilogue.brief and 2 * pixels > self.isa.rows  # smaller tiles are rare
        walks = [self.epilogue.walk([given.image, given.block + j, Lane(b.lift(0)), given.pixel], 3)
                 for j in range(vectors) if brief]
        for t in b.range(0, given.count):
            if self.g.pointwise:  # pixels follow each other
                begin = source.at(t * (pixels * self.block))
                lines = [(begin, i * self.block) for i in range(pixels)]
            else:
                starts = Array(b, given.pixels, "int64").at(t * pixels)
                lines = [(source.at(starts[i]), 0) for i in range(pixels)]
            kept = self.array(given.tile).at(t * given.tile_step)
            ahead = weight.at((b.minimum(t, self.block - 1) + self.block) * given.blocks * given.taps * columns)
            sums = zeros(b, self.dtype, lanes, len(places))
            for _ in b.range(0, given.more, carry=sums):
                sums[:] = [kept.vector(place, lanes) for place in places]
            self._add_blocks(sums, lines, ahead, given)
            with b.when(given.last.equals(0)) if brief else nullcontext():
                for total, place in zip(sums, places, strict=True):
                    kept.put(place, total)
            with b.when(given.last.differs(0)):
                if not brief:
                    where = [given.image, given.block, b.lift(vectors), given.pixel + t * pixels, b.lift(pixels)]
                    b.call("finish", [given.args, kept.pointer, *where])
                for j, walk in enumerate(walks):
                    first = walk.moved(t * pixels)
                    for i in range(pixels):
                        first.moved(i).store(sums[i * vectors + j], self.dtype)

    def _add_blocks(
        self, sums: list[Value], lines: list[tuple[Array, int]], ahead: Array, given: TilesCall,
    ) -> None:
        """Adds to a tile's sums what all blocks of channels and all taps give. lines: where each pixel's data begin.
        ahead: the weights that are asked for meanwhile."""
        b, columns, together = self.b, self.isa.tile(self.dtype)[1], self.g.together
        weight, tap_at = self.array(given.weights), Array(b, given.offsets, "int64")
        for k in b.range(0, given.blocks, carry=sums):
            block_at, rows = k * given.step, weight.at(k * given.taps * (self.block * columns))
            for tap in [b.lift(0)] if self.g.pointwise else b.range(0, given.taps, together, carry=sums):
                offset = block_at if self.g.pointwise else block_at + tap_at[tap]
                row = rows.at(tap * (self.block * columns))
                here = [(line.at(offset), place) for line, place in lines]
                if self.block > 1:
                    prefetch(ahead.at((k * given.taps + tap) * columns), 2)
                count = self.block * together
                if self.quads:
                    multiply_quads(b, self.isa, sums, here, row, columns, count, signed_row=True)
                else:
                    add = multiply_pairs if self.g.paired else multiply
                    add(b, self.isa, sums, here, row, columns, count)

    def _steps(self) -> list[Value]:
        """Elements between channel blocks, slices, rows and pixels of what the tiles read."""
        if not self.g.copied:
            return list(self.strides[1:])
        row = self.cut.pitch * self.block
        plane = row * self.cut.rows
        return [plane * self.window.kernel[0], plane, row, self.b.lift(self.block)]

    def _tap_offsets(self, taps: Array, steps: list[Value]) -> None:
        b, w = self.b, self.window
        depth = b.lift(1) if self.g.copied else w.dilate[0]  # the copy holds the slices that are read, only them
        for tap in b.range(0, self.cut.taps):
            kd, kh, kw = split(tap, w.kernel)
            taps[tap] = kd * depth * steps[1] + kh * w.dilate[1] * steps[2] + kw * w.dilate[2] * steps[3]

    def _pixel_offsets(self, pixels: Array, rows: Value, steps: list[Value]) -> None:
        b, w = self.b, self.window
        for r in b.range(0, rows):
            line, first = pixels.at(r * w.out[2]), r * w.stride[1] * steps[2]
            for x in b.range(0, w.out[2]):
                line[x] = first + x * w.stride[2] * steps[3]

    def copy(self, target: Array, image: Value, group: Value, d: Value, h: Value) -> None:
        """[channel block][kernel depth][rows][pitch][block]: what a band from output row `h` of slice `d` reads."""
        b, w, cut = self.b, self.window, self.cut
        left, width = w.pad[2], w.data[2]
        for k in b.range(0, cut.blocks):
            first = self.data.at(image * self.strides[0])
            if isinstance(self.g, BlockedQuads) and self.g.plain:
                planes = [first.at(b.minimum(k * 4 + i, self.g.planes - 1) * self.strides[1]) for i in range(4)]
            else:
                planes = [first.at((group * cut.blocks + k) * self.strides[1])]
            for kd in b.range(0, w.kernel[0]):
                z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
                for r in b.range(0, cut.rows):
                    y = h * w.stride[1] + r - w.pad[1]
                    inside = b.inside(z, w.data[0]) & b.inside(y, w.data[1])
                    begin, end = within_border(inside, left, width, cut.pitch)
                    line = target.at(((k * w.kernel[0] + kd) * cut.rows + r) * (cut.pitch * self.block))
                    rows = [plane.at(z * self.strides[2] + y * self.strides[3]) for plane in planes]
                    self._copy_row(line, rows, begin, end, left)

    def _copy_row(self, line: Array, rows: list[Array], begin: Value, end: Value, left: Value) -> None:
        """line[x] = row[x - left] for begin <= x < end, else 0. rows: the row, or those of four planes."""
        b, lanes, convert, zero, row = self.b, self.lanes, self.loaded, self.zero, rows[0]
        if self.g.paired:
            lanes, zero = self.block, b.zero(vector_type(TYPES[self.dtype], self.block))
        if self.block == 1 or self.quads:
            self._copy_together(line, rows, *(x * self.block for x in (begin, end, left, self.cut.pitch)))
            return
        for x in b.range(0, begin):
            line.put(x * lanes, zero)
        for x in b.range(begin, end):
            line.put(x * lanes, convert(row.vector((x - left) * self.strides[4], lanes), row.dtype))
        for x in b.range(end, self.cut.pitch):
            line.put(x * lanes, zero)

    def _copy_together(self, line: Array, rows: list[Array], begin: Value, end: Value, left: Value, pitch: Value,
                       ) -> None:
        """`_copy_row` of pixels that lie next to each other, in elements of these."""
        b, lanes, zero = self.b, self.lanes, self.zero
        flip = b.number(LIFT, zero.type) if self.quads and self.signed else None

        def read(x: Value, mask: Value | None = None) -> Value:
            parts = [row.vector(x - left, lanes, mask) for row in rows]
            if len(parts) == 1:
                made = self.loaded(parts[0], rows[0].dtype)
            else:  # a byte of each plane
                wide = [b.convert("zext", part, "i32") for part in parts]
                shifted = [b.binary("shl", part, b.number(8 * i, zero.type)) for i, part in enumerate(wide)]
                made = functools.reduce(functools.partial(b.binary, "or"), shifted)
            return made if flip is None else b.binary("xor", made, flip)

        fill_line(lanes, line, (begin, end, pitch), read, zero if flip is None else flip)

    def finish(self, tile: Array, image: Value, block: Value, vectors: Value, pixel: Value, pixels: Value) -> None:
        """The epilogue over a finished tile: `pixels` pixels from flat position `pixel` on, `vectors` filter blocks."""
        b, w, lanes, columns = self.b, self.window, self.lanes, self.isa.tile(self.dtype)[1]
        for j in b.range(0, vectors):
            for i in b.range(0, pixels):
                place = [pixel + i] if self.g.flat else split(pixel + i, w.out)
                axes: list[Axis] = [image, block + j, Lane(b.lift(0)), *place]
                self.epilogue.store(axes, tile.vector(i * columns + j * lanes, lanes), self.dtype)
