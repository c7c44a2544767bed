"""Convolutions with one channel and one filter in each group: a vector holds neighbours in a row, taps are unrolled.

What a band of output rows reads is copied to scratch first, with zeros around it and, for a stride s, with the columns
sorted by their rest modulo s: then each tap of each vector is one plain load. In the copy, row `r` and column `x` of a
band that begins at output row `h0` hold

    forward:    data[h0 * stride + r - pad, x - pad]
    data grad:  out_grad[(h0 + r + pad - (kernel - 1) * dilate) / stride, ...], 0 where that leaves a rest

and the result is, in both, the sum of taps k at (y * step + k * dilate, x * step + k * dilate). In the gradient the
taps are reversed and step is 1, else step is the stride.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import Depthwise, DepthwiseDataGrad, DepthwiseWeightGrad
from mxc.compiler.targets.cpu.emit.builder import Array, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.convolution import (
    half_up,
    inner_axes,
    pair_masks,
    split,
    spread_out,
)
from mxc.compiler.targets.cpu.library.cutting import N, ceil_div, least, most, volume
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.rows import Row, bring, reached
from mxc.compiler.targets.cpu.library.tile import zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND_ELEMENTS = 6 << 10  # the copy of a band has about so many elements
VECTORS = 4  # so many vectors of a row are computed at once
UNROLLED = 25  # a kernel of at most so many taps (5 x 5) is unrolled whole
# In the gradient of the weights, so many taps of a kernel's slice are summed at once, if that has no more, else so many
# of its row.
AT_ONCE, TAPS = 9, 8

AnyDepthwise = Depthwise[N] | DepthwiseDataGrad[N] | DepthwiseWeightGrad[N]


@dataclass(frozen=True)
class RowBand(Generic[N]):
    """How the output is cut into bands, and the copy's layout: [kernel depth][rows][rests][pitch]."""

    step: Sequence[N]
    written: Sequence[N]
    height: N  # output rows of a band
    bands: N
    rows: N
    pitch: N

    @classmethod
    def of(cls, g: AnyDepthwise[N], lanes: int) -> RowBand[N]:
        w, transposed = g.window, isinstance(g, DepthwiseDataGrad)
        step: Sequence[N] = (1, 1, 1) if transposed else w.stride  # type: ignore[assignment]  # 1 is of either kind
        written = w.data if transposed else w.out
        vectors: N = ceil_div(written[2], lanes)
        pitch = vectors * lanes + (w.kernel[2] - 1) * w.dilate[2] // step[2] + 1
        reach = (w.kernel[1] - 1) * w.dilate[1]
        fitting = BAND_ELEMENTS // (w.kernel[0] * step[2] * pitch)
        height: N = most(1, (most(fitting, reach + 1) - reach - 1) // step[1] + 1)
        bands: N = ceil_div(written[1], most(1, least(height, written[1])))
        height = ceil_div(written[1], most(1, bands))
        return cls(step, written, height, bands, (height - 1) * step[1] + reach + 1, pitch)

    def size(self: RowBand[N], g: AnyDepthwise[N], lanes: int) -> N:
        return g.window.kernel[0] * most(1, self.rows) * self.step[2] * self.pitch + lanes


def units(g: AnyDepthwise[int], isa: Isa) -> int:
    if isinstance(g, DepthwiseWeightGrad):
        return g.window.groups
    band = RowBand.of(g, isa.lanes(g.dtype))
    return g.window.batch * g.window.groups * band.written[0] * band.bands


def scratch_elements(g: AnyDepthwise[int], isa: Isa) -> int:
    lanes = isa.lanes(g.dtype)
    taps = volume(g.window.kernel) if isinstance(g, DepthwiseWeightGrad) else 0
    return RowBand.of(g, lanes).size(g, lanes) + taps * (lanes + 1) + lanes


class _Depthwise(Function):
    """One kernel being printed."""

    g: AnyDepthwise[Value]

    def __init__(self, printing: Printing, args: Value, scratch: Value):
        super().__init__(printing, args)
        self.window, self.taps, self.transposed = self.g.window, self.g.kernel, isinstance(self.g, DepthwiseDataGrad)
        self.band = RowBand.of(self.g, self.lanes)
        self.copy = self.array(scratch)

    # --- the copy

    def fill(self, plane: Array, strides: Sequence[Value], d: Value, h0: Value) -> None:
        """Copies what the band from output row h0 of slice d reads of a channel's `plane`."""
        b, band = self.b, self.band
        for kd in b.range(0, self.taps[0]):
            z, z_inside = self._source(d * band.step[0] + kd * self.window.dilate[0], 0)
            for r in b.range(0, band.rows):
                y, y_inside = self._source(h0 * band.step[1] + r, 1)
                row, inside = plane.at(z * strides[2] + y * strides[3]), z_inside & y_inside
                lines = self.copy.at((kd * band.rows + r) * band.step[2] * band.pitch)
                with b.when(self._quick(strides[4])):
                    self._fill_rests(lines, row, inside)
                with b.when_not(self._quick(strides[4])):
                    self._fill_vectors(lines, row, strides[4], inside)

    def _quick(self, step: Value) -> Value:
        """Whether a row is copied by whole vectors: its elements lie together, and are read as they come or by two."""
        stride = self.window.stride[2]
        by_two = self.b.number(0, "i1") if self.transposed else stride.equals(2)
        return step.equals(1) & (stride.equals(1) | by_two)

    def _shift(self) -> Value:
        """How many columns a place of the copy lies behind the place that it copies, before strides are counted."""
        w = self.window
        return (w.kernel[2] - 1) * w.dilate[2] - w.pad[2] if self.transposed else w.pad[2]

    def _fill_rests(self, lines: Array, row: Array, inside: Value) -> None:
        """The lines of a row, one for each rest."""
        b, w, pitch = self.b, self.window, self.band.pitch
        read = w.out[2] if self.transposed else w.data[2]
        for rest in b.range(0, self.band.step[2]):
            line, left = lines.at(rest * pitch), rest - self._shift()
            for stride in (1,) if self.transposed else (1, 2):
                with b.when(w.stride[2].equals(stride)):
                    begin, end = reached(b, left, stride, read, pitch)
                    part = b.select(inside, begin, pitch), b.select(inside, end, pitch)
                    bring(self.lanes, line, Row(row.at(left), part, stride, read - left), pitch, self.loaded)

    def _fill_vectors(self, lines: Array, row: Array, step: Value, inside: Value) -> None:
        band = self.band
        for rest in self.b.range(0, band.step[2]):
            line = lines.at(rest * band.pitch)
            for q in self.b.range(0, band.pitch, self.lanes):
                self._fill_vector(line.at(q), row, q * band.step[2] + rest, step, inside)

    def _fill_vector(self, target: Array, row: Array, column: Value, step: Value, inside: Value) -> None:
        """A vector of the copy whose first lane is column `column` of the row with its border."""
        b, lanes, w = self.b, self.lanes, self.window
        by_two = step.equals(1) & w.stride[2].equals(2) if self.transposed else b.number(0, "i1")
        if self.transposed:
            with b.when(by_two):
                base = column - self._shift()
                mask = pair_masks(b, half_up(base), w.out[2], inside, lanes)[0]
                target.put(0, self.loaded(spread_out(row, base, mask, lanes), row.dtype))
        with b.when_not(by_two):
            along = b.iota(vector_type("i64", lanes)) * self._splat(1 if self.transposed else w.stride[2])
            source, mask = self._source(b.splat(column, lanes) + along, 2)
            raw = row.gather(source * self._splat(step), mask & b.splat(inside, lanes))
            target.put(0, self.loaded(raw, row.dtype))

    def _splat(self, x: Number) -> Value:
        return self.b.splat(self.b.lift(x), self.lanes)

    def _source(self, place: Value, axis: int) -> tuple[Value, Value]:
        """Where a place of the copy comes from (a vector of places: lane by lane), and whether that is inside."""
        b, w = self.b, self.window

        def lift(x: Number) -> Value:
            return b.lift(x) if place.type == "i64" else self._splat(x)

        if not self.transposed:
            source = place - lift(w.pad[axis])
            return source, b.inside(source, lift(w.data[axis]))
        moved = place + lift(w.pad[axis] - (w.kernel[axis] - 1) * w.dilate[axis])
        stride = lift(w.stride[axis])
        source = moved // stride
        exact = (source * stride).equals(moved)
        return source, exact & (moved >= lift(0)) & b.inside(source, lift(w.out[axis]))

    def columns(self) -> list[Value]:
        """For each tap of a kernel's row, where in a row of the copy its first column is."""
        step, shifts = self.band.step[2], [self.b.lift(kw) * self.window.dilate[2] for kw in range(self.taps[2])]
        return [shift % step * self.band.pitch + shift // step for shift in shifts]

    def place(self, y: Value, kd: Number, kh: Number) -> Value:
        """Where the copy has the row that output row y of the band reads for a tap."""
        band, w = self.band, self.window
        row = self.b.lift(kd) * band.rows + y * band.step[1] + kh * w.dilate[1]
        return row * (band.step[2] * band.pitch)

    def bands(self, unit: Value) -> tuple[Value, Value, Value, Value]:
        """A unit as image, channel, slice and first row."""
        counts = self.window.batch, self.window.groups, self.band.written[0], self.band.bands
        image, channel, d, band = split(unit, counts)
        return image, channel, d, band * self.band.height

    # --- forward and the gradient of the data

    def print_correlation(self, first: Value, last: Value) -> None:
        b, lanes, g = self.b, self.lanes, self.g
        strides = g.out_strides if isinstance(g, DepthwiseDataGrad) else g.data_strides
        width, columns = self.band.written[2], self.columns()
        several = width - width % (VECTORS * lanes)
        whole = width - width % lanes
        for unit in b.range(first, last):
            image, channel, d, h0 = self.bands(unit)
            self.fill(self.epilogue.buffers[0].at(image * strides[0] + channel * strides[1]), strides, d, h0)
            weight = self.epilogue.buffers[1].at(channel * volume(self.taps))
            for y in b.range(0, b.minimum(self.band.height, self.band.written[1] - h0)):
                axes = [image, channel, d, h0 + y]
                walk = self.epilogue.walk([*axes, Lane(b.lift(0))], 4)
                for w in b.range(0, several, VECTORS * lanes):
                    for j, total in enumerate(self._sums(weight, columns, y, w, VECTORS)):
                        walk.moved(w + j * lanes).store(total, self.dtype)
                for w in b.range(several, whole, lanes):
                    walk.moved(w).store(self._sums(weight, columns, y, w, 1)[0], self.dtype)
                with b.when(whole < width):
                    mask = b.first_lanes(width - whole, lanes)
                    total = self._sums(weight, columns, y, whole, 1)[0]
                    self.epilogue.store([*axes, Lane(whole)], total, self.dtype, mask)

    def _sums(self, weight: Array, columns: list[Value], y: Value, w: Value, vectors: int) -> list[Value]:
        """The taps' sums for `vectors` vectors from column w on."""
        b, lanes, (depth, height, width) = self.b, self.lanes, self.taps
        sums = zeros(b, self.dtype, lanes, vectors)

        def add(kd: Number, kh: Number) -> None:
            rows = self.copy.at(self.place(y, kd, kh) + w)
            for kw in range(width):
                tap = (kd * height + kh) * width + kw
                if self.transposed:
                    tap = depth * height * width - 1 - tap
                factor = b.splat(self.loaded(weight[tap], weight.dtype), lanes)
                row = rows.at(columns[kw])
                for j in range(vectors):
                    sums[j] = b.fma(factor, row.vector(j * lanes, lanes), sums[j])

        if depth * height * width <= UNROLLED:
            for kd in range(depth):
                for kh in range(height):
                    add(kd, kh)
        else:
            for plane in b.range(0, depth, carry=sums):
                for line in b.range(0, height, carry=sums):
                    add(plane, line)
        return sums

    # --- the gradient of the weights

    def print_weight_grad(self, first: Value, last: Value) -> None:
        """Each channel has a vector of partial sums for each tap, over all images and bands; its lanes are added up in
        the end."""
        b, lanes, taps, band, g = self.b, self.lanes, volume(self.taps), self.band, self.g
        assert isinstance(g, DepthwiseWeightGrad)
        (data, out_grad), strides, out_strides = self.epilogue.buffers[:2], g.data_strides, g.out_strides
        partial = self.copy.at(band.size(g, lanes))
        totals = partial.at(taps * lanes)
        for channel in b.range(first, last):
            for tap in b.range(0, taps):
                partial.put(tap * lanes, self.zero)
            for image in b.range(0, self.window.batch):
                plane = data.at(image * strides[0] + channel * strides[1])
                grads = out_grad.at(image * out_strides[0] + channel * out_strides[1])
                for d in b.range(0, band.written[0]):
                    for h0 in b.range(0, band.written[1], band.height):
                        self.fill(plane, strides, d, h0)
                        height = b.minimum(band.height, band.written[1] - h0)
                        self._add_band(partial, grads.at(d * out_strides[2] + h0 * out_strides[3]), out_strides, height)
            for tap in b.range(0, taps):
                vector = partial.vector(tap * lanes, lanes)
                totals[tap] = b.sum_lanes(vector)
            for tap in b.range(0, taps, lanes):
                axes = inner_axes(b, g.flat, tap, [1, *self.taps], lanes)
                mask = b.first_lanes(taps - tap, lanes)
                self.epilogue.store([channel, *axes], totals.vector(tap, lanes), self.dtype, mask)

    def _add_band(self, partial: Array, grads: Array, strides: Sequence[Value], height: Value) -> None:
        """Adds what a band gives to the partial sums: of all taps of a slice at once, or of a part of a row of them."""
        b, (kernel_depth, kernel_height, kernel_width) = self.b, self.taps
        for kd in b.range(0, kernel_depth):
            if kernel_height * kernel_width <= AT_ONCE:
                places = [(b.lift(kh), kw) for kh in range(kernel_height) for kw in range(kernel_width)]
                self._add_taps(partial, grads, strides, height, kd, places)
                continue
            for kh in b.range(0, kernel_height):
                for kw0 in range(0, kernel_width, TAPS):
                    places = [(kh, kw) for kw in range(kw0, min(kw0 + TAPS, kernel_width))]
                    self._add_taps(partial, grads, strides, height, kd, places)

    def _add_taps(self, partial: Array, grads: Array, strides: Sequence[Value], height: Value, kd: Value,
                  places: list[tuple[Value, int]]) -> None:
        """Adds the products of a band with the gradients to the partial sums of neighbouring taps."""
        b, lanes, width = self.b, self.lanes, self.band.written[2]
        (kh0, kw0), starts, whole = places[0], self.columns(), width - width % lanes
        place = partial.at(((kd * self.taps[1] + kh0) * self.taps[2] + kw0) * lanes)
        sums = [place.vector(i * lanes, lanes) for i in range(len(places))]
        together = strides[4].equals(1)
        steps = b.iota(vector_type("i64", lanes)) * self._splat(strides[4])
        for y in b.range(0, height, carry=sums):
            rows = [self.copy.at(self.place(y, kd, kh) + starts[kw]) for kh, kw in places]
            line = grads.at(y * strides[3])

            def add(w: Value, grad: Value, mask: Value | None, rows: list[Array] = rows) -> None:
                for i, row in enumerate(rows):  # past the end the copy may hold anything, infinities too
                    sums[i] = b.fma(grad, row.vector(w, lanes, mask), sums[i])

            some = b.select(together, whole, b.lift(0))
            for w in b.range(0, some, lanes, carry=sums):
                add(w, self.loaded(line.vector(w, lanes), line.dtype), None)
            for w in b.range(some, width, lanes, carry=sums):
                mask = b.first_lanes(width - w, lanes)
                far = line.at(w * strides[4])
                raw = b.choose(together, functools.partial(line.vector, w, lanes, mask),
                               functools.partial(far.gather, steps, mask))
                add(w, self.loaded(raw, line.dtype), mask)
        for i, total in enumerate(sums):
            place.put(i * lanes, total)


def print_kernel(p: Printing) -> None:
    """The kernel's function."""
    with p.b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        printer = _Depthwise(p, args, scratch)
        if isinstance(p.geometry, DepthwiseWeightGrad):
            printer.print_weight_grad(first, last)
        else:
            printer.print_correlation(first, last)
