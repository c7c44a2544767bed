"""Numbers of windows added up where the windows lie: the gradient of average and sum pooling."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import PoolSpread
from mxc.compiler.targets.cpu.emit.builder import TYPES, Array, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.cutting import N
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.machine.isa import Isa


def units(g: PoolSpread[int], isa: Isa) -> int:
    return g.window.batch * g.window.groups


def scratch_elements(g: PoolSpread[int], isa: Isa) -> int:
    cut = Layout.of(g, isa.lanes(g.dtype))
    return cut.line + cut.pitch * g.window.out[0] * g.window.out[1]


@dataclass(frozen=True)
class Layout(Generic[N]):
    """Where things lie in scratch memory, in elements: first a row of windows with `margin` zeros before it and zeros
    behind it, `line` in all; then for each row of windows what the padded data's row gets of it, `pitch` apart."""

    margin: N
    line: N
    pitch: N

    @classmethod
    def of(cls, g: PoolSpread[N], lanes: int) -> Layout[N]:
        """For a geometry over numbers of Python's or of the printed program."""
        w = g.window
        kernel, stride, out = w.kernel[2], w.stride[2], w.out[2]
        padded = w.data[2] + w.pad[2]
        width = padded + out * stride + kernel + 3 * lanes  # at least as wide as the data and as all windows
        return cls(kernel + lanes, 2 * kernel + out + padded + 4 * lanes, width)


def print_kernel(p: Printing) -> None:
    """Per plane: what each row of windows adds to a row of the data, then for each row of the data the sum of these."""
    with p.b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        made = _Spread(p, args, scratch)
        b, w = made.b, made.g.window
        for i in b.range(0, made.layout.line, made.lanes):
            made.windows.put(i, made.zero)
        for unit in b.range(first, last):
            image, channel = unit // w.groups, unit % w.groups
            strides = made.g.out_strides
            source = made.epilogue.buffers[0].at(image * strides[0] + channel * strides[1])
            for o0 in b.range(0, w.out[0]):
                for o1 in b.range(0, w.out[1]):
                    made.spread(source.at(o0 * strides[2] + o1 * strides[3]), (o0, o1))
            for d in b.range(0, w.data[0]):
                for h in b.range(0, w.data[1]):
                    made.store_row((image, channel, d, h))


