"""Convolution of plain arrays, image by image: a vector holds neighbouring pixels of one filter's result.

A unit of work is a band of an image's pixels, and some of its filters:

    pack what the band reads                   [panel of NR pixels][channel, tap][NR]: it stays in a core's cache
    for each tile of MR filters:
        for each panel:
            tile = weights x panel             MR x NR accumulators in registers
            the epilogue                       in registers too, if it is brief and the tile whole

Pointwise kernels of stride 1 pack pixels as they follow each other in memory, so that a band is any number of panels.
For others a band is a few rows: of each channel and tap, what these read is brought together in a line of the scratch,
with zeros for what lies outside, and goes to the panels from there.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

from mxc.compiler.kernel.geometry import PanelConvolution, QuadConvolution
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Number, Value
from mxc.compiler.targets.cpu.library.blocks import prefetch
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.rows import Row, bring, reached
from mxc.compiler.targets.cpu.library.tile import add_products, multiply_quads, print_tiles, zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

PANELS = 16  # a band has at most so many panels, unless one output row fills more
PANEL_BYTES = 128 << 10  # the panels of a band have at most so many bytes, unless one panel or output row has more
LINES = 8  # so many lines are brought before they go to the panels: reading what was just written is slow
AHEAD = 2  # a channel's data are asked for so many channels before they are packed


@dataclass(frozen=True)
class TilesCall(Parameters):
    """`count` panels by one tile of filters.

    pitch: elements between panels. tile: where sums go that `finish` is to store. rows, columns: how many filters and
    pixels of a panel there are. image, channel, pixel: where the first results are in the output.
    """

    args: Pointer
    count: Integer
    depth: Integer
    panels: Pointer
    pitch: Integer
    weights: Pointer
    tile: Pointer
    rows: Integer
    columns: Integer
    image: Integer
    channel: Integer
    pixel: Integer


@dataclass(frozen=True)
class PanelCut(Generic[N]):
    """How a convolution is cut."""

    depth: N  # channels x taps
    height: N  # output rows of a band; if the window is pointwise, its panels
    bands: N
    panels: N  # of a band
    pitch: N  # elements between panels: a line more than they have, lest all begin at one place of the cache
    tiles: N  # of a group's filters
    chunk: N  # tiles of a unit
    chunks: N
    units: N

    @classmethod
    def of(cls, g: PanelConvolution[N], isa: Isa) -> PanelCut[N]:
        w, (mr, nr) = g.window, isa.tile(g.dtype)
        depth = w.channels * volume(w.kernel)
        fitting: N = most(1, least(PANELS, PANEL_BYTES // BYTES[g.dtype] // nr // most(1, depth)))
        pixels, width = volume(w.out), most(1, w.out[2])
        if g.pointwise:
            there: N = ceil_div(pixels, nr)
            bands: N = ceil_div(there, fitting)
            height = panels = ceil_div(there, most(1, bands))
            bands = ceil_div(there, most(1, panels))
        else:
            height = most(1, least(fitting * nr // width, w.out[1]))
            bands = ceil_div(w.out[1], height)
            height = ceil_div(w.out[1], most(1, bands))
            panels = ceil_div(height * width, nr)
        tiles: N = ceil_div(w.filters, mr)
        places = w.batch * w.groups * bands
        chunks: N = most(1, least(tiles, ceil_div(UNITS, most(1, places))))
        chunk, chunks = evenly(tiles, chunks)
        return cls(depth, height, bands, panels, depth * nr + nr, tiles, chunk, chunks, places * chunks)

    def layout(self: PanelCut[N], g: PanelConvolution[N], isa: Isa) -> tuple[N, N, N]:
        """In elements of the scratch: where a line begins, where a tile begins, and its size."""
        mr, nr = isa.tile(g.dtype)
        line = self.panels * self.pitch
        lines = LINES * self.panels * nr + isa.lanes(g.dtype)
        tile: N = line if g.pointwise else ceil_div(line + lines, 16) * 16
        return line, tile, tile + mr * nr


def units(g: PanelConvolution[int], isa: Isa) -> int:
    return PanelCut.of(g, isa).units


def scratch_elements(g: PanelConvolution[int], isa: Isa) -> int:
    return PanelCut.of(g, isa).layout(g, isa)[2]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, isa = p.b, p.isa

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        given = TilesCall(*values)
        _Panels(p, given.args).tiles(rows, vectors, given)

    def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
        given = TilesCall(*values)
        narrow = given.columns <= isa.lanes(p.dtype)

        def fits(rows: int, vectors: int) -> Value:
            there = (given.rows > rows - 2) & (given.rows <= rows)
            return there & (narrow if vectors == 1 else b.negate(narrow))

        return fits

    shapes = [(rows, vectors) for rows in range(2, isa.rows + 2, 2) for vectors in (1, isa.vectors)]
    print_tiles(b, shapes, TilesCall.text(), tile, TilesCall.text(), fits_of)
    where = "ptr args, ptr noalias panels, ptr noalias line, i64 image, i64 group, i64 first, i64 count"
    with b.function("pack", where, True) as (args, panels, line, *place):
        made = _Panels(p, args)
        pack = made.pack_pixels if made.g.pointwise else made.pack_rows
        pack(p.array(panels), p.array(line), *place)
    where = "ptr args, ptr noalias tile, i64 rows, i64 columns, i64 image, i64 channel, i64 pixel"
    with b.function("finish", where, True) as (args, tile_at, *place):
        _Panels(p, args).finish(p.array(tile_at), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Panels(p, args).units(args, first, last, scratch)


class _Panels(Function):
    """One function of a kernel being printed."""

    g: PanelConvolution[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        self.rows, self.columns = self.isa.tile(self.dtype)
        self.window, self.strides = self.g.window, self.g.data_strides
        self.data, self.weight = self.epilogue.buffers[:2]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, mr, nr = self.b, self.window, self.rows, self.columns
        cut = PanelCut.of(self.g, self.isa)
        line_at, tile_at, _ = cut.layout(self.g, self.isa)
        memory = self.array(scratch)
        line, tile = memory.at(line_at).pointer, memory.at(tile_at).pointer
        rows, step = (ceil_div(volume(w.out), nr), b.lift(nr)) if self.g.pointwise else (w.out[1], w.out[2])
        for unit in b.range(first, last):
            chunk = unit % cut.chunks
            image, group, band = split(unit // cut.chunks, (w.batch, w.groups, cut.bands))
            begin = band * cut.height
            pixel = begin * step
            pixels = b.minimum(b.minimum(cut.height, rows - begin) * step, volume(w.out) - pixel)
            with b.when(unit.equals(first) | chunk.equals(0)):  # else the unit before has packed it
                b.call("pack", [args, scratch, line, image, group, pixel if self.g.pointwise else begin, pixels])
            whole = pixels // nr
            rest = pixels - whole * nr
            for f in b.range(chunk * cut.chunk, b.minimum((chunk + 1) * cut.chunk, cut.tiles)):
                weights = self.weight.at((group * cut.tiles + f) * (cut.depth * mr)).pointer
                there, channel = b.minimum(mr, w.filters - f * mr), group * w.filters + f * mr
                here = TilesCall(args, whole, cut.depth, scratch, cut.pitch, weights, tile, there, b.lift(nr), image,
                                 channel, pixel)
                b.call("multiply", here.values())
                with b.when(rest > 0):
                    panel = memory.at(whole * cut.pitch).pointer
                    last_one = replace(here, count=b.lift(1), panels=panel, columns=rest, pixel=pixel + whole * nr)
                    b.call("multiply", last_one.values())

    def tiles(self, rows: int, vectors: int, given: TilesCall) -> None:
        """Sums of weight[filter] * panel[pixel] over the depth, for `rows` filters and `vectors` vectors of pixels."""
        b, lanes, args, image, channel = self.b, self.lanes, given.args, given.image, given.channel
        grid = [(i, j) for i in range(rows) for j in range(vectors)]
        factors, kept = self.array(given.weights), self.array(given.tile)
        brief = self.g.flat and self.epilogue.brief and vectors > 1
        walks = [self.epilogue.walk([image, channel, Lane(given.pixel + j * lanes)], 2)
                 for j in range(vectors) if brief]
        directly = given.rows.equals(rows) & given.columns.equals(self.columns)
        for t in b.range(0, given.count):
            panel = self.array(given.panels).at(t * given.pitch)
            sums = zeros(b, self.dtype, lanes, len(grid))
            for k in b.range(0, given.depth, carry=sums):
                row, line = factors.at(k * self.rows), panel.at(k * self.columns)
                if isinstance(self.printing.geometry, QuadConvolution):
                    multiply_quads(b, self.isa, sums, [(row, i) for i in range(rows)], line)
                else:
                    add_products(b, lanes, sums, [(row, i) for i in range(rows)], line)

            def keep(t: Value = t, sums: list[Value] = sums) -> None:
                for (i, j), total in zip(grid, sums, strict=True):
                    kept.put(i * self.columns + j * lanes, total)
                b.call("finish", [args, given.tile, given.rows, given.columns, image, channel,
                                  given.pixel + t * self.columns])

            def store(t: Value = t, sums: list[Value] = sums) -> None:
                here = [walk.moved(t * self.columns).turned(1) for walk in walks]
                for (i, j), total in zip(grid, sums, strict=True):
                    here[j].moved(i).store(total, self.dtype)

            if brief:
                b.either(directly, store, keep)
            else:
                keep()

    def finish(self, tile: Array, rows: Value, columns: Value, image: Value, channel: Value, pixel: Value) -> None:
        """The epilogue over a tile: `rows` filters from `channel` on, `columns` pixels from flat place `pixel` on."""
        b, w, lanes = self.b, self.window, self.lanes
        for j in b.range(0, columns, lanes):
            mask = b.first_lanes(columns - j, lanes)
            axes = inner_axes(b, self.g.flat, pixel + j, w.out, lanes)
            for r in b.range(0, rows):
                vector = tile.vector(r * self.columns + j, lanes)
                self.epilogue.store([image, channel + r, *axes], vector, self.dtype, mask)

    # --- packing

    def _plane(self, image: Value, group: Value) -> Array:
        return self.data.at(image * self.strides[0] + group * self.window.channels * self.strides[1])

    def pack_pixels(self, panels: Array, _: Array, image: Value, group: Value, first: Value, count: Value) -> None:
        """Panels of the pixels first <= p < first + count of all channels of a group."""
        b, lanes, nr, cut = self.b, self.lanes, self.columns, PanelCut.of(self.g, self.isa)
        plane, whole = self._plane(image, group).at(first), count // nr
        masks = [b.first_lanes(count - whole * nr - j, lanes) for j in range(0, nr, lanes)]
        for c in b.range(0, self.window.channels):
            source, target = plane.at(c * self.strides[1]), panels.at(c * nr)
            self._spread(target, source, whole, cut.pitch, AHEAD * self.strides[1])
            with b.when(whole * nr < count):
                for j, mask in enumerate(masks):
                    vector = source.vector(whole * nr + j * lanes, lanes, mask)
                    target.put(whole * cut.pitch + j * lanes, vector)

    def _spread(self, target: Array, source: Array, panels: Number, pitch: Number, ahead: Value | None = None) -> None:
        """Copies what follows each other in `source` to one line of each of so many panels. ahead: how many elements
        further on memory is asked for meanwhile."""
        for p in self.b.range(0, panels):
            here, there = source.at(p * self.columns), target.at(p * pitch)
            if ahead is not None:
                prefetch(here.at(ahead))
            for j in range(0, self.columns, self.lanes):
                there.put(j, here.vector(j, self.lanes))

    def pack_rows(self, panels: Array, line: Array, image: Value, group: Value, first: Value, count: Value) -> None:
        """Panels of the output rows from `first` on, `count` pixels, of all channels and taps."""
        b, w, nr, cut = self.b, self.window, self.columns, PanelCut.of(self.g, self.isa)
        plane, width, there = self._plane(image, group), w.out[2], ceil_div(count, nr)
        lines, taps, pitch = w.channels * w.kernel[1], w.kernel[1] * w.kernel[2], cut.panels * nr
        for kw in b.range(0, w.kernel[2]):
            left = kw * w.dilate[2] - w.pad[2]  # where the first pixel of a row reads
            begin, end = reached(b, left, w.stride[2], w.data[2], width)
            for some in b.range(0, lines, LINES):
                last = b.minimum(some + LINES, lines)
                for x in b.range(some, last):
                    c, kh = split(x, (lines, w.kernel[1]))
                    channel, to = plane.at(c * self.strides[1] + left), line.at((x - some) * pitch)
                    for y in b.range(0, count // width):
                        source = (first + y) * w.stride[1] + kh * w.dilate[1] - w.pad[1]
                        inside = b.inside(source, w.data[1])
                        part = b.select(inside, begin, width), b.select(inside, end, width)
                        self._bring(to.at(y * width), channel.at(source * self.strides[3]), part, width,
                                    w.data[2] - left)
                for x in b.range(some, last):
                    c, kh = split(x, (lines, w.kernel[1]))
                    target = panels.at((c * taps + kh * w.kernel[2] + kw) * nr)
                    self._spread(target, line.at((x - some) * pitch), there, cut.pitch)

    def _bring(self, line: Array, row: Array, part: tuple[Value, Value], width: Value, readable: Value) -> None:
        b, stride = self.b, self.g.stride
        if stride:
            ahead = None if stride == 1 else self.strides[1] * AHEAD
            bring(self.lanes, line, Row(row, part, stride, readable, ahead), width, self.loaded)
            return
        for x in b.range(0, width):
            line[x] = b.number(0.0, TYPES[self.dtype])
        for x in b.range(*part):
            line[x] = row[x * self.window.stride[2]]
