"""Depthwise convolution of arrays whose channels lie in blocks: a vector holds one pixel of a block's channels.

A unit of work is a band of output rows of one block. A row's sums are made PIXELS at a time, the taps of a kernel row
unrolled, neighbours sharing what both read; pixels at a border, whose taps may lie outside, one by one, with a vector
of zeros in place of what is not there. The row's sums lie in scratch until the epilogue goes over them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.isa import Isa
from mxc.compiler.targets.cpu.library.blocks import ceil_div, least, most
from mxc.compiler.targets.cpu.library.convolution import split, volume
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane

PIXELS = 4  # at once, in the middle of a row
BAND_PIXELS = 512  # of a band, about


def _bands(w: Window) -> tuple[Number, Number]:
    """Rows of a band, and bands."""
    height: Any = most(1, least(w.out[1], BAND_PIXELS // most(1, w.out[2])))
    bands: Any = ceil_div(w.out[1], height)
    return ceil_div(w.out[1], most(1, bands)), bands


def units(kernel: CallKernel, isa: Isa) -> int:
    w = Window.of(kernel.extents)
    blocks = w.groups // int(dict(kernel.params)["block"])  # type: ignore[call-overload]
    return int(w.batch * blocks * w.out[0] * _bands(w)[1])  # type: ignore[arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    """A row of sums after a vector of zeros."""
    return (Window.of(kernel.extents).out[2] + 1) * int(dict(kernel.params)["block"])  # type: ignore[call-overload]


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and the epilogue's, for a row."""
    where = "ptr args, ptr noalias sums, i64 image, i64 block, i64 pixel"
    with b.function("finish", where, True) as (args, sums, *place):
        _Depthwise(kernel, b, isa, dtype, epilogue_of(args)).finish(Array(b, sums, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        _Depthwise(kernel, b, isa, dtype, epilogue_of(args)).units(args, first, last, scratch)


class _Depthwise:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, isa: Isa, dtype: str, epilogue: Epilogue):
        self.b, self.dtype, self.lanes, self.epilogue = b, dtype, isa.lanes(dtype), epilogue
        params: dict[str, Any] = dict(kernel.params)
        self.kernel, self.stride, self.dilate, self.flat = (params[k] for k in ("kernel", "stride", "dilate", "flat"))
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        self.strides = epilogue.extents[22:]
        self.data, self.weight = epilogue.buffers[:2]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, lanes = self.b, self.window, self.lanes
        blocks, (height, bands) = w.groups // lanes, _bands(w)
        memory = Array(b, scratch, self.dtype)
        memory.put(0, b.zero(vector_type(TYPES[self.dtype], lanes)))
        zeros, sums = Array(b, scratch, self.data.dtype), memory.at(lanes)
        inner, end = self._inner_pixels()
        for unit in b.range(first, last):
            image, block, d, band = split(unit, (w.batch, blocks, w.out[0], bands))
            plane = self.data.at(image * self.strides[0] + block * self.strides[1])
            weight = self.weight.at(block * (volume(self.kernel) * lanes))
            for h in b.range(band * height, b.minimum((band + 1) * height, w.out[1])):
                for x in b.range(0, inner):
                    self._sums(plane, weight, sums, zeros, d, h, x, 1)
                middle = end - (end - inner) % PIXELS
                for x in b.range(inner, middle, PIXELS):
                    self._sums(plane, weight, sums, None, d, h, x, PIXELS)
                for x in b.range(middle, end):
                    self._sums(plane, weight, sums, None, d, h, x, 1)
                for x in b.range(end, w.out[2]):
                    self._sums(plane, weight, sums, zeros, d, h, x, 1)
                pixel = (d * w.out[1] + h) * w.out[2]
                b.call("finish", [args, sums.pointer, image, block, pixel])

    def _inner_pixels(self) -> tuple[Value, Value]:
        """The pixels of a row all of whose taps lie inside: from the first up to the second number."""
        b, w = self.b, self.window
        first = b.minimum(ceil_div(b.lift(w.pad[2]), self.stride), w.out[2])
        reach = w.data[2] + w.pad[2] - (self.kernel[2] - 1) * self.dilate - 1
        end = b.select(b.lift(reach) < 0, b.lift(0), reach // self.stride + 1)
        return first, b.maximum(first, b.minimum(end, w.out[2]))

    def _sums(self, plane: Array, weight: Array, sums: Array, zeros: Array | None, d: Value, h: Value, x: Value,
              pixels: int) -> None:
        """The sums of `pixels` pixels from `x` on; with `zeros`, taps may lie outside of the row."""
        b, w, lanes = self.b, self.window, self.lanes
        depth_from, depth_to = self._taps(d, 0)
        row_from, row_to = self._taps(h, 1)
        totals = [b.zero(vector_type(TYPES[self.dtype], lanes)) for _ in range(pixels)]
        left = x * self.stride - w.pad[2]
        for kd in b.range(depth_from, depth_to, carry=totals):
            z = d * w.stride[0] + kd * w.dilate[0] - w.pad[0]
            for kh in b.range(row_from, row_to, carry=totals):
                y = h * w.stride[1] + kh * w.dilate[1] - w.pad[1]
                row = plane.at(z * self.strides[2] + y * self.strides[3])
                taps = weight.at((kd * self.kernel[1] + kh) * (self.kernel[2] * lanes))
                seen: dict[int, Value] = {}
                for kw in range(self.kernel[2]):
                    factor = taps.vector(kw * lanes, lanes)
                    for p in range(pixels):
                        offset = p * self.stride + kw * self.dilate
                        if offset not in seen:
                            seen[offset] = self._pixel(row, left + offset, zeros)
                        totals[p] = b.fma(seen[offset], factor, totals[p])
        for p, total in enumerate(totals):
            sums.put((x + p) * lanes, total)

    def _taps(self, place: Value, axis: int) -> tuple[Value, Value]:
        """The taps of output position `place` that lie inside on `axis`: from the first up to the second number."""
        b, w = self.b, self.window
        start, step = place * w.stride[axis] - w.pad[axis], w.dilate[axis]
        first = b.maximum(0, ceil_div(0 - start, step))
        end = b.minimum(self.kernel[axis], ceil_div(w.data[axis] - start, step))
        return first, end

    def _pixel(self, row: Array, x: Value, zeros: Array | None) -> Value:
        here = row.at(x * self.strides[4])
        if zeros is not None:
            inside = self.b.inside(x, self.window.data[2])
            here = Array(self.b, self.b.select(inside, here.pointer, zeros.pointer), row.dtype)
        return self.epilogue.arithmetic.loaded(here.vector(0, self.lanes), row.dtype)

    def finish(self, sums: Array, image: Value, block: Value, pixel: Value) -> None:
        """The epilogue over a row of sums that begins at flat position `pixel`."""
        b, w, lanes = self.b, self.window, self.lanes
        for x in b.range(0, w.out[2]):
            place = [pixel + x] if self.flat else split(pixel + x, w.out)
            self.epilogue.store([image, block, Lane(b.lift(0)), *place], sums.vector(x * lanes, lanes), self.dtype)
