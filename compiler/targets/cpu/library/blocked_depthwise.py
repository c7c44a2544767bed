"""Depthwise convolution of arrays whose channels lie in blocks: a vector holds one pixel of a block's channels.

A unit of work is a band of output rows of one block. A row's sums are made PIXELS at a time, and neighbours share what
both read. Pixels at a border, whose taps may lie outside, are computed one by one. A row of zeros stands for all that
lies outside: rows above and below the image, and pixels left and right of a row.

The taps of a small kernel are unrolled, with its weights in registers as far as these suffice. The epilogue follows in
registers too if it is brief; else the row's sums lie in scratch until the epilogue goes over them.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from mxc.compiler.kernel.geometry import BlockedDepthwise, Window
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Number, Value
from mxc.compiler.targets.cpu.library.blocks import ceil_to
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import N, ceil_div, least, most
from mxc.compiler.targets.cpu.library.epilogue import Lane, OutputWalk
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.tile import zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

PIXELS = 4  # in the middle of a row, so many pixels are computed at once
BAND_PIXELS = 512  # a band has about so many output pixels
UNROLLED = 25  # a kernel of at most so many taps (5 x 5) is printed without loops


def _bands(w: Window[N]) -> tuple[N, N]:
    """Rows of a band, and bands."""
    height: N = most(1, least(w.out[1], BAND_PIXELS // most(1, w.out[2])))
    bands: N = ceil_div(w.out[1], height)
    return ceil_div(w.out[1], most(1, bands)), bands


def units(g: BlockedDepthwise[int], isa: Isa) -> int:
    w = g.window
    return w.batch * (w.groups // g.block) * w.out[0] * _bands(w)[1]


def scratch_elements(g: BlockedDepthwise[int], isa: Isa) -> int:
    return _layout(g)[2]


def _layout(g: BlockedDepthwise[N]) -> tuple[int, N, N]:
    """In elements of the scratch, which begins with addresses: where a row of zeros and sums begin, and its size."""
    depth, height, width = g.kernel
    rows = ceil_to(depth * height * (8 // max(BYTES[g.dtype], 4)), 16)
    outside: N = (most(g.window.data[2], (width - 1) * g.dilate + 1) + PIXELS * g.stride) * g.block
    sums = g.window.out[2] * g.block
    return rows, rows + outside, rows + outside + sums


def print_kernel(p: Printing) -> None:
    """The kernel's function and the epilogue's, for a row."""
    where = "ptr args, ptr noalias sums, i64 image, i64 block, i64 pixel"
    with p.b.function("finish", where, True) as (args, sums, *place):
        _Depthwise(p, args).finish(p.array(sums), *place)
    with p.b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Depthwise(p, args).units(args, first, last, scratch)


@dataclass
class _Row:
    """What an output row is computed from (the addresses of the data's rows, weights), and where its results go."""

    table: Array
    zeros: Array
    weight: Array
    factors: list[Value]
    sums: Array
    walk: OutputWalk | None


class _Depthwise(Function):
    """One function of a kernel being printed."""

    g: BlockedDepthwise[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g = self.g
        self.kernel, self.stride, self.dilate, self.window, self.strides = (
            g.kernel, g.stride, g.dilate, g.window, g.data_strides)
        self.taps = prod(self.kernel)
        self.unrolled = self.taps <= UNROLLED
        self.brief = g.flat and self.epilogue.brief
        self.data, self.weight = self.epilogue.buffers[:2]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, lanes = self.b, self.window, self.lanes
        blocks, (height, bands) = w.groups // lanes, _bands(w)
        memory, table = self.array(scratch), Array(b, scratch, "int64")
        zeros_at, sums_at, _ = _layout(self.g)
        for x in b.range(zeros_at, sums_at, lanes):
            memory.put(x, self.zero)
        zeros, sums = Array(b, memory.at(zeros_at).pointer, self.data.dtype), memory.at(sums_at)
        inner, end = self._inner_pixels()
        middle = end - (end - inner) % PIXELS
        for unit in b.range(first, last):
            image, block, d, band = split(unit, (w.batch, blocks, w.out[0], bands))
            plane = self.data.at(image * self.strides[0] + block * self.strides[1])
            weight = self.weight.at(block * (self.taps * lanes))
            factors = [weight.vector(i * lanes, lanes) for i in range(self.taps) if self.unrolled]
            for h in b.range(band * height, b.minimum((band + 1) * height, w.out[1])):
                self._rows(table, plane, zeros, d, h)
                pixel = (d * w.out[1] + h) * w.out[2]
                walk = self.epilogue.walk([image, block, Lane(b.lift(0)), pixel], 3) if self.brief else None
                row = _Row(table, zeros, weight, factors, sums, walk)
                for x in b.range(0, inner):
                    self._sums(row, x, 1, True)
                for x in b.range(inner, middle, PIXELS):
                    self._sums(row, x, PIXELS, False)
                for x in b.range(middle, end):
                    self._sums(row, x, 1, False)
                for x in b.range(end, w.out[2]):
                    self._sums(row, x, 1, True)
                if not self.brief:
                    b.call("finish", [args, sums.pointer, image, block, pixel])

    def _inner_pixels(self) -> tuple[Value, Value]:
        """The pixels of a row all of whose taps lie inside: from the first up to the second number."""
        b, w = self.b, self.window
        first = b.minimum(ceil_div(w.pad[2], self.stride), w.out[2])
        reach = w.data[2] + w.pad[2] - (self.kernel[2] - 1) * self.dilate - 1
        end = b.select(reach < 0, b.lift(0), reach // self.stride + 1)
        return first, b.maximum(first, b.minimum(end, w.out[2]))

    def _rows(self, table: Array, plane: Array, zeros: Array, d: Value, h: Value) -> None:
        """table[kernel row] = the address of the row that it reads for output row `h` of slice `d`."""
        b, w = self.b, self.window
        nothing = b.emit("i64", f"ptrtoint ptr {zeros.pointer.text} to i64")
        for kd, kh in itertools.product(range(self.kernel[0]), range(self.kernel[1])):
            z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
            y = h * w.stride[1] + kh * w.dilate[1] - w.pad[1]
            slot, ring = y + self.g.ring_start, self.g.ring
            here = plane.at(z * self.strides[2] + b.select(slot < ring, slot, slot - ring) * self.strides[3])
            inside = b.inside(z, w.data[0]) & b.inside(y, w.data[1])
            address = b.emit("i64", f"ptrtoint ptr {here.pointer.text} to i64")
            table[kd * self.kernel[1] + kh] = b.select(inside, address, nothing)

    def _sums(self, row: _Row, x: Value, pixels: int, border: bool) -> None:
        """The sums of `pixels` pixels from `x` on; border: taps may lie outside of the row."""
        b, lanes, width = self.b, self.lanes, self.kernel[2]
        totals = zeros(b, self.dtype, lanes, pixels)
        left = x * self.stride - self.window.pad[2]
        offsets = sorted({p * self.stride + kw * self.dilate for p in range(pixels) for kw in range(width)})
        inside = {offset: b.inside(left + offset, self.window.data[2]) for offset in offsets if border}
        count = self.kernel[0] * self.kernel[1]
        rows: Iterable[Number] = range(count) if self.unrolled else b.range(0, count, carry=totals)
        for r in rows:
            line = Array(b, b.pointer(row.table[r]), self.data.dtype)
            first = line.at(left * lanes)  # pixels lie next to each other
            seen = {offset: self._pixel(first.at(offset * lanes), row.zeros, inside.get(offset)) for offset in offsets}
            for kw in range(width):
                tap = r * width + kw
                factor = row.factors[tap] if isinstance(tap, int) else row.weight.vector(tap * lanes, lanes)
                for p in range(pixels):
                    totals[p] = b.fma(seen[p * self.stride + kw * self.dilate], factor, totals[p])
        here = row.walk.moved(x) if row.walk is not None else None
        for p, total in enumerate(totals):
            if here is None:
                row.sums.put((x + p) * lanes, total)
            else:
                here.moved(p).store(total, self.dtype)

    def _pixel(self, here: Array, zeros: Array, inside: Value | None) -> Value:
        if inside is not None:
            here = Array(self.b, self.b.select(inside, here.pointer, zeros.pointer), here.dtype)
        return self.loaded(here.vector(0, self.lanes), here.dtype)

    def finish(self, sums: Array, image: Value, block: Value, pixel: Value) -> None:
        """The epilogue over a row of sums that begins at flat position `pixel`."""
        b, w, lanes = self.b, self.window, self.lanes
        for x in b.range(0, w.out[2]):
            place = [pixel + x] if self.g.flat else split(pixel + x, w.out)
            self.epilogue.store([image, block, Lane(b.lift(0)), *place], sums.vector(x * lanes, lanes), self.dtype)
