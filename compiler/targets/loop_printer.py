"""What the printers of loop kernels share: names, which values are ready where, sweeps, combining and storing."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.interpret import identity
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, Value, computing_dtype
from mxc.compiler.targets.scalar_printer import ROUNDING, ScalarPrinter, SourceLines

ARG = ("argmax", "argmin")


class LoopPrinter:
    """Base of the targets' printers of one canonical kernel.

    Names: extents n0, n1, ...; axes i0, i1, ...; run-time integers k0, k1, ...; buffers b0, b1, ...; constants c0, ...
    """

    printer_class = ScalarPrinter

    def __init__(self, kernel: LoopKernel, lane: int | None = None):
        """lane: the axis for whose points the accumulators are an array."""
        self.kernel = kernel
        self.source = SourceLines()
        self.first = len(kernel.domain)
        self.extents = [f"n{i}" for i in range(len(kernel.domain) + len(kernel.reduce))]
        self.integers = {id(v): f"k{i}" for i, v in enumerate(ir.run_time_integers(kernel.roots()))}
        self.acc_names: dict[int, str] = {}
        self.printer = self.printer_class(self.source, self.leaf)
        self.open_axes: set[int] = set()
        self.lane = lane
        # By id of a value: the axes and the accumulators that it depends on.
        self.needs: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        self.find_needs(kernel.roots())

    def find_needs(self, roots: Sequence[Value]) -> None:
        """Looks what `roots` depend on."""
        for v in ir.walk(roots):
            axes: frozenset[int] = frozenset([v.data]) if v.op == "axis" else frozenset()  # type: ignore[list-item]
            if v.op == "acc" and self.lane is not None:
                axes = frozenset([self.lane])
            accs: frozenset[int] = frozenset([v.data]) if v.op == "acc" else frozenset()  # type: ignore[list-item]
            for a in v.args:
                axes, accs = axes | self.needs[id(a)][0], accs | self.needs[id(a)][1]
            self.needs[id(v)] = axes, accs

    def leaf(self, v: Value) -> str | None:
        if v.op == "axis":
            return f"i{v.data}"
        if v.op == "acc":
            return self.acc_names[v.data]  # type: ignore[index]
        return self.integers.get(id(v))

    def ready(self, v: Value) -> bool:
        """Whether all that a value depends on is there: its axes have open loops, its accumulators are finished."""
        axes, accs = self.needs[id(v)]
        return axes <= self.open_axes and accs <= set(self.acc_names)

    def hoist(self, roots: Sequence[Value]) -> None:
        """Print the parts of `roots` that depend on the open loops alone, outside of the loops to come."""
        self.printer.print_where(roots, self.ready)

    @contextmanager
    def loop(self, axis: int, start: str, stop: str) -> Iterator[None]:
        with self.printer.scope(f"for i{axis} in range({start}, {stop}):"):
            self.open_axes.add(axis)
            yield
            self.open_axes.discard(axis)

    def sweep_order(self) -> list[list[int]]:
        """Positions of the accumulators, by sweep: those that need others' results come after them."""
        level: dict[int, int] = {}
        for i, a in enumerate(self.kernel.accumulators):
            level[i] = 1 + max((level[j] for j in self.needs[id(a.body)][1]), default=-1)
        return [[i for i, n in level.items() if n == sweep] for sweep in range(max(level.values(), default=-1) + 1)]

    def neutral(self, a: Accumulator) -> str:
        """The constant that an accumulator starts with."""
        combine = {"argmax": "max", "argmin": "min"}.get(a.combine, a.combine)
        dtype = computing_dtype(a.body.dtype)
        return self.printer.constant(ir.const(identity(combine, dtype), dtype))

    def combine(self, a: Accumulator, total: str, best: str, value: str, flat: str) -> None:
        """total = total combined with value; argmax and argmin: `best` is the position of `total`, `flat` that of
        `value`, which comes after it. The first of equals is kept, and the first NaN before all numbers."""
        if a.combine not in ARG:
            self.source(f"{total} = {a.combine}_({total}, {value})")
            return
        sign = ">" if a.combine == "argmax" else "<"
        self.source(f"better = ({value} {sign} {total}) | (({value} != {value}) & ({total} == {total}))")
        self.source(f"{total} = select(better, {value}, {total})")
        self.source(f"{best} = select(better, {flat}, {best})")

    def flat_position(self) -> str:
        """The position in the flattened reduce axes."""
        text = "0"
        for i in range(self.first, len(self.extents)):
            text = f"i{i}" if text == "0" else f"({text}) * n{i} + i{i}"
        return text

    def uses_reduce(self, s: Store) -> bool:
        """True for a store that runs at every point of the reduce axes."""
        return any(a >= self.first for v in (s.index, s.value) for a in self.needs[id(v)][0])

    def store_roots(self, stores: list[Store]) -> list[Value]:
        return [v for s in stores for v in (s.index, s.value)]

    def target(self, buffer: int) -> str:
        """The name of a buffer that is stored to."""
        return f"b{buffer}"

    def store(self, stores: list[Store]) -> None:
        values = [(s, self.printer.print(s.index), self.printer.print(s.value)) for s in stores]
        for s, index, value in values:  # values first: a store may be in place
            dtype = self.kernel.buffers[s.buffer]
            if s.mode == "add":
                total = f"{self.printer.element(s.buffer, index, dtype)} + {value}"
                value = total if dtype in ("float32", "float64", "int64", *ROUNDING) else f"{dtype}({total})"
            self.source(f"{self.target(s.buffer)}[{index}] = {self.printer.stored(value, dtype)}")
