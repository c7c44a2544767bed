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
from dataclasses import dataclass
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import UNITS, ceil_div, least, most, prefetch
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split, volume
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.library.rows import bring, reached
from mxc.compiler.targets.cpu.library.tile import add_products
from mxc.compiler.targets.cpu.machine.isa import Isa

PANELS = 16  # of a band, at most
PANEL_BYTES = 128 << 10  # of a band's panels, if one is not larger
LINES = 8  # that are brought together before they go to the panels: what is read just after it was written is slow
AHEAD = 2  # channels that are asked for before they are packed
# `count` panels by one tile of filters. pitch: elements between panels. tile: where sums go that `finish` is to store.
# rows, columns: how many filters and pixels of a panel there are. The rest: where the first results are in the output.
TILES = ("ptr args, i64 count, i64 depth, ptr panels, i64 pitch, ptr weights, ptr tile, i64 rows, i64 columns, "
         "i64 image, i64 channel, i64 pixel")


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    depth: Number  # channels x taps
    height: Number  # output rows of a band; of a pointwise one: panels
    bands: Number
    panels: Number  # of a band
    pitch: Number  # elements between panels: a line more than they have, lest all begin at one place of the cache
    tiles: Number  # of a group's filters
    chunk: Number  # tiles of a unit
    chunks: Number
    units: Number

    @classmethod
    def of(cls, w: Window, params: dict[str, Any], isa: Isa) -> Cut:
        """For the sizes `w`, which are numbers of Python or of the printed program."""
        mr, nr = isa.tile(params["dtype"])
        depth: Any = w.channels * volume(w.kernel)
        fitting = most(1, least(PANELS, PANEL_BYTES // BYTES[params["dtype"]] // nr // most(1, depth)))
        pixels, width = volume(w.out), most(1, w.out[2])
        if params["pointwise"]:
            there: Any = ceil_div(pixels, nr)
            bands: Any = ceil_div(there, fitting)
            height = panels = ceil_div(there, most(1, bands))
            bands = ceil_div(there, most(1, panels))
        else:
            height = most(1, least(fitting * nr // width, w.out[1]))
            bands = ceil_div(w.out[1], height)
            height = ceil_div(w.out[1], most(1, bands))
            panels = ceil_div(height * width, nr)
        tiles: Any = ceil_div(w.filters, mr)
        places: Any = w.batch * w.groups * bands
        chunks: Any = most(1, least(tiles, ceil_div(UNITS, most(1, places))))
        chunk = most(1, ceil_div(tiles, chunks))
        chunks = ceil_div(tiles, chunk)
        return cls(depth, height, bands, panels, depth * nr + nr, tiles, chunk, chunks, places * chunks)

    def layout(self, w: Window, params: dict[str, Any], isa: Isa) -> tuple[Number, Number, Number]:
        """In elements of the scratch: where a line begins, where a tile begins, and its size."""
        mr, nr = isa.tile(params["dtype"])
        line = self.panels * self.pitch
        lines: Any = LINES * self.panels * nr + isa.lanes(params["dtype"])
        tile = line if params["pointwise"] else ceil_div(line + lines, 16) * 16
        return line, tile, tile + mr * nr


def _cut(kernel: CallKernel, isa: Isa) -> Cut:
    return Cut.of(Window.of(kernel.extents), dict(kernel.params), isa)


def units(kernel: CallKernel, isa: Isa) -> int:
    return int(_cut(kernel, isa).units)  # type: ignore[arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    return int(_cut(kernel, isa).layout(Window.of(kernel.extents), dict(kernel.params), isa)[2])  # type: ignore[arg-type]


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    def printer(args: Value) -> _Panels:
        return _Panels(kernel, b, isa, dtype, epilogue_of(args))

    counts = range(2, isa.rows + 2, 2)
    shapes = [(rows, vectors) for rows in counts for vectors in (1, isa.vectors)]
    for rows, vectors in shapes:
        with b.function(f"tiles_{rows}_{vectors}", TILES, True) as (args, *rest):
            printer(args).tiles(rows, vectors, args, *rest)
    with b.function("multiply", TILES, True) as arguments:
        there, columns = arguments[7], arguments[8]
        narrow = columns <= isa.lanes(dtype)
        for rows, vectors in shapes:
            fits = (there > rows - 2) & (there <= rows) & (narrow if vectors == 1 else b.negate(narrow))
            with b.when(fits):
                b.leave(f"tiles_{rows}_{vectors}", arguments)
    where = "ptr args, ptr noalias panels, ptr noalias line, i64 image, i64 group, i64 first, i64 count"
    with b.function("pack", where, True) as (args, panels, line, *place):
        made = printer(args)
        pack = made.pack_pixels if made.pointwise else made.pack_rows
        pack(Array(b, panels, dtype), Array(b, line, dtype), *place)
    where = "ptr args, ptr noalias tile, i64 rows, i64 columns, i64 image, i64 channel, i64 pixel"
    with b.function("finish", where, True) as (args, tile, *place):
        printer(args).finish(Array(b, tile, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        printer(args).units(args, first, last, scratch)


class _Panels:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, isa: Isa, dtype: str, epilogue: Epilogue):
        self.b, self.isa, self.dtype, self.epilogue = b, isa, dtype, epilogue
        self.lanes, (self.rows, self.columns) = isa.lanes(dtype), isa.tile(dtype)
        self.params: dict[str, Any] = dict(kernel.params)
        self.pointwise, self.flat = self.params["pointwise"], self.params["flat"]
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        self.strides = epilogue.extents[22:]
        self.data, self.weight = epilogue.buffers[:2]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, mr, nr = self.b, self.window, self.rows, self.columns
        cut: Any = Cut.of(w, self.params, self.isa)
        line_at, tile_at, _ = cut.layout(w, self.params, self.isa)
        memory = Array(b, scratch, self.dtype)
        line, tile = memory.at(line_at).pointer, memory.at(tile_at).pointer
        rows, step = (ceil_div(volume(w.out), nr), nr) if self.pointwise else (w.out[1], w.out[2])
        for unit in b.range(first, last):
            chunk = unit % cut.chunks
            image, group, band = split(unit // cut.chunks, (w.batch, w.groups, cut.bands))
            begin = band * cut.height
            pixel = begin * step
            pixels = b.minimum(b.minimum(cut.height, rows - begin) * step, volume(w.out) - pixel)
            with b.when(unit.equals(first) | chunk.equals(0)):  # else it is there
                b.call("pack", [args, scratch, line, image, group, b.lift(pixel if self.pointwise else begin), pixels])
            whole = pixels // nr
            rest = pixels - whole * nr
            for f in b.range(chunk * cut.chunk, b.minimum((chunk + 1) * cut.chunk, cut.tiles)):
                weights = self.weight.at((group * cut.tiles + f) * (cut.depth * mr)).pointer
                there, channel = b.minimum(mr, w.filters - f * mr), group * w.filters + f * mr
                b.call("multiply", [args, whole, cut.depth, scratch, cut.pitch, weights, tile, there, b.lift(nr), image,
                                    channel, pixel])
                with b.when(rest > 0):
                    b.call("multiply", [args, b.lift(1), cut.depth, memory.at(whole * cut.pitch).pointer, cut.pitch,
                                        weights, tile, there, rest, image, channel, pixel + whole * nr])

    def tiles(
        self, rows: int, vectors: int, args: Value, count: Value, depth: Value, panels: Value, pitch: Value,
        weights: Value, tile: Value, there: Value, columns: Value, image: Value, channel: Value, pixel: Value,
    ) -> None:
        """Sums of weight[filter] * panel[pixel] over the depth, for `rows` filters and `vectors` vectors of pixels."""
        b, lanes = self.b, self.lanes
        grid = [(i, j) for i in range(rows) for j in range(vectors)]
        factors, kept = Array(b, weights, self.dtype), Array(b, tile, self.dtype)
        brief = self.flat and self.epilogue.brief and vectors > 1
        walks = [self.epilogue.walk([image, channel, Lane(pixel + j * lanes)], 2) for j in range(vectors) if brief]
        directly = there.equals(rows) & columns.equals(self.columns)
        for t in b.range(0, count):
            panel = Array(b, panels, self.dtype).at(t * pitch)
            sums = [b.zero(vector_type(TYPES[self.dtype], lanes)) for _ in grid]
            for k in b.range(0, depth, carry=sums):
                row, line = factors.at(k * self.rows), panel.at(k * self.columns)
                add_products(b, lanes, sums, [(row, i) for i in range(rows)], line)

            def keep(t: Value = t, sums: list[Value] = sums) -> None:
                for (i, j), total in zip(grid, sums, strict=True):
                    kept.put(i * self.columns + j * lanes, total)
                b.call("finish", [args, tile, there, columns, image, channel, pixel + t * self.columns])

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
            axes = inner_axes(b, self.flat, pixel + j, w.out, lanes)
            for r in b.range(0, rows):
                vector = tile.vector(r * self.columns + j, lanes)
                self.epilogue.store([image, channel + r, *axes], vector, self.dtype, mask)

    # --- packing

    def _plane(self, image: Value, group: Value) -> Array:
        return self.data.at(image * self.strides[0] + group * self.window.channels * self.strides[1])

    def pack_pixels(self, panels: Array, _: Array, image: Value, group: Value, first: Value, count: Value) -> None:
        """Panels of the pixels first <= p < first + count of all channels of a group."""
        b, lanes, nr, cut = self.b, self.lanes, self.columns, Cut.of(self.window, self.params, self.isa)
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
        """What follows each other in `source`, to one line of so many panels. ahead: elements to what is read then."""
        for p in self.b.range(0, panels):
            here, there = source.at(p * self.columns), target.at(p * pitch)
            if ahead is not None:
                prefetch(here.at(ahead))
            for j in range(0, self.columns, self.lanes):
                there.put(j, here.vector(j, self.lanes))

    def pack_rows(self, panels: Array, line: Array, image: Value, group: Value, first: Value, count: Value) -> None:
        """Panels of the output rows from `first` on, `count` pixels, of all channels and taps."""
        b, w, nr, cut = self.b, self.window, self.columns, Cut.of(self.window, self.params, self.isa)
        plane, width, there = self._plane(image, group), b.lift(w.out[2]), ceil_div(count, nr)
        lines, taps, pitch = w.channels * w.kernel[1], w.kernel[1] * w.kernel[2], b.lift(cut.panels * nr)
        for kw in b.range(0, w.kernel[2]):
            left = kw * w.dilate[2] - w.pad[2]  # where the first pixel of a row reads
            begin, end = reached(b, left, w.stride[2], w.data[2], width)
            for some in b.range(0, lines, LINES):
                last = b.minimum(some + LINES, lines)
                for x in b.range(some, last):
                    c, kh = split(x, (0, w.kernel[1]))
                    channel, to = plane.at(c * self.strides[1] + left), line.at((x - some) * pitch)
                    for y in b.range(0, count // width):
                        source = (first + y) * w.stride[1] + kh * w.dilate[1] - w.pad[1]
                        inside = b.inside(source, w.data[1])
                        part = b.select(inside, begin, width), b.select(inside, end, width)
                        self._bring(to.at(y * width), channel.at(source * self.strides[3]), part, width,
                                    w.data[2] - left)
                for x in b.range(some, last):
                    c, kh = split(x, (0, w.kernel[1]))
                    target = panels.at((c * taps + kh * w.kernel[2] + kw) * nr)
                    self._spread(target, line.at((x - some) * pitch), there, cut.pitch)

    def _bring(self, line: Array, row: Array, part: tuple[Value, Value], width: Value, readable: Value) -> None:
        b, lanes, stride = self.b, self.lanes, self.params["stride"]
        if stride:
            ahead = None if stride == 1 else self.strides[1] * AHEAD
            bring(b, lanes, line, row, part, width, stride, readable, self.epilogue.arithmetic.loaded, ahead)
            return
        for x in b.range(0, width):
            line[x] = b.number(0.0, TYPES[self.dtype])
        for x in b.range(*part):
            line[x] = row[x * self.window.stride[2]]
