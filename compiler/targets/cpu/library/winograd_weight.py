"""The weight's side of Winograd's convolutions: G g G' of each kernel g, packed for each of the 36 places.

A unit of work is a group of rows (filters, or channels where kernels are turned) and some of the depth:

    for each kernel of the depth, each block of the group:
        the taps of the block's kernels, transposed: a vector of rows for each tap
        G g G', to [place][depth][row]
"""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel.geometry import Window, WinogradWeight
from mxc.compiler.ops.winograd import TAPS
from mxc.compiler.targets.cpu.emit.builder import Builder, Value
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import N, ceil_div, odd
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.winograd_tiles import both_sides
from mxc.compiler.targets.cpu.machine.isa import Isa

PART = 64  # a unit has at most so many kernels of the depth


def _sizes(w: Window[N], turned: bool) -> tuple[N, N]:
    """Rows and depth."""
    return (w.channels, w.filters) if turned else (w.filters, w.channels)


def units(g: WinogradWeight[int], isa: Isa) -> int:
    rows, depth = _sizes(g.window, g.turned)
    return ceil_div(rows, g.columns) * ceil_div(odd(depth), PART)


def scratch_elements(g: WinogradWeight[int], isa: Isa) -> int:
    return 0


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b = p.b
    with b.function("transform", "ptr args, i64 group, i64 begin, i64 k", True) as (args, *place):
        _Weight(p, args).transform(*place)
    with b.function(p.symbol, KERNEL) as (args, first, last, _):
        g: WinogradWeight[Value] = Function(p, args).g
        rows, depth = _sizes(g.window, g.turned)
        for unit in b.range(first, last):
            group, part = split(unit, (ceil_div(rows, g.columns), ceil_div(odd(depth), PART)))
            for begin in b.range(0, g.columns, p.isa.lanes(p.dtype)):
                for k in b.range(part * PART, b.minimum(part * PART + PART, odd(depth))):
                    b.call("transform", [args, group, begin, k])


class _Weight(Function):
    """One function of a kernel being printed."""

    g: WinogradWeight[Value]

    def transform(self, group: Value, begin: Value, k: Value) -> None:
        """The kernels of number k of the depth, of a block of rows: those from `begin` on of a group."""
        b, w, lanes, turned = self.b, self.g.window, self.lanes, self.g.turned
        row, (rows, depth) = group * self.g.columns + begin, _sizes(w, turned)
        rows = b.select(k < depth, rows, b.lift(0))
        row_step, step = (b.lift(TAPS), w.channels * TAPS) if turned else (w.channels * TAPS, b.lift(TAPS))
        source = self.epilogue.buffers[0].at(row * row_step + k * step)
        taps: list[Value] = []
        for x in range(0, TAPS, lanes):
            there = min(lanes, TAPS - x)
            masks = [b.first_lanes(b.select(row + i < rows, b.lift(there), b.lift(0)), lanes) for i in range(lanes)]
            square = [source.vector(row_step * i + x, lanes, mask) for i, mask in enumerate(masks)]
            taps += b.transpose(square)[:there]
        if turned:
            taps.reverse()
        walk = self.epilogue.walk([b.lift(0), group, k, Lane(begin)], 0)
        for place, value in enumerate(both_sides(b, _kernel_side, [taps[i::3] for i in range(3)])):
            walk.moved(place).store(value, self.dtype)


def _kernel_side(b: Builder, g: Sequence[Value]) -> list[Value]:
    """G g for a column g: `KERNEL` of ops/winograd.py, with what its rows share computed once."""
    def times(x: Value, factor: float) -> Value:
        return x * b.number(factor, x.type)

    ends, far, odd = g[0] + g[2], b.fma(g[2], b.number(4, g[2].type), g[0]), g[1] + g[1]
    return [times(g[0], 1 / 4), times(ends + g[1], -1 / 6), times(ends - g[1], -1 / 6), times(far + odd, 1 / 24),
            times(far - odd, 1 / 24), g[2]]
