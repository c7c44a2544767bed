"""The words of loop kernels for windows that slide along their results: neighbouring results are a vector.

LLVM makes such vectors too, but gathers what lies two apart in memory, and what is left of a row, or lies at its ends,
it computes element by element. Here lanes that a window does not have are masked.
"""
from __future__ import annotations

import functools

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.interpret import identity
from mxc.compiler.targets.cpu.emit.builder import Array, Value, vector_type
from mxc.compiler.targets.cpu.emit.typed import Buffer, Steps, Typed
from mxc.compiler.targets.cpu.library.arithmetic import register_type
from mxc.compiler.targets.cpu.library.convolution import every_other, pair_masks

CHAINS = 4  # so many vectors are combined at a time: each waits for the one before it


# many parameters: the arguments of the word as loops write it (windows.py).
def slid(op: str, s: Steps, to: Buffer, count: Typed, step: Typed, taps: Typed, apart: Typed, high: Typed,
         *rows: Buffer | Typed) -> None:
    """to[x] for x < count: the elements row[x * step + k * apart], k < taps, of all rows, combined by `op`; "squares"
    adds up their squares.

    rows: for each whether it is there, its number `low`, and a buffer that begins with it. Only elements for which
    0 <= low + x * step + k * apart < high count. `to` is written to the end of the last vector.
    """
    _Slide(op, s, to, rows).run(*(s.whole(x) for x in (count, step, taps, apart, high)))


class _Slide:
    def __init__(self, op: str, s: Steps, to: Buffer, rows: tuple[Buffer | Typed, ...]):
        self.op, self.squared, self.s, self.b = "sum" if op == "squares" else op, op == "squares", s, s.b
        self.to = Array(s.b, to.pointer, to.dtype)
        self.rows = [(s.truth(there), s.whole(low), Array(s.b, row.pointer, row.dtype))
                     for there, low, row in zip(rows[::3], rows[1::3], rows[2::3], strict=True)
                     if isinstance(row, Buffer) and isinstance(low, Typed) and isinstance(there, Typed)]
        self.lanes = s.isa.lanes(to.dtype)
        self.neutral = s.b.number(identity(self.op, to.dtype), vector_type(register_type(to.dtype), self.lanes))

    def run(self, count: Value, step: Value, taps: Value, apart: Value, high: Value) -> None:
        """One of three loops runs: elements of neighbouring results lie together, two apart, or anywhere."""
        b, lanes = self.b, self.lanes
        reach = (count - 1) * step + (taps - 1) * apart + 1
        ends = [b.maximum(b.minimum(high, low + reach), 0) for _, low, _ in self.rows]
        for distance in (1, 2, 0):
            wanted = step.equals(distance) if distance else step > 2
            for near in b.range(0, b.select(wanted, count, b.number(0)), lanes):
                # the last vector, too, is whole, if there are enough results: some are then computed twice
                x = b.select(count < lanes, near, b.minimum(near, count - lanes))

                def results(whole: bool, x: Value = x, distance: int = distance) -> Value:
                    best = [self.neutral] * min(CHAINS, len(self.rows))
                    for k in b.range(0, taps, carry=best):
                        self.add(best, whole, distance, x * step + k * apart, step, ends)
                    return functools.reduce(self.combined, best)

                if distance:
                    most = (x + lanes - 1) * step + (taps - 1) * apart + distance - 1
                    inside = self.whole(x * step, most, ends)
                    found = b.choose(inside, functools.partial(results, True), functools.partial(results, False))
                else:
                    found = results(False)
                self.to.put(x, found)

    def whole(self, least: Value, most: Value, ends: list[Value]) -> Value:
        """Whether all rows are there, and have elements from place `least` to `most`."""
        checks = [part for (there, low, _), end in zip(self.rows, ends, strict=True)
                  for part in (there, low + least >= 0, low + most < end)]
        return functools.reduce(lambda x, y: x & y, checks)

    def combined(self, x: Value, y: Value) -> Value:
        operator = {"sum": "add"}.get(self.op, self.op)
        places = [ir.make("acc", (), self.to.dtype, i) for i in range(2)]
        return self.s.arithmetic.step(ir.make(operator, places, self.to.dtype), [x, y])

    def add(self, best: list[Value], whole: bool, distance: int, place: Value, step: Value, ends: list[Value]) -> None:
        """Adds an element of each row of the windows to the results, whose first one has it at `place`. whole: all of
        them exist."""
        b, lanes = self.b, self.lanes
        across = b.iota(vector_type("i32", lanes)) * self.splat(step)
        for i, ((there, low, row), end) in enumerate(zip(self.rows, ends, strict=True)):
            if whole:
                raw = every_other(row.at(place), [None, None], lanes) if distance == 2 else row.vector(place, lanes)
                value = self.s.arithmetic.loaded(raw, row.dtype)
            else:
                mask = b.inside(across + self.splat(low + place), self.splat(end)) & b.splat(there, lanes)
                value = b.select(mask, self.masked(row, distance, place, mask, (low, end, there), across), self.neutral)
            value = value * value if self.squared else value
            best[i % CHAINS] = self.combined(best[i % CHAINS], value)

    def masked(self, row: Array, distance: int, place: Value, mask: Value, limits: tuple[Value, Value, Value],
               across: Value) -> Value:
        """The elements of a row from `place` on for which the mask holds."""
        b, lanes, (low, end, there) = self.b, self.lanes, limits
        if distance == 1:
            raw = row.vector(place, lanes, mask)
        elif distance == 2:
            raw = every_other(row.at(place), pair_masks(b, low + place, end, there, lanes), lanes)
        else:
            raw = row.at(place).gather(b.convert("sext", across, "i64"), mask)
        return self.s.arithmetic.loaded(raw, row.dtype)

    def splat(self, number: Value) -> Value:
        return self.b.splat(self.b.convert("trunc", number, "i32"), self.lanes)
