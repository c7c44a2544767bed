"""The gradient of a convolution to its weight: sums over pixels of data (broadcast) times out_grad (filters in lanes).

A unit of work is some channels of a group and some panels of its filters:

    offsets of the channels' taps in the copy
    for each block of the depth: some images, or a band of one's rows
        copy what the block reads of the channels, with zeros around it
        offsets of the block's pixels in the copy and in a panel
        for each panel of filters:
            pack out_grad's pixels                     [pixel][NR]
            for each tile of up to MR lines (a channel's tap each):
                tile (+)= lines x panel                MR x NR accumulators in registers
            after the last block: the epilogue, over squares of the tiles, transposed

So every tap reads the same copy, at another offset, and no image is unfolded. On small maps the lines of a tile are
channels of one tap, and the pixels those at which it reads inside of the image: no multiply-adds with zeros.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import ConvolutionWeightGrad
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Value
from mxc.compiler.targets.cpu.library.blocks import Lines, pack_lines
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, Tiles, ceil_div, evenly, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Axis
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, NoAlias, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.rows import bring_rows, reached
from mxc.compiler.targets.cpu.library.tile import add_in_turn, keep_sums, print_tiles, same_shape, zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

PIXELS = 384  # a block has about so many pixels: a panel of them stays in the nearest cache
POINT_PIXELS = 800  # that for kernels of one tap: long pieces of the data are copied, and few times
LINES = 144  # a unit has about so many lines
LINES_FACTOR = 4  # a unit has up to so many times LINES where a block has few pixels: packing panels then costs less
FEW_PIXELS = 100  # in images of at most so many pixels, products with zeros outside cost more than tiles of one tap do
COPY_BYTES = 384 << 10  # the copy of a block has at most so many bytes, unless that of one channel has more
AHEAD = 2  # a channel's data are asked for so many channels before they are copied
KEPT_BYTES = 96 << 10  # the tiles of a unit have at most so many bytes, unless those of one panel have more


@dataclass(frozen=True)
class WeightGradCut(Generic[N]):
    """How a gradient is cut."""

    taps: N
    inside: N  # 1: the pixels are those at which a tap reads inside of the image; 0: all
    images: N  # of a block
    height: N  # output rows of a band
    bands: N
    blocks: N
    rows: N  # of the copy
    pitch: N  # pixels of a row of the copy
    plane: N  # elements of the copy of a channel of an image
    chunk: N  # channels of a unit
    chunks: N
    panels: N  # of the filters of a group
    group: N  # panels of a unit
    groups: N
    units: N

    @classmethod
    def of(cls, g: ConvolutionWeightGrad[N], isa: Isa) -> WeightGradCut[N]:
        w, dtype = g.window, computing_dtype(g.dtype)
        size, columns = BYTES[dtype], isa.tile(dtype)[1]
        taps: N = volume(w.kernel)
        width: N = most(1, w.out[2])
        pitch: N = (width - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilate[2] + 1
        pixels: N = PIXELS + (1 - least(1, taps - 1)) * (POINT_PIXELS - PIXELS)
        height: N = least(most(1, w.out[1]), most(1, pixels // width))
        bands: N = most(1, ceil_div(w.out[1], height))
        height = most(1, ceil_div(w.out[1], bands))
        rows: N = (height - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilate[1] + 1
        plane: N = w.kernel[0] * rows * pitch
        several: N = least(1, most(0, w.channels - isa.rows + 1)) * least(1, taps - 1) * least(1, w.pad[1] + w.pad[2])
        few: N = least(1, FEW_PIXELS // most(1, w.data[1] * w.data[2])) * most(0, 2 - bands)
        inside: N = several * few
        images: N = least(most(1, w.batch), most(1, pixels // (1 + inside) // most(1, height * width)))
        parts: N = ceil_div(w.batch, images)
        images = most(1, ceil_div(w.batch, most(1, parts)))
        more: N = most(0, least(LINES_FACTOR, pixels // most(1, images * height * width)) - 1) * least(1, taps - 1)
        lines: N = LINES * (1 + more)
        chunk: N = most(1, least(lines // taps, COPY_BYTES // size // (images * plane)))
        chunks: N = ceil_div(w.channels, chunk)
        whole: N = 1 + inside * (isa.rows - 1)
        chunk = most(1, ceil_div(ceil_div(w.channels, most(1, chunks)), whole) * whole)
        chunks = ceil_div(w.channels, chunk)
        panels: N = ceil_div(w.filters, columns)
        blocks: N = most(1, parts * w.out[0] * bands)  # at least one, because sums over nothing are 0
        kept: N = KEPT_BYTES // size // columns // (chunk * taps)
        group: N = most(1, least(panels, kept + panels * (1 - least(1, blocks - 1))))
        groups: N = most(ceil_div(panels, group), least(panels, ceil_div(UNITS, most(1, w.groups * chunks))))
        group, groups = evenly(panels, most(1, groups))
        return cls(taps, inside, images, height, bands, blocks, rows, pitch, plane, chunk, chunks, panels, group,
                   groups, w.groups * chunks * groups)

    def layout(self: WeightGradCut[N], g: ConvolutionWeightGrad[N], isa: Isa) -> tuple[N, N, N, N, N]:
        """In elements of the scratch, after the tables: where the copy, the panel, a square and the tiles begin, and
        its size."""
        dtype = computing_dtype(g.dtype)
        lanes, columns, size = isa.lanes(dtype), isa.tile(dtype)[1], BYTES[dtype]
        pixels = self.images * self.height * most(1, g.window.out[2])
        lines = self.chunk * self.taps
        numbers = (1 + self.inside * (self.taps - 1)) * (pixels + 1) + lines + 3
        copy: N = ceil_div(numbers * 8 // size, 16) * 16
        panel: N = ceil_div(copy + self.images * self.chunk * self.plane + lanes, 16) * 16
        square = panel + ceil_div(pixels * columns + lanes, 16) * 16
        tiles = square + lanes * lanes
        kept: N = most(1, least(self.blocks - 1, 1) * self.group)  # a single block needs a single panel's tiles
        return copy, panel, square, tiles, tiles + kept * (ceil_div(lines, lanes) * lanes) * columns


def units(g: ConvolutionWeightGrad[int], isa: Isa) -> int:
    return WeightGradCut.of(g, isa).units


def scratch_elements(g: ConvolutionWeightGrad[int], isa: Isa) -> int:
    return WeightGradCut.of(g, isa).layout(g, isa)[-1]


@dataclass(frozen=True)
class TileCall(Parameters):
    """Sums over `pixels` pixels of some lines of the copy times a panel of filters.

    offsets: of each pixel in the copy and in the panel, in 32 bits. starts: where each line begins in the copy. c: the
    sums, which are added to what is there if `add`. pitch: from each line to the next.
    """

    pixels: Integer
    offsets: Pointer
    starts: Pointer
    copy: Pointer
    panel: Pointer
    c: NoAlias
    add: Integer
    pitch: Integer


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, isa = p.b, p.isa

    def tile(lines: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, lines, vectors, TileCall(*values))

    shapes = [(lines, vectors) for lines in range(1, isa.rows + 1) for vectors in range(1, isa.vectors + 1)]
    print_tiles(b, shapes, TileCall.text(), tile, f"{TileCall.text()}, i64 lines, i64 vectors", same_shape,
                ("tile", "multiply"))
    where = "ptr args, ptr noalias target, i64 group, i64 channel, i64 channels, i64 image, i64 images, i64 d, i64 h"
    with b.function("copy", where, True) as (args, target, *place):
        _WeightGrad(p, args).copy(p.array(target), *place)
    where = "ptr args, ptr noalias target, i64 filter, i64 filters, i64 image, i64 images, i64 d, i64 h, i64 rows"
    with b.function("pack", where, True) as (args, target, *place):
        _WeightGrad(p, args).pack(p.array(target), *place)
    where = "ptr args, ptr noalias tiles, ptr noalias square, i64 filter, i64 filters, i64 line, i64 lines"
    with b.function("finish", where, True) as (args, tiles, square, *place):
        _WeightGrad(p, args).finish(p.array(tiles), p.array(square), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _WeightGrad(p, args).units(args, first, last, scratch)


def _print_tile(p: Printing, lines: int, vectors: int, given: TileCall) -> None:
    """c[line][filter] = (add ? c : 0) + sum over pixels of copy[start of the line + pixel] * panel[pixel][filter]."""
    b, lanes, columns, pitch = p.b, p.isa.lanes(p.dtype), p.isa.tile(p.dtype)[1], given.pitch
    pixel_at, start_at = Array(b, given.offsets, "int32"), Array(b, given.starts, "int64")
    source, right, sums_at = p.array(given.copy), p.array(given.panel), p.array(given.c)
    line_at = [source.at(start_at[pitch * i]) for i in range(lines)]
    sums = zeros(b, p.dtype, lanes, lines * vectors)
    for n in b.range(0, given.pixels, carry=sums):
        offset, place = (b.convert("sext", pixel_at[n * 2 + i], "i64") for i in range(2))
        row = right.at(place)
        add_in_turn(b, p.isa, sums, [(line, offset) for line in line_at], row)
    for i in range(lines):
        line = sums_at.at(pitch * (i * columns))
        keep_sums(sums[i * vectors : (i + 1) * vectors], [(line, j * lanes) for j in range(vectors)], given.add)


class _WeightGrad(Function):
    """One function of a kernel being printed."""

    g: ConvolutionWeightGrad[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g, self.columns = self.g, self.isa.tile(self.dtype)[1]
        self.window, self.strides, self.out_strides = g.window, g.data_strides, g.out_strides
        self.data, self.out_grad = self.epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> WeightGradCut[Value]:
        """Printed where it is first asked for: not every function needs its divisions."""
        return WeightGradCut.of(self.g, self.isa)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, columns, lanes = self.b, self.window, self.cut, self.columns, self.lanes
        memory = self.array(scratch)
        copy, panel, square, tiles = (memory.at(place) for place in cut.layout(self.g, self.isa)[:4])
        seen = Array(b, scratch, "int64")  # the block that the offsets are for
        seen[0] = b.lift(-1)
        counts = seen.at(3)  # of the pixels of each tap
        starts = counts.at(1 + cut.inside * (cut.taps - 1))
        offsets = Array(b, starts.at(cut.chunk * cut.taps).pointer, "int32")
        self._line_starts(starts)
        keep = b.select(cut.blocks > 1, b.lift(1), b.lift(0))
        kept = keep * ceil_div(cut.chunk * cut.taps, lanes) * lanes * columns
        inside = cut.inside.differs(0)
        for unit in b.range(first, last):
            group, chunk, part = split(unit, (w.groups, cut.chunks, cut.groups))
            channel, panel0 = chunk * cut.chunk, part * cut.group
            channels = b.minimum(cut.chunk, w.channels - channel)
            panels = b.minimum(cut.group, cut.panels - panel0)
            # the lines of a tile: channels of one tap, or any taps of any channels
            taps, pitch = (b.select(inside, cut.taps, b.lift(1)) for _ in range(2))
            lines = b.select(inside, channels, channels * cut.taps)
            cover = Tiles.of(lines, self.isa.rows, empty=False)
            for block in b.range(0, cut.blocks):
                images0, d, band = split(block, (cut.blocks, b.maximum(1, w.out[0]), cut.bands))
                image, h = images0 * cut.images, band * cut.height
                images, rows = b.minimum(cut.images, w.batch - image), b.minimum(cut.height, w.out[1] - h)
                b.call("copy", [args, copy.pointer, group, channel, channels, image, images, d, h])
                with b.when_not(images.equals(seen[0]) & rows.equals(seen[1]) & d.equals(seen[2])):
                    self._pixel_offsets(counts, offsets, d, images, rows)
                    seen[0], seen[1], seen[2] = images, rows, d
                for p in b.range(0, panels):
                    filter0 = (panel0 + p) * columns
                    filters = b.minimum(columns, w.filters - filter0)
                    whole = group * w.filters + filter0
                    b.call("pack", [args, panel.pointer, whole, filters, image, images, d, h, rows])
                    here = tiles.at(p * kept)
                    for tap in b.range(0, taps):
                        pixels = offsets.at(tap * (images * rows * w.out[2] * 2))
                        for t in b.range(0, cover.count):
                            line = cover.start(t) * pitch + tap
                            count = cover.rows(t)
                            given = TileCall(counts[tap], pixels.pointer, starts.at(line).pointer, copy.pointer,
                                             panel.pointer, here.at(line * columns).pointer, block, pitch)
                            b.call("multiply", [*given.values(), count, ceil_div(filters, lanes)])
                    with b.when(block.equals(cut.blocks - 1)):
                        b.call("finish", [args, here.pointer, square.pointer, whole, filters, channel * cut.taps,
                                          channels * cut.taps])

    def _line_starts(self, starts: Array) -> None:
        """Where each tap of each channel of a unit begins in the copy."""
        b, w, cut = self.b, self.window, self.cut
        for line in b.range(0, cut.chunk * cut.taps):
            channel, kd, kh, kw = split(line, (cut.chunk, *w.kernel))
            row = kd * cut.rows + kh * w.dilate[1]
            starts[line] = channel * cut.plane + row * cut.pitch + kw * w.dilate[2]

    def _pixel_offsets(self, counts: Array, offsets: Array, d: Value, images: Value, rows: Value) -> None:
        """The block's pixels in the copy and in a panel: all, or for each tap those at which it reads inside."""
        b, w, cut, columns = self.b, self.window, self.cut, self.columns
        size, inside = images * rows * w.out[2], cut.inside.differs(0)
        for tap in b.range(0, b.select(inside, cut.taps, b.lift(1))):
            kd, kh, kw = split(tap, w.kernel)
            found = [b.lift(0)]
            deep = b.inside(d * w.stride[0] + kd * w.dilate[0] - w.pad[0], w.data[0])
            for i in b.range(0, images, carry=found):
                for r in b.range(0, rows, carry=found):
                    high = b.inside(r * w.stride[1] + kh * w.dilate[1] - w.pad[1], w.data[1]) & deep
                    first = i * (cut.chunk * cut.plane) + r * w.stride[1] * cut.pitch
                    for x in b.range(0, w.out[2], carry=found):
                        place = offsets.at((tap * size + found[0]) * 2)
                        pixel = (i * rows + r) * w.out[2] + x
                        for n, number in enumerate((first + x * w.stride[2], pixel * columns)):
                            place[n] = b.convert("trunc", number, "i32")
                        there = high & b.inside(x * w.stride[2] + kw * w.dilate[2] - w.pad[2], w.data[2])
                        found[0] = found[0] + b.select(there | b.negate(inside), b.lift(1), b.lift(0))
            counts[tap] = found[0]

    def copy(self, target: Array, group: Value, channel: Value, channels: Value, image: Value, images: Value, d: Value,
             h: Value) -> None:
        """[image][channel][kernel depth][rows][pitch]: what a block's pixels read of the channels."""
        b, w, cut = self.b, self.window, self.cut
        pitch = cut.pitch
        for i in b.range(0, images):
            for c in b.range(0, channels):
                plane = self.data.at((image + i) * self.strides[0] + (group * w.channels + channel + c) *
                                     self.strides[1])
                for kd in b.range(0, w.kernel[0]):
                    z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
                    line = target.at((i * cut.chunk + c) * cut.plane + kd * cut.rows * pitch)
                    self._copy_plane(line, plane.at(z * self.strides[2]), b.inside(z, w.data[0]), h)

    def _copy_plane(self, target: Array, source: Array, exists: Value, h: Value) -> None:
        """The rows that a band from `h` on reads of a plane, with zeros around them: only these unless it `exists`."""
        b, w, cut, lanes = self.b, self.window, self.cut, self.lanes
        count, top, left, (_, _, _, step, along) = cut.rows, h * w.stride[1] - w.pad[1], 0 - w.pad[2], self.strides
        one = b.lift(1)
        begin, end = reached(b, top, one, b.select(exists, w.data[1], b.lift(0)), count)
        columns = *reached(b, left, one, w.data[2], cut.pitch), cut.pitch
        for fits, way in ((along.equals(1), 1), (along.differs(1), along)):
            with b.when(fits):
                bring_rows(lanes, target, source.at(top * step + left * along), (begin, end, count), columns,
                           (step, way), self.loaded, self.strides[1] * AHEAD)

    def pack(self, target: Array, filter0: Value, filters: Value, image: Value, images: Value, d: Value, h: Value,
             rows: Value) -> None:
        """[pixel][NR]: a block's pixels of out_grad for some filters; rows that lie together count as one."""
        b, w, s = self.b, self.window, self.out_strides
        together = (s[3]).equals(s[4] * w.out[2])
        runs, width = b.select(together, b.lift(1), rows), b.select(together, rows * w.out[2], w.out[2])
        for i in b.range(0, images):
            for r in b.range(0, runs):
                line = self.out_grad.at((image + i) * s[0] + filter0 * s[1] + d * s[2] + (h + r) * s[3])
                here = target.at((i * runs + r) * width * self.columns)
                pack_lines(self.epilogue, self.lanes, here, Lines(line, filters, s[1], s[4], width), self.columns)

    def finish(self, tiles: Array, square: Array, filter0: Value, filters: Value, line: Value, lines: Value) -> None:
        """The epilogue over a panel's tiles, [line][filter], a square at a time; `line`: their first one's number."""
        b, w, lanes, columns = self.b, self.window, self.lanes, self.columns
        for j in b.range(0, filters, lanes):
            count = b.minimum(filters - j, lanes)
            for x in b.range(0, lines, lanes):
                axes = inner_axes(b, self.g.flat, line + x, [w.channels, *w.kernel], lanes)
                whole, mask = lines - x >= lanes, b.first_lanes(lines - x, lanes)
                rows = [tiles.vector((x + i) * columns + j, lanes) for i in range(lanes)]

                def places(u: Value, j: Value = j, axes: list[Axis] = axes) -> list[Axis]:
                    return [filter0 + j + u, *axes]

                self.store_square(square, rows, count, whole, mask, places)
