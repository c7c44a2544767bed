"""Convolutions as products of matrices whose panels are packed straight from the image (implicit GEMM)."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mxc.compiler.kernel.geometry import Convolution, ConvolutionDataGrad, Window
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.targets.cpu.emit.builder import Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library import blocks
from mxc.compiler.targets.cpu.library.blocks import Blocking, Lines, Product, Size, TileCode, pack_lines
from mxc.compiler.targets.cpu.library.cutting import N, ceil_div, least, volume
from mxc.compiler.targets.cpu.library.epilogue import Axis, Epilogue, Lane
from mxc.compiler.targets.cpu.library.printing import Printing
from mxc.compiler.targets.cpu.machine.isa import Isa

FILTERS = 8  # in the gradient to the data, the weights of so many filters are packed for all channels before the next


def forward_size(w: Window[N]) -> Size[N]:
    taps = volume(w.kernel)
    return Size(w.groups, w.filters, w.batch * volume(w.out), w.channels * taps, taps)


def data_grad_size(w: Window[N]) -> Size[N]:
    """A batch for each group and phase (see `TapWalk`); the depth counts as many taps as a phase can have."""
    taps: N = volume([ceil_div(w.kernel[x], _apart(w, x)) for x in range(3)])
    return Size(w.groups * volume(w.stride), w.channels, w.batch * volume(_phase(w)), w.filters * taps, taps)


def _apart(w: Window[N], axis: int) -> N:
    """The least distance of two taps of a phase, in taps: the stride if the kernel is not dilated, else 1."""
    stride = w.stride[axis]
    return stride - (stride - 1) * least(w.dilate[axis] - 1, 1)


def _phase(w: Window[N]) -> list[N]:
    """How many positions a phase has on each axis; the last one may lie outside."""
    return [ceil_div(n, s) for n, s in zip(w.data, w.stride, strict=True)]


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


def every_other(line: Array, masks: Sequence[Value | None], lanes: int) -> Value:
    """Elements 0, 2, 4, ... as one vector: a load with a stride of 2."""
    first, second = line.vector(0, lanes, masks[0]), line.vector(lanes, lanes, masks[1])
    return line.builder.shuffle(first, second, range(0, 2 * lanes, 2))


def spread_out(line: Array, moved: Value, mask: Value, lanes: int) -> Value:
    """line[(moved + l) / 2] in each lane l where that leaves no rest, else 0. mask: which elements exist, from
    (moved + 1) / 2 on."""
    b = line.builder
    near = line.vector(half_up(moved), lanes, mask)
    zero, gap, numbers = b.zero(near.type), [lanes] * (lanes // 2), range(lanes // 2)
    even = b.shuffle(near, zero, [x for pair in zip(numbers, gap, strict=True) for x in pair])
    odd = b.shuffle(near, zero, [x for pair in zip(gap, numbers, strict=True) for x in pair])
    return b.select((moved - half_up(moved) * 2).equals(0), even, odd)


def half_up(x: Value) -> Value:
    """x / 2 rounded up, for negative numbers too."""
    return x.builder.binary("ashr", x + 1, x.builder.lift(1))


@dataclass
class Run:
    """Lanes first <= l < last of a vector: neighbours in a row of pixels; lane l has the last coordinate column + l."""

    first: Value
    last: Value
    image: Value
    place: list[Value]  # d, h
    column: Value
    follows: Value  # whether an earlier run has written the vector


@dataclass
class TapWalk:
    """What the pixels of a batch read: on an axis, position p and tap m read p * scale + start + m * step.

    In the gradient to the data the positions p * stride + rest, for one rest on each axis, are a phase: they read the
    same taps of the kernel, and no others. Tap m of the walk is the kernel's tap first + m * apart.
    """

    taps: Sequence[Value]
    scale: Sequence[Value]
    start: Sequence[Value]
    step: Sequence[Value]
    first: Sequence[Value] = ()
    apart: Sequence[Value] = ()


class Pixels(Product):
    """A convolution as a product: its rows are filters, its columns the pixels of all images, and its depth is
    channels x taps of the kernel, read from the images."""

    def __init__(self, code: TileCode, args: Value):
        self.code, self.epilogue = code, Epilogue(code.printing.kernel, code.b, args, code.printing.isa)
        g: Convolution[Value] | ConvolutionDataGrad[Value] = self.epilogue.geometry
        w = self.window = g.window
        self.flat, self.packed, self.transposed = g.flat, bool(g.block), isinstance(g, ConvolutionDataGrad)
        self.strided = isinstance(g, ConvolutionDataGrad) and g.strided
        self.image, self.weight = self.epilogue.buffers[:2]
        self.direct_rows = self.packed and self.weight.dtype == code.dtype
        self.phases: Number = volume(w.stride) if self.strided else 1
        self.written: Sequence[Value]
        if isinstance(g, ConvolutionDataGrad):
            self.strides, self.size = g.out_strides, data_grad_size(w)
            self.read, self.channels = w.out, w.filters
            self.written = _phase(w) if self.strided else w.data
        else:
            self.strides, self.size = g.data_strides, forward_size(w)
            self.read, self.written, self.channels = w.data, w.out, w.channels

    def part(self, batch: Value, start: Value, depth: Value) -> tuple[Value, Value]:
        if not self.strided:
            return start, depth
        taps = volume(self.walk(batch).taps)
        return start // self.size.granule * taps, depth // self.size.granule * taps

    def at_once(self, depth: Value) -> Value:
        """In the gradient to the data these are a few filters, because the channels of a filter lie together."""
        return self.size.granule * FILTERS if self.transposed else depth

    def walk(self, batch: Value) -> TapWalk:
        b, w = self.code.b, self.window
        ones = [b.lift(1)] * 3
        if not self.transposed:
            return TapWalk(w.kernel, w.stride, [0 - p for p in w.pad], w.dilate)
        if not self.strided:
            return TapWalk(w.kernel, ones, w.pad, [0 - d for d in w.dilate])
        taps: list[Value] = []
        start, step, firsts, aparts = ([*taps] for _ in range(4))
        rests = self._rest(batch)
        for rest, kernel, stride, dilate, pad in zip(rests, w.kernel, w.stride, w.dilate, w.pad, strict=True):
            found = [kernel, stride]  # the first tap, and how many taps the next one is further
            for k in b.range(0, stride, carry=found):
                exact = ((rest + pad - k * dilate) % stride).equals(0)
                found[0] = b.select(exact, b.minimum(found[0], k), found[0])
                again = ((k + 1) * dilate % stride).equals(0)
                found[1] = b.select(again, b.minimum(found[1], k + 1), found[1])
            first, apart = found
            firsts.append(first)
            aparts.append(apart)
            taps.append((kernel - first + apart - 1) // apart)
            start.append((rest + pad - first * dilate) // stride)
            step.append(0 - apart * dilate // stride)
        return TapWalk(taps, ones, start, step, firsts, aparts)

    def _rest(self, batch: Value) -> list[Value]:
        return split(batch % self.phases, self.window.stride)

    def row_tile(self, batch: Value, tile: Value, depth: Value) -> Array:
        tiles = ceil_div(self.size.rows, self.code.rows)
        return self.weight.at(((batch * tiles + tile) * self.size.depth + depth) * self.code.rows)

    def pack_tile(self, target: Array, batch: Value, row: Value, start: Value, depth: Value) -> None:
        b, mr, rows = self.code.b, self.code.rows, self.size.rows
        if self.packed:  # weights stored in another dtype than they are computed in
            source = self.row_tile(batch, row // mr, start)
            count = depth * mr
            for i in b.range(0, count, self.code.lanes):
                mask = b.first_lanes(count - i, self.code.lanes)
                vector = source.vector(i, self.code.lanes, mask)
                target.put(i, self.epilogue.arithmetic.loaded(vector, source.dtype))
            return
        if not self.transposed:
            step = self.size.depth
            source = self.weight.at((batch * rows + row) * step + start)
            pack_lines(self.epilogue, self.code.lanes, target, Lines(source, rows - row, step, b.lift(1), depth), mr)
            return
        walk, kernel = self.walk(batch), volume(self.window.kernel)
        taps = b.maximum(1, volume(walk.taps))
        filter0 = batch // self.phases * self.window.filters + start // taps
        for k in b.range(0, depth // taps):  # the weight's axes: filters, channels, taps
            source, here = self.weight.at(((filter0 + k) * rows + row) * kernel), target.at(k * taps * mr)
            if self.strided:
                self._pack_taps(here, source, walk, kernel, rows - row)
            else:
                lines = Lines(source, rows - row, kernel, b.lift(1), kernel)
                pack_lines(self.epilogue, self.code.lanes, here, lines, mr)

    def _pack_taps(self, target: Array, source: Array, walk: TapWalk, kernel: Value, valid: Value) -> None:
        """Packs the weights of one filter as [tap of the walk][MR]; lines from `valid` on get anything."""
        b, mr = self.code.b, self.code.rows
        lines = [b.minimum(i, valid - 1) * kernel for i in range(mr)]
        for tap in b.range(0, volume(walk.taps)):
            places = zip(split(tap, walk.taps), walk.first, walk.apart, strict=True)
            kd, kh, kw = (first + m * apart for m, first, apart in places)
            here = source.at((kd * self.window.kernel[1] + kh) * self.window.kernel[2] + kw)
            for i, line in enumerate(lines):
                target[tap * mr + i] = self.epilogue.arithmetic.loaded(here[line], source.dtype)

    def finish(self, tile: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value) -> None:
        b, lanes = self.code.b, self.code.lanes
        channel = batch // self.phases * self.size.rows + row
        for j in b.range(0, columns, lanes):
            finish = self._finish_phase if self.strided else self._finish_pixels
            finish(tile.at(j), batch, channel, rows, column + j, b.minimum(columns - j, lanes))

    def _finish_pixels(self, tile: Array, _: Value, channel: Value, rows: Value, first: Value, count: Value) -> None:
        """Stores a whole vector, or a masked one for each image where it touches several, or where columns end."""
        b, nr, lanes, dtype = self.code.b, self.code.columns, self.code.lanes, self.code.dtype
        pixels = volume(self.written)
        image = first // pixels
        place = first - image * pixels
        whole = count.equals(lanes) & (place + lanes <= pixels)
        with b.when(whole):
            axes = inner_axes(b, self.flat, place, self.written, lanes)
            for r in b.range(0, rows):
                self.epilogue.store([image, channel + r, *axes], tile.vector(r * nr, lanes), dtype)
        with b.when_not(whole):
            for i in b.range(image, (first + count - 1) // pixels + 1):
                begin = first - i * pixels  # of the vector, in this image
                mask = self._between(b.maximum(0, 0 - begin), b.minimum(count, pixels - begin))
                axes = inner_axes(b, self.flat, begin, self.written, lanes)
                for r in b.range(0, rows):
                    self.epilogue.store([i, channel + r, *axes], tile.vector(r * nr, lanes), dtype, mask)

    def _finish_phase(self, tile: Array, batch: Value, channel: Value, rows: Value, first: Value, count: Value) -> None:
        """Stores a masked vector for each row of a phase that it touches: the row's pixels lie a stride apart."""
        b, w, nr, lanes = self.code.b, self.window, self.code.columns, self.code.lanes
        rest, numbers = self._rest(batch), vector_type("i64", lanes)
        for run in self._runs(first, count):
            d, h = (p * w.stride[x] + rest[x] for x, p in enumerate(run.place))
            left = run.column * w.stride[2] + rest[2]
            x = b.splat(left, lanes) + b.iota(numbers) * b.splat(w.stride[2], lanes)
            exists = b.splat(b.inside(d, w.data[0]) & b.inside(h, w.data[1]), lanes)
            mask = self._between(run.first, run.last) & exists & b.inside(x, b.splat(w.data[2], lanes))
            axes = [d, h, x]
            if self.flat:
                axes = [b.splat((d * w.data[1] + h) * w.data[2], lanes) + x]
            for r in b.range(0, rows):
                vector = tile.vector(r * nr, lanes)
                self.epilogue.store([run.image, channel + r, *axes], vector, self.code.dtype, mask)

    def _between(self, first: Value, last: Value) -> Value:
        """The mask of the lanes first <= l < last."""
        b, lanes = self.code.b, self.code.lanes
        begin = b.splat(b.convert("trunc", first, "i32"), lanes)
        return (b.iota(vector_type("i32", lanes)) >= begin) & b.first_lanes(last, lanes)

    # --- packing

    def pack_panel(self, target: Array, batch: Value, column: Value, start: Value, depth: Value) -> None:
        """Packs all channels of each tap, for each run of pixels within a row, for each vector of pixels."""
        b, lanes, walk = self.code.b, self.code.lanes, self.walk(batch)
        taps = b.maximum(1, volume(walk.taps))
        channel, channels = batch // self.phases * self.channels + start // taps, depth // taps
        plane = self.image.at(channel * self.strides[1])
        count = b.minimum(self.code.columns, self.size.columns - column)

        def source(place: Value, tap: Value, axis: int) -> tuple[Value, Value]:
            at = place * walk.scale[axis] + walk.start[axis] + tap * walk.step[axis]
            return at, b.inside(at, self.read[axis])

        for j in b.range(0, count, lanes):
            for run in self._runs(column + j, b.minimum(lanes, count - j)):
                image = plane.at(run.image * self.strides[0])
                for kd in b.range(0, walk.taps[0]):
                    d, d_inside = source(run.place[0], kd, 0)
                    for kh in b.range(0, walk.taps[1]):
                        h, h_inside = source(run.place[1], kh, 1)
                        row = image.at(d * self.strides[2] + h * self.strides[3])
                        for kw in b.range(0, walk.taps[2]):
                            tap = (kd * walk.taps[1] + kh) * walk.taps[2] + kw
                            place = target.at(tap * self.code.columns + j)
                            base = source(run.column, kw, 2)[0]
                            self._pack_run(place, row, run, base, d_inside & h_inside, channels, taps)

    def _runs(self, pixel: Value, count: Value) -> Iterator[Run]:
        """The rows that `count` pixels from `pixel` on touch."""
        b, width = self.code.b, self.written[2]
        row0 = pixel // width
        column0 = pixel - row0 * width
        for r in b.range(0, (column0 + count - 1) // width + 1):
            begin = r * width - column0
            first = b.maximum(0, begin)
            last = b.minimum(count, begin + width)
            image, *place = split(row0 + r, (self.window.batch, *self.written[:2]))
            yield Run(first, last, image, place, 0 - begin, r > 0)

    def _pack_run(self, place: Array, row: Array, run: Run, base: Value, inside: Value, channels: Value, taps: Value,
                  ) -> None:
        """Packs one tap of a run for `channels` channels: lanes from `base` of the row on, 0 where the row has none."""
        b, lanes = self.code.b, self.code.lanes
        scale, read = b.lift(1) if self.transposed else self.window.stride[2], self.read[2]
        step = self.strides[4]
        numbers = vector_type("i64", lanes)
        source = b.splat(base, lanes) + b.iota(numbers) * b.splat(scale, lanes)
        mask = self._between(run.first, run.last) & b.splat(inside, lanes) & b.inside(source, b.splat(read, lanes))
        new = mask | b.splat(b.negate(run.follows), lanes)
        plain, next_channel, convert = step.equals(1), self.strides[1], self.epilogue.arithmetic.loaded
        together = plain & scale.equals(1)
        all_lanes = together & inside & run.first.equals(0) & run.last.equals(lanes)
        all_lanes = all_lanes & (base >= 0) & (base + lanes <= read)

        def put(c: Value, vector: Value) -> None:
            here = place.at(c * (taps * self.code.columns))
            here.put(0, b.select(new, vector, here.vector(0, lanes)))

        with b.when(all_lanes):
            for c in b.range(0, channels):
                vector = convert(row.vector(c * next_channel + base, lanes), row.dtype)
                place.put(c * (taps * self.code.columns), vector)
        with b.when(together & b.negate(all_lanes)):
            for c in b.range(0, channels):
                put(c, convert(row.vector(c * next_channel + base, lanes, mask), row.dtype))
        by_two = plain & scale.equals(2)
        if not self.transposed:
            with b.when(by_two):
                masks = pair_masks(b, base, read, inside, lanes)
                for c in b.range(0, channels):
                    vector = convert(every_other(row.at(c * next_channel + base), masks, lanes), row.dtype)
                    put(c, b.select(mask, vector, b.zero(vector.type)))
        with b.when_not(together | by_two):
            offsets = source * b.splat(step, lanes)
            for c in b.range(0, channels):
                put(c, convert(row.at(c * next_channel).gather(offsets, mask), row.dtype))


def _blocking(g: Convolution[int] | ConvolutionDataGrad[int], isa: Isa) -> Blocking[int]:
    dtype = computing_dtype(g.dtype)
    size = data_grad_size(g.window) if isinstance(g, ConvolutionDataGrad) else forward_size(g.window)
    return Blocking.of(size, isa.tile(dtype), dtype)


def units(g: Convolution[int] | ConvolutionDataGrad[int], isa: Isa) -> int:
    return _blocking(g, isa).units()


def scratch_elements(g: Convolution[int] | ConvolutionDataGrad[int], isa: Isa) -> int:
    return _blocking(g, isa).layout(isa.tile(g.dtype), isa.lanes(g.dtype))[2]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    code = TileCode(p)
    blocks.print_kernel(code, lambda args: Pixels(code, args))
