"""Direct convolution of arrays whose channels lie in blocks: a vector holds the filters of one block.

A unit of work is a band of output rows of one image, and some of its filters:

    offsets of the band's pixels and of the kernel's taps, in the data or in the copy, unless these follow each other
    copy what the band reads, with zeros around it     only if `copied`: borders, other dtypes, plain arrays
    for each group of filters (`vectors` blocks), each grain of channels:
        for each tile of up to MR pixels:
            tile (+)= pixels x filters                 MR x `vectors` accumulators in registers
            after the last grain: the epilogue         in registers too, if it is brief

A pixel's channels are broadcast one by one; weights come as one vector after the other. Tiles of a band differ by one
pixel at most, so there is no short last one; of a band with few pixels each is a tile.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import UNITS, ceil_div, least, most, prefetch
from mxc.compiler.targets.cpu.library.convolution import split, volume
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.library.tile import multiply, sizes
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND_PIXELS = 224  # output pixels of a band, about
COPY_BYTES = 192 << 10  # of a band's copy, if a row is not larger
GRAIN_BYTES = 128 << 10  # of the weights that all tiles of a band read before the next ones
# `count` tiles that follow each other. step: elements between channel blocks of the data. tile: where the sums go,
# unless `last`, with the elements between two tiles; more: 1 if they begin with what is there. The rest: where the
# first tile's results are in the output.
TILES = ("ptr args, i64 count, i64 blocks, i64 taps, ptr pixels, ptr offsets, ptr data, ptr weights, i64 step, "
         "ptr tile, i64 tile_step, i64 more, i64 last, i64 image, i64 block, i64 pixel")


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    taps: Number
    columns: int  # filters of a group
    blocks: Number  # channel blocks of a convolution group
    filters: Number  # filter groups of a convolution group
    height: Number  # output rows of a band
    bands: Number
    rows: Number  # of the copy
    pitch: Number  # pixels of a row of the copy
    chunk: Number  # filter groups of a unit
    chunks: Number
    grain: Number  # channel blocks at once
    grains: Number
    units: Number

    @classmethod
    def of(cls, w: Window, alone: Number, params: dict[str, Any], isa: Isa) -> Cut:
        """For the sizes `w`, which are numbers of Python or of the printed program, as `alone` is."""
        dtype, block = params["dtype"], params["data_block"]
        size, (_, columns) = max(BYTES[dtype], 4), isa.tile(dtype)
        taps: Any = volume(w.kernel)
        blocks: Any = w.channels // block
        pitch: Any = (w.out[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilate[2] + 1
        reach: Any = (w.kernel[1] - 1) * w.dilate[1] + 1
        height: Any = most(1, BAND_PIXELS // most(1, w.out[2]))
        if params["copied"]:
            fitting = COPY_BYTES // size // most(1, w.channels * w.kernel[0] * pitch)
            height = least(height, most(1, (most(fitting, reach) - reach) // w.stride[1] + 1))
        bands: Any = ceil_div(w.out[1], most(1, least(height, w.out[1])))
        height = ceil_div(w.out[1], most(1, bands))
        places: Any = w.batch * w.groups * w.out[0] * bands
        filters: Any = ceil_div(w.filters, columns)
        chunks: Any = most(1, least(filters, ceil_div(UNITS * (1 - alone), most(1, places))))
        chunk = most(1, ceil_div(filters, chunks))
        chunks = ceil_div(filters, chunk)
        grain: Any = most(1, GRAIN_BYTES // size // columns // most(1, taps * block))
        grains = ceil_div(blocks, most(1, least(grain, blocks)))
        grain = ceil_div(blocks, most(1, grains))
        rows = (height - 1) * w.stride[1] + reach
        return cls(taps, columns, blocks, filters, height, bands, rows, pitch, chunk, chunks, grain, grains,
                   places * chunks)

    def layout(self, w: Window, params: dict[str, Any], isa: Isa) -> tuple[Number, Number, Number]:
        """In elements of the scratch: where the copy begins, where the tiles begin, and its size."""
        dtype, block = params["dtype"], params["data_block"]
        lanes, wide = isa.lanes(dtype), 8 // max(BYTES[dtype], 4)
        pixels: Any = self.height * w.out[2]
        copy = ceil_div((pixels + self.taps) * wide, 16) * 16
        tiles: Any = copy
        if params["copied"]:
            lines: Any = self.blocks * w.kernel[0] * most(1, self.rows)
            tiles = ceil_div(copy + lines * self.pitch * block + lanes, 16) * 16
        kept = most(isa.rows, least(self.grains - 1, 1) * pixels)  # a single grain needs a single tile
        return copy, tiles, tiles + kept * self.columns


def units(kernel: CallKernel, isa: Isa) -> int:
    return int(_cut(kernel, isa).units)  # type: ignore[arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    w, params = Window.of(kernel.extents), dict(kernel.params)
    return int(_cut(kernel, isa).layout(w, params, isa)[2])  # type: ignore[arg-type]


def _cut(kernel: CallKernel, isa: Isa) -> Cut:
    return Cut.of(Window.of(kernel.extents), kernel.extents[-1], dict(kernel.params), isa)


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    params = dict(kernel.params)
    shapes = [(pixels, vectors) for pixels in (1, *sizes(isa.rows))
              for vectors in range(isa.vectors if params["whole"] else 1, isa.vectors + 1)]
    for pixels, vectors in shapes:
        with b.function(f"tiles_{pixels}_{vectors}", TILES, True) as (args, *rest):
            _Blocked(kernel, b, isa, dtype, epilogue_of(args)).tiles(pixels, vectors, args, *rest)
    with b.function("multiply", f"{TILES}, i64 size, i64 vectors", True) as (*rest, size, vectors_here):
        for pixels, vectors in shapes:
            with b.when(size.equals(pixels) & vectors_here.equals(vectors)):
                b.leave(f"tiles_{pixels}_{vectors}", rest)
    if params["copied"]:
        with b.function("copy", "ptr args, ptr noalias target, i64 image, i64 group, i64 d, i64 h", True) as f:
            args, target, *place = f
            _Blocked(kernel, b, isa, dtype, epilogue_of(args)).copy(Array(b, target, dtype), *place)
    where = "ptr args, ptr noalias tile, i64 image, i64 block, i64 vectors, i64 pixel, i64 pixels"
    with b.function("finish", where, True) as (args, tile, *place):
        _Blocked(kernel, b, isa, dtype, epilogue_of(args)).finish(Array(b, tile, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        _Blocked(kernel, b, isa, dtype, epilogue_of(args)).units(args, first, last, scratch)


class _Blocked:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, isa: Isa, dtype: str, epilogue: Epilogue):
        self.b, self.isa, self.dtype, self.epilogue = b, isa, dtype, epilogue
        self.lanes = isa.lanes(dtype)
        self.params: dict[str, Any] = dict(kernel.params)
        self.block, self.copied, self.flat, self.pointwise = (
            self.params[k] for k in ("data_block", "copied", "flat", "pointwise"))
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        *self.strides, self.alone = epilogue.extents[22:]
        self.data, self.weight = epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> Any:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return Cut.of(self.window, self.alone, self.params, self.isa)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut = self.b, self.window, self.cut
        memory = Array(b, scratch, self.dtype)
        copy_at, tiles_at, _ = cut.layout(w, self.params, self.isa)
        copy, tiles = memory.at(copy_at), memory.at(tiles_at)
        pixels = Array(b, scratch, "int64")
        taps = pixels.at(cut.height * w.out[2])
        steps = self._steps()
        self._tap_offsets(taps, steps)
        keep = b.select(b.lift(cut.grains) > 1, b.lift(cut.columns), b.lift(0))  # elements of a pixel that is kept
        for unit in b.range(first, last):
            chunk = unit % cut.chunks
            image, group, d, band = split(unit // cut.chunks, (w.batch, w.groups, w.out[0], cut.bands))
            h = band * cut.height
            rows = b.minimum(cut.height, w.out[1] - h)
            count = rows * w.out[2]
            if not self.pointwise:
                self._pixel_offsets(pixels, rows, steps)
            if self.copied:
                b.call("copy", [args, copy.pointer, image, group, d, h])
                source = copy
            else:
                start = image * self.strides[0] + group * cut.blocks * self.strides[1]
                source = self.data.at(start + d * w.stride[0] * steps[1] + h * w.stride[1] * steps[2])
            tile_count = ceil_div(count, self.isa.rows)
            size = count // b.maximum(tile_count, 1)
            longer = count - size * tile_count
            rest = tile_count - longer
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
                    for p, here, tiles_here in ((b.lift(0), size + 1, longer), (longer * (size + 1), size, rest)):
                        pixel, table = (d * w.out[1] + h) * w.out[2] + p, pixels.at(p).pointer
                        data = (line.at(p * self.block) if self.pointwise else line).pointer
                        few = b.lift(here) < sizes(self.isa.rows)[0]
                        tiles_here, here = b.select(few, tiles_here * here, tiles_here), b.select(few, b.lift(1), here)
                        b.call("multiply", [
                            args, tiles_here, blocks, b.lift(cut.taps), table, taps.pointer, data, weights.pointer,
                            steps[0], tiles.at(p * keep).pointer, here * keep, more, last, image, first_block, pixel,
                            here, vectors])

    def tiles(
        self, pixels: int, vectors: int, args: Value, count: Value, blocks: Value, taps: Value, pixel_table: Value,
        tap_table: Value, data: Value, weights: Value, step: Value, tile: Value, tile_step: Value, more: Value,
        last: Value, image: Value, block: Value, pixel: Value,
    ) -> None:
        """Sums of data[pixel + tap] * weight[filter] over channels and taps, for `vectors` blocks of filters."""
        b, lanes, columns = self.b, self.lanes, self.isa.tile(self.dtype)[1]
        grid = [(i, j) for i in range(pixels) for j in range(vectors)]
        places = [i * columns + j * lanes for i, j in grid]
        together = self.params["together"]
        source, tap_at, weight = Array(b, data, self.dtype), Array(b, tap_table, "int64"), Array(b, weights, self.dtype)
        brief = self.flat and self.epilogue.brief and 2 * pixels > self.isa.rows  # smaller tiles are rare
        walks = [self.epilogue.walk([image, block + j, Lane(b.lift(0)), pixel], 3) for j in range(vectors) if brief]
        for t in b.range(0, count):
            if self.pointwise:  # pixels follow each other
                begin = source.at(t * (pixels * self.block))
                lines = [(begin, i * self.block) for i in range(pixels)]
            else:
                starts = Array(b, pixel_table, "int64").at(t * pixels)
                lines = [(source.at(starts[i]), 0) for i in range(pixels)]
            kept = Array(b, tile, self.dtype).at(t * tile_step)
            ahead = weight.at((b.minimum(t, self.block - 1) + self.block) * blocks * taps * columns)
            sums = [b.zero(vector_type(TYPES[self.dtype], lanes)) for _ in places]
            for _ in b.range(0, more, carry=sums):
                sums[:] = [kept.vector(place, lanes) for place in places]
            for k in b.range(0, blocks, carry=sums):
                block_at, rows = k * step, weight.at(k * taps * (self.block * columns))
                for tap in [b.lift(0)] if self.pointwise else b.range(0, taps, together, carry=sums):
                    offset = block_at if self.pointwise else block_at + tap_at[tap]
                    row = rows.at(tap * (self.block * columns))
                    here = [(line.at(offset), place) for line, place in lines]
                    if self.block > 1:
                        prefetch(ahead.at((k * taps + tap) * columns), 2)
                    multiply(b, self.isa, sums, here, row, columns, self.block * together)
            with b.when(last.equals(0)) if brief else nullcontext():
                for total, place in zip(sums, places, strict=True):
                    kept.put(place, total)
            with b.when(last.differs(0)):
                if not brief:
                    where = [image, block, b.lift(vectors), pixel + t * pixels, b.lift(pixels)]
                    b.call("finish", [args, kept.pointer, *where])
                for j, walk in enumerate(walks):
                    first = walk.moved(t * pixels)
                    for i in range(pixels):
                        first.moved(i).store(sums[i * vectors + j], self.dtype)

    def _steps(self) -> list[Value]:
        """Elements between channel blocks, slices, rows and pixels of what the tiles read."""
        if not self.copied:
            return list(self.strides[1:])
        row = self.b.lift(self.cut.pitch * self.block)
        plane = row * self.cut.rows
        return [plane * self.window.kernel[0], plane, row, self.b.lift(self.block)]

    def _tap_offsets(self, taps: Array, steps: list[Value]) -> None:
        b, w = self.b, self.window
        depth = b.lift(1) if self.copied else b.lift(w.dilate[0])  # the copy holds the slices that are read, only them
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
        left, width = b.lift(w.pad[2]), b.lift(w.data[2])
        for k in b.range(0, cut.blocks):
            plane = self.data.at(image * self.strides[0] + (group * cut.blocks + k) * self.strides[1])
            for kd in b.range(0, w.kernel[0]):
                z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
                for r in b.range(0, cut.rows):
                    y = h * w.stride[1] + r - w.pad[1]
                    inside = b.inside(z, w.data[0]) & b.inside(y, w.data[1])
                    begin = b.select(inside, b.minimum(left, cut.pitch), b.lift(cut.pitch))
                    end = b.select(inside, b.minimum(left + width, cut.pitch), b.lift(cut.pitch))
                    line = target.at(((k * w.kernel[0] + kd) * cut.rows + r) * (cut.pitch * self.block))
                    row = plane.at(z * self.strides[2] + y * self.strides[3])
                    self._copy_row(line, row, begin, end, left)

    def _copy_row(self, line: Array, row: Array, begin: Value, end: Value, left: Value) -> None:
        """line[x] = row[x - left] for begin <= x < end, else 0."""
        b, lanes, convert = self.b, self.lanes, self.epilogue.arithmetic.loaded
        zero = b.zero(vector_type(TYPES[self.dtype], lanes))
        if self.block == 1:  # pixels lie next to each other; what a last vector writes too much is overwritten later
            for x in b.range(0, begin, lanes):
                line.put(x, zero)
            whole = end - (end - begin) % lanes
            for x in b.range(begin, whole, lanes):
                line.put(x, convert(row.vector(x - left, lanes), row.dtype))
            for x in b.range(whole, end, lanes):
                line.put(x, convert(row.vector(x - left, lanes, b.first_lanes(end - x, lanes)), row.dtype))
            for x in b.range(end, self.cut.pitch, lanes):
                line.put(x, zero)
            return
        for x in b.range(0, begin):
            line.put(x * lanes, zero)
        for x in b.range(begin, end):
            line.put(x * lanes, convert(row.vector((x - left) * self.strides[4], lanes), row.dtype))
        for x in b.range(end, self.cut.pitch):
            line.put(x * lanes, zero)

    def finish(self, tile: Array, image: Value, block: Value, vectors: Value, pixel: Value, pixels: Value) -> None:
        """The epilogue over a finished tile: `pixels` pixels from flat position `pixel` on, `vectors` filter blocks."""
        b, w, lanes, columns = self.b, self.window, self.lanes, self.isa.tile(self.dtype)[1]
        for j in b.range(0, vectors):
            for i in b.range(0, pixels):
                place: list[Any] = [pixel + i] if self.flat else split(pixel + i, w.out)
                axes = [image, block + j, Lane(b.lift(0)), *place]
                self.epilogue.store(axes, tile.vector(i * columns + j * lanes, lanes), self.dtype)
