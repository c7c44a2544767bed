"""Convolutions by the tiles of AMX, as `word_calls.tiled_convolution` defines them.

A unit of work is a band of output rows of one image, and some of its filters:

    copy what the band reads, so that a pixel's channels lie side by side, 64 bytes of them where there are so many
    for each group of filters (`vectors` blocks), each grain of the depth:
        for each two tiles of up to 16 pixels:
            two tiles of sums by two (+)= pixels x filters
            after the last grain: the sums are stored, and the epilogue runs over them

A tile (amx.py) reads pixels that lie equally far apart. So the copy has the pixels of each phase of the strides
together, and the results of a band are computed as one long row: what lies between the rows of results, under the
kernel's reach, is computed too and left. Plain data are copied as they lie, and a tile has pixels of one row of
results.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.word_geometry import TiledConvolution
from mxc.compiler.targets.cpu.emit.builder import Array, Builder, Value, lanes_of, vector_type
from mxc.compiler.targets.cpu.library.amx import (
    AT_ONCE,
    CONFIGURATION,
    LINE,
    ROWS,
    WORD,
    TilesCall,
    configure,
    print_multiply,
    release,
)
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Axis, Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.rows import fill_line, within_border
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND_PIXELS = 224  # a band has about so many output pixels
COPY_BYTES = 256 << 10  # a band's copy has at most so many bytes, unless the copy for one output row has more
FEWEST_PIXELS = 64  # a band has at least about so many, where there are more bands than these sizes ask for
COPY_WORTH = 12  # filters of so many groups take several times as long to multiply, with one tap, as a copy takes
GRAIN_BYTES = 32 << 10  # all tiles of a band read so many bytes of weights before they read the next ones


@dataclass(frozen=True)
class TiledCut(Generic[N]):
    """How a convolution is cut."""

    steps: N  # rows of tiles that a pixel has
    filters: N  # filter groups of a convolution group
    height: N  # output rows of a band
    bands: N
    phases: tuple[N | int, N | int]  # of rows and of pixels in a row, which the copy has one after the other
    rows: N  # of a phase of the copy
    pitch: N  # pixels of such a row
    line: N  # pixels from one row of results to the next, as they are computed
    apart: N | int  # words between pixels
    chunk: N  # filter groups of a unit
    chunks: N
    grain: N  # steps at once
    grains: N
    units: N

    @classmethod
    def of(cls, g: TiledConvolution[N]) -> TiledCut[N]:
        w = g.window
        reach = [(w.kernel[x] - 1) * w.dilate[x] for x in (1, 2)]
        height: N = most(1, BAND_PIXELS // most(1, w.out[2]))
        phases: tuple[N | int, N | int] = 1, 1
        if g.plain:
            pitch, line = (w.out[2] - 1) * w.stride[2] + reach[1] + 1, ceil_div(w.out[2], ROWS) * ROWS
            apart: N | int = w.stride[2]
        else:
            phases = least(w.stride[1], reach[0] + 1), least(w.stride[2], reach[1] + 1)
            pitch = w.out[2] + reach[1] // w.stride[2]
            line, apart = pitch, g.depth
        fitting = COPY_BYTES // WORD // most(1, w.channels * w.kernel[0] * phases[0] * phases[1] * pitch)
        lines = (fitting - reach[0] - 1) // w.stride[1] + 1 if g.plain else fitting - reach[0] // w.stride[1]
        height = least(height, most(1, lines))
        bands: N = ceil_div(w.out[1], most(1, least(height, w.out[1])))
        places, filters = w.batch * w.groups * w.out[0], ceil_div(w.filters, g.columns)
        # Units of one band copy it again: for few taps it is better to have more bands.
        chunks: N = least(ceil_div(UNITS, most(1, places * bands)), filters * volume(w.kernel) // COPY_WORTH)
        least_rows: N = ceil_div(FEWEST_PIXELS, most(1, w.out[2]))
        wanted: N = ceil_div(UNITS, most(1, places * most(1, chunks)))
        bands = most(bands, least(wanted, w.out[1] // least_rows))
        height = ceil_div(w.out[1], most(1, bands))
        bands = ceil_div(w.out[1], most(1, height))
        chunk, chunks = evenly(filters, most(1, least(filters, chunks)))
        rows = (height - 1) * w.stride[1] + reach[0] + 1 if g.plain else height + reach[0] // w.stride[1]
        steps = w.channels * volume(w.kernel) // g.depth
        grains: N = most(1, ceil_div(steps, GRAIN_BYTES // WORD // g.columns // g.depth))
        grain: N = ceil_div(steps, grains)
        return cls(steps, filters, height, bands, phases, rows, pitch, line, apart, chunk, chunks, grain, grains,
                   places * bands * chunks)

    def layout(self: TiledCut[N], g: TiledConvolution[N]) -> tuple[int, N, N, N]:
        """In words of the scratch: where the steps' offsets begin, the copy, and the sums, and its size. The tiles'
        configuration is in front of them, and behind the copy there is what tiles read beyond its last pixels."""
        offsets = CONFIGURATION // WORD
        copy: N = ceil_div(offsets + 2 * self.steps, ROWS) * ROWS
        planes = g.window.channels * g.window.kernel[0] * self.phases[0] * self.phases[1]
        sums: N = ceil_div(copy + planes * self.rows * self.pitch + ROWS * self.apart + ROWS, ROWS) * ROWS
        band: N = ceil_div(self.height * self.line, AT_ONCE * ROWS)
        kept: N = most(1, least(self.grains - 1, 1) * band)  # a single grain needs two tiles
        return offsets, copy, sums, sums + kept * (AT_ONCE * ROWS) * g.columns


def units(g: TiledConvolution[int], isa: Isa) -> int:
    return TiledCut.of(g).units


def scratch_elements(g: TiledConvolution[int], isa: Isa) -> int:
    return TiledCut.of(g).layout(g)[3]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    g: TiledConvolution[int] = p.geometry
    b = p.b

    print_multiply(p, g.depth, g.columns)
    with b.function("copy", "ptr args, ptr noalias target, i64 image, i64 group, i64 d, i64 h", True) as f:
        args, target, *place = f
        _Tiled(p, args).copy(Array(b, target, "int32"), *place)
    where = "ptr args, ptr noalias tile, i64 image, i64 block, i64 vectors, i64 pixel, i64 pixels"
    with b.function("finish", where, True) as (args, tile_at, *place):
        _Tiled(p, args).finish(p.array(tile_at), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Tiled(p, args).run(first, last, scratch)


def _exchanged(b: Builder, vectors: list[Value], unit: int) -> list[Value]:
    """Parts of `unit` elements of vectors, a power of 2 of them, in another order: the first part of each, the second
    part of each, and so on, as vectors again."""
    half, size, made = len(vectors) // 2, lanes_of(vectors[0].type), []
    if not half:
        return vectors
    wide = half * unit
    for x, y in zip(*(_exchanged(b, each, unit) for each in (vectors[:half], vectors[half:])), strict=True):
        picks = [start + k + i for k in range(0, size, wide) for start in (0, size) for i in range(wide)]
        made += [b.shuffle(x, y, picks[:size]), b.shuffle(x, y, picks[size:])]
    return made


class _Tiled(Function):
    """One function of a kernel being printed."""

    g: TiledConvolution[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        self.args, self.window, self.strides = args, self.g.window, self.g.data_strides
        self.data, self.weight = (Array(self.b, each.pointer, "int32") for each in self.epilogue.buffers[:2])

    @functools.cached_property
    def cut(self) -> TiledCut[Value]:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return TiledCut.of(self.g)

    def run(self, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, g = self.b, self.window, self.cut, self.g
        memory = Array(b, scratch, "int32")
        offsets_at, copy_at, sums_at, _ = cut.layout(g)
        copy, sums, offsets = memory.at(copy_at), memory.at(sums_at), Array(b, memory.at(offsets_at).pointer, "int64")
        configure(b, scratch, b.lift(ROWS), g.depth)
        self._offsets(offsets)
        keep = b.select(cut.grains > 1, b.lift(g.columns), b.lift(0))  # elements kept of each pixel
        for unit in b.range(first, last):
            chunk = unit % cut.chunks
            image, group, d, band = split(unit // cut.chunks, (w.batch, w.groups, w.out[0], cut.bands))
            h = band * cut.height
            rows = b.minimum(cut.height, w.out[1] - h)
            b.call("copy", [self.args, copy.pointer, image, group, d, h])
            count, pixel = rows * cut.line, (d * w.out[1] + h) * w.out[2]
            for f in b.range(chunk * cut.chunk, b.minimum((chunk + 1) * cut.chunk, cut.filters)):
                vectors = b.minimum(AT_ONCE, w.filters // self.lanes - f * AT_ONCE)
                first_block = group * (w.filters // self.lanes) + f * AT_ONCE
                for grain in b.range(0, cut.grains):
                    begin = grain * cut.grain
                    steps, ends = b.minimum(cut.grain, cut.steps - begin), grain.equals(cut.grains - 1)
                    row = ((group * cut.filters + f) * cut.steps + begin) * (g.depth * g.columns)
                    for v in b.range(0, count, AT_ONCE * ROWS):
                        here = sums.at(v * keep)
                        start, other = (copy.at(self._place(v + i * ROWS)).pointer for i in range(AT_ONCE))
                        tiles = b.select(count - v > ROWS, b.lift(AT_ONCE), b.lift(1))
                        given = TilesCall(start, other, b.lift(cut.apart * WORD), offsets.at(begin).pointer, steps,
                                          self.weight.at(row).pointer, here.pointer, b.minimum(grain, 1))
                        b.call("multiply", [*given.values(), tiles, vectors])
                        with b.when(ends):
                            self._finish_tiles(here, v, count, [image, first_block, vectors], pixel)
        release(b)

    def _place(self, pixel: Value) -> Value:
        """Where a pixel of a band begins in what tiles read, in words."""
        cut = self.cut
        if not self.g.plain:
            return pixel * self.g.depth
        return pixel // cut.line * (cut.pitch * self.window.stride[1]) + pixel % cut.line * cut.apart

    def _offsets(self, offsets: Array) -> None:
        """How many bytes behind a pixel's place the words of each step are."""
        b, w, cut, g = self.b, self.window, self.cut, self.g
        row, plane = cut.pitch, cut.rows * cut.pitch
        taps = [w.kernel[0], w.kernel[1], b.lift(1) if g.plain else w.kernel[2]]
        for step in b.range(0, cut.steps):
            k, kd, kh, kw = split(step, (cut.steps, *taps))
            if g.plain:
                offsets[step] = ((k * w.kernel[0] + kd) * plane + kh * w.dilate[1] * row) * WORD
                continue
            (down, below), (along, right) = ((x % s, x // s) for x, s in (
                (kh * w.dilate[1], w.stride[1]), (kw * w.dilate[2], w.stride[2])))
            phase = ((k * w.kernel[0] + kd) * cut.phases[0] + down) * cut.phases[1] + along
            offsets[step] = (phase * plane + below * row + right) * (g.depth * WORD)

    def copy(self, target: Array, image: Value, group: Value, d: Value, h: Value) -> None:
        """[channels of a tile][kernel depth][phases][rows][pitch][depth], or, of plain data, [channels of a word]
        [kernel depth][rows][pitch]: what a band from output row `h` of slice `d` reads."""
        b, w, cut, g = self.b, self.window, self.cut, self.g
        start, parts = image * self.strides[0], 1 if g.plain else g.depth // g.data_block
        for k in b.range(0, w.channels // (1 if g.plain else g.depth)):
            for kd in b.range(0, w.kernel[0]):
                z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
                plane = (k * w.kernel[0] + kd) * (cut.rows * cut.pitch * cut.phases[0] * cut.phases[1])
                if g.plain:
                    self._copy_plane(target.at(plane), k, start + z * self.strides[2], h, b.inside(z, w.data[0]))
                    continue
                block = (group * w.channels // g.data_block + k * parts) * self.strides[1]
                sources = [self.data.at(start + block + i * self.strides[1] + z * self.strides[2])
                           for i in range(parts)]
                self._copy_blocks(target.at(plane * g.depth), sources, h, b.inside(z, w.data[0]))

    def _copy_blocks(self, target: Array, sources: list[Array], h: Value, there: Value) -> None:
        """The phases of rows, with the channels of several blocks side by side."""
        b, w, cut, g = self.b, self.window, self.cut, self.g
        zero, together = b.zero(vector_type("i32", g.depth)), LINE // WORD // g.data_block
        follow = w.stride[2].equals(1) & self.strides[4].equals(g.data_block)
        at_once = len(sources) == together
        for down in b.range(0, cut.phases[0]):
            for along in b.range(0, cut.phases[1]):
                for r in b.range(0, cut.rows):
                    y, x0 = (h + r) * w.stride[1] + down - w.pad[1], along - w.pad[2]
                    line = target.at((((down * cut.phases[1] + along) * cut.rows + r) * cut.pitch) * g.depth)
                    inside = there & b.inside(y, w.data[1])
                    begin = b.select(inside, b.minimum(ceil_div(w.pad[2] - along, w.stride[2]), cut.pitch), cut.pitch)
                    reach = ceil_div(w.data[2] + w.pad[2] - along, w.stride[2])
                    end = b.select(inside, b.minimum(reach, cut.pitch), cut.pitch)
                    for x in b.range(0, begin):
                        line.put(x * g.depth, zero)
                    row = y * self.strides[3] + x0 * self.strides[4]
                    whole = begin
                    if at_once:
                        whole = begin + b.select(follow, (end - begin) // together * together, b.lift(0))
                        for x in b.range(begin, whole, together):
                            given = [source.vector(row + x * g.data_block, LINE // WORD) for source in sources]
                            for i, pixel in enumerate(_exchanged(b, given, g.data_block)):
                                line.put((x + i) * g.depth, pixel)
                    for x in b.range(whole, end):
                        at = row + x * w.stride[2] * self.strides[4]
                        for i, source in enumerate(sources):
                            line.put(x * g.depth + i * g.data_block, source.vector(at, g.data_block))
                    for x in b.range(end, cut.pitch):
                        line.put(x * g.depth, zero)

    def _copy_plane(self, target: Array, k: Value, start: Value, h: Value, there: Value) -> None:
        """The rows of the planes that word `k` of each pixel holds."""
        b, w, cut, g, lanes = self.b, self.window, self.cut, self.g, self.lanes
        per, zero = self.printing.geometry.numbers_of_a_word, self.b.zero(vector_type("i32", lanes))
        given = Array(b, self.data.pointer, self.epilogue.buffers[0].dtype)
        planes = [k * per + i for i in range(per)]
        for r in b.range(0, cut.rows):
            y = h * w.stride[1] + r - w.pad[1]
            begin, end = within_border(there & b.inside(y, w.data[1]), w.pad[2], w.data[2], cut.pitch)
            rows = [given.at(start + b.minimum(plane, g.planes - 1) * self.strides[1] + y * self.strides[3])
                    for plane in planes]
            line = target.at(r * cut.pitch)

            def read(x: Value, mask: Value | None = None, rows: list[Array] = rows) -> Value:
                made = zero
                for i, row in enumerate(rows):
                    wide = b.convert("zext", row.vector(x - w.pad[2], lanes, mask), "i32")
                    part = b.binary("shl", wide, b.number(32 // per * i, zero.type))
                    made = b.binary("or", made, b.select(planes[i] < g.planes, part, zero))
                return made

            fill_line(lanes, line, (begin, end, cut.pitch), read, zero)

    def _finish_tiles(self, sums: Array, v: Value, count: Value, place: list[Value], first: Value) -> None:
        """The epilogue over the tiles from pixel `v` of a band's `count` on: over the parts that belong to rows of
        results. place: image, first filter block, how many of these. first: the band's first pixel in the output."""
        b, line, wide = self.b, self.cut.line, self.window.out[2]
        end, together = b.minimum(v + AT_ONCE * ROWS, count), line.equals(wide)
        with b.when(together):
            b.call("finish", [self.args, sums.pointer, *place, first + v, end - v])
        with b.when_not(together):
            for y in b.range(v // line, ceil_div(end, line)):
                x = b.maximum(v - y * line, 0)
                here = sums.at((y * line + x - v) * self.g.columns)
                b.call("finish", [self.args, here.pointer, *place, first + y * wide + x,
                                  b.minimum(end - y * line, wide) - x])

    def finish(self, tile: Array, image: Value, block: Value, vectors: Value, pixel: Value, pixels: Value) -> None:
        """The epilogue over finished sums: `pixels` pixels from flat position `pixel` on, `vectors` filter blocks."""
        b, w, lanes, columns = self.b, self.window, self.lanes, self.g.columns
        for j in b.range(0, vectors):
            here = tile.at(j * lanes)
            axes: list[Axis] = [image, block + j, Lane(b.lift(0))]
            if self.g.flat:
                walk = self.epilogue.walk([*axes, pixel], 3)
                for i in b.range(0, pixels):
                    walk.moved(i).store(here.vector(i * columns, lanes), self.dtype)
                continue
            for i in b.range(0, pixels):
                self.epilogue.store([*axes, *split(pixel + i, w.out)], here.vector(i * columns, lanes), self.dtype)
