"""Convolutions as products of matrices whose panels are packed straight from the image (implicit GEMM)."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import Product, Size, TileCode, ceil_div, pack_lines
from mxc.compiler.targets.cpu.library.epilogue import Axis, Epilogue, Lane


def volume(extents: Sequence[Number]) -> Number:
    return extents[0] * extents[1] * extents[2]  # type: ignore[operator,return-value]


def forward_size(extents: Sequence[Number]) -> Size:
    w = Window.of(extents)  # type: ignore[arg-type]
    taps = volume(w.kernel)
    return Size(w.groups, w.filters, w.batch * volume(w.out), w.channels * taps, taps)


def data_grad_size(extents: Sequence[Number]) -> Size:
    w = Window.of(extents)  # type: ignore[arg-type]
    taps = volume(w.kernel)
    return Size(w.groups, w.channels, w.batch * volume(w.data), w.filters * taps, taps)


def split(flat: Value, extents: Sequence[Number]) -> list[Value]:
    """Row-major coordinates of a flat position (of each lane, if it is a vector)."""
    places = []
    for extent in reversed(extents[1:]):
        places.append(flat % extent)
        flat = flat // extent
    return [flat, *reversed(places)]


def inner_axes(b: Builder, flat: bool, first: Value, extents: Sequence[Number], lanes: int) -> list[Axis]:
    """The merged innermost axis from `first` on (flat), or for each lane the axes that it consists of."""
    if flat:
        return [Lane(first)]
    positions = b.splat(first, lanes) + b.iota(vector_type("i64", lanes))
    return list(split(positions, [b.splat(b.lift(e), lanes) for e in extents]))


def pair_masks(b: Builder, base: Value, limit: Value, inside: Value, lanes: int) -> list[Value]:
    """Which elements of two neighbouring vectors from `base` on lie in 0 <= x < limit, none unless `inside`."""
    numbers, exists = vector_type("i32", lanes), b.splat(inside, lanes)
    ends = (clamped(b, x, 2 * lanes) for x in (0 - base, limit - base))
    first, last = (b.splat(b.convert("trunc", x, "i32"), lanes) for x in ends)
    places = [b.iota(numbers), b.iota(numbers) + b.splat(b.number(lanes, "i32"), lanes)]
    return [(place >= first) & (place < last) & exists for place in places]


def clamped(b: Builder, x: Value, most: int) -> Value:
    """x brought into 0 <= x <= most: a number of lanes, which 32 bits hold."""
    return b.minimum(b.maximum(x, 0), most)


def every_other(line: Array, masks: list[Value], lanes: int) -> Value:
    """Elements 0, 2, 4, ... as one vector: a load with a stride of 2."""
    first, second = line.vector(0, lanes, masks[0]), line.vector(lanes, lanes, masks[1])
    return line.builder.shuffle(first, second, range(0, 2 * lanes, 2))


def spread_out(line: Array, moved: Value, mask: Value, lanes: int) -> Value:
    """line[(moved + l) / 2] in each lane l where that leaves no rest, else 0; `mask` from (moved + 1) / 2 on."""
    b = line.builder
    near = line.vector(half_up(moved), lanes, mask)
    zero, gap, numbers = b.zero(near.type), [lanes] * (lanes // 2), range(lanes // 2)
    even = b.shuffle(near, zero, [x for pair in zip(numbers, gap, strict=True) for x in pair])
    odd = b.shuffle(near, zero, [x for pair in zip(gap, numbers, strict=True) for x in pair])
    return b.select((moved - half_up(moved) * 2).equals(0), even, odd)


def half_up(x: Value) -> Value:
    """x / 2 rounded up, for negative numbers too."""
    return x.builder.binary("ashr", x + 1, x.builder.lift(1))


class Spatial(Product):
    """What the products over a window share: geometry and strides."""

    def __init__(self, kernel: CallKernel, code: TileCode, epilogue: Epilogue):
        self.code, self.epilogue = code, epilogue
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        self.strides = epilogue.extents[22:]
        self.flat = bool(dict(kernel.params).get("flat"))


@dataclass
class Run:
    """Lanes first <= l < last of a vector: neighbours in a row of pixels; lane l has the last coordinate column + l."""

    first: Value
    last: Value
    image: Value
    place: list[Value]  # d, h
    column: Value
    follows: Value  # whether an earlier run has written the vector


class Pixels(Spatial):
    """Rows: filters. Columns: pixels of all images; depth: channels x taps of the kernel, read from the images."""

    def __init__(self, kernel: CallKernel, code: TileCode, epilogue: Epilogue):
        super().__init__(kernel, code, epilogue)
        self.image, self.weight = epilogue.buffers[:2]
        self.packed = bool(dict(kernel.params)["block"])
        self.direct_rows = self.packed and self.weight.dtype == code.dtype
        self.taps = volume(self.window.kernel)
        self.transposed = kernel.template == "convolution_data_grad"
        w = self.window
        if self.transposed:
            self.size = data_grad_size(epilogue.extents)
            self.read, self.written, self.channels = w.out, w.data, w.filters
        else:
            self.size = forward_size(epilogue.extents)
            self.read, self.written, self.channels = w.data, w.out, w.channels

    def row_tile(self, batch: Value, tile: Value, depth: Value) -> Array:
        tiles = ceil_div(self.size.rows, self.code.rows)
        return self.weight.at(((batch * tiles + tile) * self.size.depth + depth) * self.code.rows)

    def pack_tile(self, target: Array, batch: Value, row: Value, start: Value, depth: Value) -> None:
        b, mr, taps, rows = self.code.b, self.code.rows, self.code.b.lift(self.taps), self.size.rows
        if self.packed:  # weights stored in another dtype than they are computed in
            source = self.row_tile(batch, row // mr, start)
            count = depth * mr
            for i in b.range(0, count, self.code.lanes):
                mask = b.first_lanes(count - i, self.code.lanes)
                vector = source.vector(i, self.code.lanes, mask)
                target.put(i, self.epilogue.arithmetic.loaded(vector, source.dtype))
        elif self.transposed:  # (filters, channels, taps): the depth's taps of each filter lie together
            for k in b.range(0, depth // taps):
                line = ((batch * self.window.filters + start // taps + k) * rows + row) * taps
                pack_lines(self.code, self.epilogue, target.at(k * taps * mr), self.weight.at(line), mr, rows - row,
                           taps, b.lift(1), taps)
        else:
            step = b.lift(self.size.depth)
            source = self.weight.at((batch * rows + row) * step + start)
            pack_lines(self.code, self.epilogue, target, source, mr, rows - row, step, b.lift(1), depth)

    def finish(self, tile: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value) -> None:
        """Whole vectors, or a masked one for each image that a vector touches, or where columns end."""
        b, nr, lanes, dtype = self.code.b, self.code.columns, self.code.lanes, self.code.dtype
        pixels = b.lift(volume(self.written))
        numbers, channel = vector_type("i32", lanes), batch * self.size.rows + row
        for j in b.range(0, columns, lanes):
            first, count = column + j, b.minimum(columns - j, lanes)
            image = first // pixels
            place = first - image * pixels
            whole = count.equals(lanes) & (place + lanes <= pixels)
            with b.when(whole):
                axes = inner_axes(b, self.flat, place, self.written, lanes)
                for r in b.range(0, rows):
                    self.epilogue.store([image, channel + r, *axes], tile.vector(r * nr + j, lanes), dtype)
            with b.when_not(whole):
                for i in b.range(image, (first + count - 1) // pixels + 1):
                    begin = first - i * pixels  # of the vector, in this image
                    low, high = b.maximum(0, 0 - begin), b.minimum(count, pixels - begin)
                    start = b.splat(b.convert("trunc", low, "i32"), lanes)
                    mask = (b.iota(numbers) >= start) & b.first_lanes(high, lanes)
                    axes = inner_axes(b, self.flat, begin, self.written, lanes)
                    for r in b.range(0, rows):
                        self.epilogue.store([i, channel + r, *axes], tile.vector(r * nr + j, lanes), dtype, mask)

    # --- packing

    def pack_panel(self, target: Array, batch: Value, column: Value, start: Value, depth: Value) -> None:
        """For each vector of pixels, each run of it within a row, each tap: all channels."""
        b, lanes = self.code.b, self.code.lanes
        group = self.image.at((batch * self.channels + start // self.taps) * self.strides[1])
        count = b.minimum(self.code.columns, self.size.columns - column)
        for j in b.range(0, count, lanes):
            for run in self._runs(column + j, b.minimum(lanes, count - j)):
                plane = group.at(run.image * self.strides[0])
                for kd in b.range(0, self.window.kernel[0]):
                    d, d_inside = self._source(run.place[0], kd, 0)
                    for kh in b.range(0, self.window.kernel[1]):
                        h, h_inside = self._source(run.place[1], kh, 1)
                        row = plane.at(d * self.strides[2] + h * self.strides[3])
                        for kw in b.range(0, self.window.kernel[2]):
                            tap = (kd * self.window.kernel[1] + kh) * self.window.kernel[2] + kw
                            place = target.at(tap * self.code.columns + j)
                            self._pack_run(place, row, run, kw, d_inside & h_inside, depth // self.taps)

    def _runs(self, pixel: Value, count: Value) -> Iterator[Run]:
        """The rows that `count` pixels from `pixel` on touch."""
        b, width = self.code.b, self.written[2]
        row0 = pixel // width
        column0 = pixel - row0 * width  # type: ignore[operator]
        for r in b.range(0, (column0 + count - 1) // width + 1):
            begin = r * width - column0
            first = b.maximum(0, begin)
            last = b.minimum(count, begin + width)
            image, *place = split(row0 + r, (self.window.batch, *self.written[:2]))
            yield Run(first, last, image, place, 0 - begin, r > 0)

    def _source(self, place: Value, tap: Value, axis: int) -> tuple[Value, Value]:
        """Where tap `tap` of the output position `place` reads on `axis`, and whether that is inside."""
        b, w = self.code.b, self.window
        offset = tap * w.dilate[axis]
        if not self.transposed:
            source = place * w.stride[axis] + offset - w.pad[axis]
            return source, b.inside(source, self.read[axis])
        moved = place + w.pad[axis] - offset
        source = moved // w.stride[axis]
        exact = (source * w.stride[axis]).equals(moved)
        return source, b.inside(source, self.read[axis]) & exact & (moved >= 0)

    def _pack_run(self, place: Array, row: Array, run: Run, tap: Value, inside: Value, channels: Value) -> None:
        """One tap of a run for `channels` channels: lanes from the row, 0 where it does not reach."""
        b, lanes, w = self.code.b, self.code.lanes, self.window
        stride, read, step = b.lift(w.stride[2]), b.lift(self.read[2]), self.strides[4]
        numbers = vector_type("i64", lanes)
        iota = b.iota(numbers)

        def same(x: Value) -> Value:
            return b.splat(x, lanes)

        in_run = (iota >= same(run.first)) & (iota < same(run.last)) & b.splat(inside, lanes)
        if self.transposed:
            base = run.column + w.pad[2] - tap * w.dilate[2]
            moved = same(base) + iota
            source = moved // same(stride)
            in_run = in_run & (source * same(stride)).equals(moved) & (moved >= b.zero(numbers))
        else:
            base = run.column * stride + tap * w.dilate[2] - w.pad[2]
            source = same(base) + iota * same(stride)
        mask = in_run & b.inside(source, same(read))
        new = mask | b.splat(b.negate(run.follows), lanes)
        plain, next_channel, convert = step.equals(1), self.strides[1], self.epilogue.arithmetic.loaded
        together = plain & stride.equals(1)
        all_lanes = together & inside & run.first.equals(0) & run.last.equals(lanes)
        all_lanes = all_lanes & (base >= 0) & (base + lanes <= read)

        def put(c: Value, vector: Value) -> None:
            here = place.at(c * (self.taps * self.code.columns))
            here.put(0, b.select(new, vector, here.vector(0, lanes)))

        with b.when(all_lanes):
            for c in b.range(0, channels):
                vector = convert(row.vector(c * next_channel + base, lanes), row.dtype)
                place.put(c * (self.taps * self.code.columns), vector)
        with b.when(together & b.negate(all_lanes)):
            for c in b.range(0, channels):
                put(c, convert(row.vector(c * next_channel + base, lanes, mask), row.dtype))
        by_two = plain & stride.equals(2)
        with b.when(by_two):
            masks = pair_masks(b, half_up(base) if self.transposed else base, read, inside, lanes)
            for c in b.range(0, channels):
                line = row.at(c * next_channel)
                if self.transposed:
                    raw = spread_out(line, base, masks[0], lanes)
                else:
                    raw = every_other(line.at(base), masks, lanes)
                vector = convert(raw, row.dtype)
                put(c, b.select(mask, vector, b.zero(vector.type)))
        with b.when_not(together | by_two):
            offsets = source * same(step)
            for c in b.range(0, channels):
                put(c, convert(row.at(c * next_channel).gather(offsets, mask), row.dtype))