class _Spread(Function):
    g: PoolSpread[Value]

    def __init__(self, p: Printing, args: Value, scratch: Value):
        super().__init__(p, args)
        self.layout = Layout.of(self.g, self.lanes)
        self.windows = self.array(scratch)
        self.rows = self.windows.at(self.layout.line)

    def row(self, o0: Value, o1: Value) -> Array:
        """What a row of windows adds to a row of the padded data."""
        return self.rows.at((o0 * self.g.window.out[1] + o1) * self.layout.pitch)

    def spread(self, source: Array, place: tuple[Value, Value]) -> None:
        """Computes `row` of the windows at `place`, whose numbers begin at `source`."""
        b, w, lanes = self.b, self.g.window, self.lanes
        for x in b.range(0, w.out[2], lanes):
            mask = b.first_lanes(w.out[2] - x, lanes)
            self.windows.put(self.layout.margin + x, self.shares(self.read(source, x, mask), place, x))
        row, stride, none = self.row(*place), w.stride[2], b.lift(0)
        wide = w.data[2] + w.pad[2]
        for x in b.range(0, b.select(stride.equals(1), wide, none), lanes):
            row.put(x, self.taps(x, 0, 1))
        for x in b.range(0, b.select(stride.equals(2), (wide + 1) // 2, none), lanes):
            even, odd = self.taps(x, 0, 2), self.taps(x, 1, 2)
            for half in range(2):
                picks = [i + part * lanes for i in range(half * lanes // 2, (half + 1) * lanes // 2) for part in (0, 1)]
                row.put(x * 2 + half * lanes, b.shuffle(even, odd, picks))
        windows = b.select(stride > 2, w.out[2], none)
        for x in b.range(0, b.select(stride > 2, self.layout.pitch - lanes, none), lanes):
            row.put(x, self.zero)
        for x in b.range(0, windows):
            for k in b.range(0, w.kernel[2]):
                cell = row.at(x * stride + k)
                cell[0] = cell[0] + self.windows[self.layout.margin + x]

    def read(self, source: Array, x: Value, mask: Value) -> Value:
        """The numbers of the windows from `x` on."""
        b, step = self.b, self.g.out_strides[4]
        kind = vector_type("i64", self.lanes)
        together = step.equals(1)
        raw = b.choose(together, lambda: source.vector(x, self.lanes, mask),
                       lambda: source.at(x * step).gather(b.iota(kind) * b.splat(step, self.lanes), mask))
        return self.loaded(raw, source.dtype)

    def taps(self, x: Value, phase: int, stride: int) -> Value:
        """The sum of the windows x, x - 1, ... that reach the elements x * stride + phase of the padded data."""
        total = [self.zero]
        count = (self.g.window.kernel[2] - phase + stride - 1) // stride
        for t in self.b.range(0, count, carry=total):
            total[0] = total[0] + self.windows.vector(self.layout.margin + x - t, self.lanes)
        return total[0]

    def shares(self, numbers: Value, place: tuple[Value, Value], x: Value) -> Value:
        """The numbers of windows over their divisors."""
        if self.g.divisor == "none":
            return numbers
        b, lanes = self.b, self.lanes
        rows = self.length(0, place[0]) * self.length(1, place[1])
        kind = vector_type("i32", lanes)
        w, counts = self.g.window, b.iota(kind) + b.splat(b.convert("trunc", x, "i32"), lanes)
        start = counts * self.splat(w.stride[2])
        first, end = self.ends(2)
        begin = self.larger(start, self.splat(first))
        length = self.smaller(start + self.splat(w.kernel[2]), self.splat(end)) - begin
        length = self.larger(length, self.splat(1))
        element = TYPES[self.dtype]
        divisor = b.convert("sitofp", length, element) * b.splat(b.convert("sitofp", rows, element), lanes)
        return b.emit(numbers.type, f"fdiv {numbers.type} {numbers.text}, {divisor.text}")

    def ends(self, axis: int) -> tuple[Number, Value]:
        """Where the elements that count begin and end in the padded data."""
        pad, data = self.g.window.pad[axis], self.g.window.data[axis]
        return (0, data + pad * 2) if self.g.divisor == "padded" else (pad, data + pad)

    def length(self, axis: int, window: Value) -> Value:
        """How many of a window's elements count along an axis."""
        b, w = self.b, self.g.window
        start, (first, end) = window * w.stride[axis], self.ends(axis)
        return b.maximum(b.minimum(start + w.kernel[axis], end) - b.maximum(start, first), 1)

    def splat(self, number: Number) -> Value:
        return self.b.splat(self.b.convert("trunc", self.b.lift(number), "i32"), self.lanes)

    def larger(self, x: Value, y: Value) -> Value:
        return self.b.select(x > y, x, y)

    def smaller(self, x: Value, y: Value) -> Value:
        return self.b.select(x < y, x, y)

    def store_row(self, axes: Sequence[Value]) -> None:
        """The row of the data at `axes`: the sum of what the rows of windows that hold it add to it."""
        b, w, lanes = self.b, self.g.window, self.lanes
        bounds = [self.holding(i, place) for i, place in enumerate(axes[2:])]
        for x in b.range(0, w.data[2], lanes):
            total = [self.zero]
            for o0 in b.range(*bounds[0], carry=total):
                for o1 in b.range(*bounds[1], carry=total):
                    total[0] = total[0] + self.row(o0, o1).vector(w.pad[2] + x, lanes)
            self.epilogue.store([*axes, Lane(x)], total[0], self.dtype, b.first_lanes(w.data[2] - x, lanes))

    def holding(self, axis: int, place: Value) -> tuple[Value, Value]:
        """The windows from the first one on, to the one behind the last, that hold a place along an axis."""
        b, w = self.b, self.g.window
        last = (place + w.pad[axis]) // w.stride[axis] + 1
        first = (b.maximum(place + w.pad[axis] - w.kernel[axis] + 1, 0) + w.stride[axis] - 1) // w.stride[axis]
        return first, b.minimum(last, w.out[axis])
