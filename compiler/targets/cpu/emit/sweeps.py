"""Sweeps over the reduce axes in the loop kernels of the CPU: accumulators, partial sums, stores after them."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import fixed, lanes
from mxc.compiler.kernel.ir import LoopKernel, Store, Value, computing_dtype
from mxc.compiler.targets.cpu.emit.skeletons import PARTIAL, fetched, skeleton, streams
from mxc.compiler.targets.loop_printer import ARG, LoopPrinter
from mxc.compiler.targets.scalar_printer import ROUNDING


@dataclass(frozen=True)
class Kept:
    """A function's value that the last sweep of the accumulators puts where `store` will put its own later: the stores'
    sweep then takes it from there instead of computing it again (softmax: its exponentials)."""

    store: Store
    value: Value


class Sweeps(LoopPrinter):
    """What the skeletons of loops.py share: how everything at one point of the domain is printed."""

    def __init__(self, kernel: LoopKernel):
        self.lanes, self.fixed = lanes(kernel), fixed(kernel)
        self.points = len(kernel.domain) - (self.lanes > 0)  # domain axes outside of the lanes
        super().__init__(kernel, self.points if self.lanes else None)
        self.early = self.find_early()
        self.kept = self.find_kept() if skeleton(kernel) == "rows" and not self.lanes and not self.early else None
        self.reading_kept = False
        self.streams, self.fetched = streams(kernel), fetched(kernel)

    def find_early(self) -> list[Store]:
        """The stores at each point of the reduce axes, if none of them needs an accumulator. The accumulators' last
        sweep makes them, so that it computes and loads what both need once. They are early all or none: a store that
        had to wait might read what an early one overwrote."""
        every = [s for s in self.kernel.stores if self.uses_reduce(s)] if self.kernel.accumulators else []
        return [] if any(self.needs[id(v)][1] for v in self.store_roots(every)) else every

    def find_kept(self) -> Kept | None:
        """The value to keep, or None. There is one when a single store sweeps the reduce axes, and all that it needs of
        their points is a function's value, of its own dtype, that the last sweep computes too."""
        sweeps, every = self.sweep_order(), [s for s in self.kernel.stores if self.uses_reduce(s)]
        if not sweeps or len(every) != 1 or every[0].mode != "write":
            return None
        store = every[0]
        bodies = [self.kernel.accumulators[i].body for i in sweeps[-1]]
        computed = {id(v) for v in ir.walk(bodies) if v.op in ir.FUNCTIONS and v.dtype == store.value.dtype}
        found = [v for v in ir.walk([store.value]) if id(v) in computed and self.sweeps(v)]
        if len(found) != 1 or self.kernel.buffers[store.buffer] != found[0].dtype or found[0].dtype in ROUNDING:
            return None
        return None if self.loads_besides(store.value, found[0]) else Kept(store, found[0])

    def sweeps(self, v: Value) -> bool:
        return any(a >= self.first for a in self.needs[id(v)][0])

    def loads_besides(self, root: Value, kept: Value) -> bool:
        """True when `root`, outside of `kept`, has a load that depends on the reduce axes."""
        stack, seen = [root], {id(kept)}
        while stack:
            v = stack.pop()
            if id(v) not in seen:
                seen.add(id(v))
                if v.op == "load" and self.sweeps(v):
                    return True
                stack.extend(v.args)
        return False

    def leaf(self, v: Value) -> str | None:
        if self.reading_kept and self.kept is not None and v is self.kept.value:
            store = self.kept.store
            return f"{self.target(store.buffer)}[{self.printer.print(store.index)}]"
        return super().leaf(v)

    def target(self, buffer: int) -> str:
        return f"to{buffer}" if buffer in self.streams else super().target(buffer)

    @contextmanager
    def streaming(self, start: str, count: str) -> Iterator[None]:
        """Within it, a stretch of the innermost axis is stored, `count` points from `start` on. What is streamed goes
        to scratch memory, and from there past the caches to its place."""
        places = {b: self.printer.print(begin) for b, begin in self.streams.items()}
        for i, (buffer, place) in enumerate(places.items()):
            self.source(f"to{buffer} = elsewhere(b{buffer}, s{i}, {place} + {start})")
        yield
        for i, (buffer, place) in enumerate(places.items()):
            self.source(f"streamed(b{buffer}, {place} + {start}, s{i}, {count})")

    def part(self, last: str, size: str, block: str) -> None:
        """Rows row..row_stop and the stretch start..stop of the last axis that make up `unit`."""
        outer = " * ".join(self.extents[:self.points - 1]) or "1"
        self.source(f"row = udiv(unit, parts) * {block}")
        self.source(f"row_stop = min_(row + {block}, {outer})")
        self.source(f"start = umod(unit, parts) * {size}")
        self.source(f"stop = min_(start + {size}, {last})")

    @contextmanager
    def row_loop(self, axes: range, start: str, stop: str) -> Iterator[None]:
        """Rows start..stop of the flattened `axes`: the first row is divided into their places, which then count on."""
        if not axes:
            yield
            return
        if len(axes) == 1:
            with self.loop(axes[0], start, stop):
                yield
            return
        self.source(f"rest = {start}")
        for a in reversed(axes[1:]):
            self.source(f"i{a} = umod(rest, n{a})")
            self.source(f"rest = udiv(rest, n{a})")
        self.source(f"i{axes[0]} = rest")
        with self.printer.scope(f"for _ in range({start}, {stop}):"):
            self.open_axes.update(axes)
            yield
            self.open_axes.difference_update(axes)
            depth = self.source.depth
            for a in reversed(axes[1:]):
                self.source(f"i{a} += 1")
                self.source(f"if i{a} == n{a}:")
                self.source.depth += 1
                self.source(f"i{a} = 0")
            self.source(f"i{axes[0]} += 1")
            self.source.depth = depth

    def point(self) -> None:
        """All sweeps and stores of one point of the domain."""
        with self.streaming("0", f"n{len(self.extents) - 1}"):
            self.sweep()

    def sweep(self) -> None:
        accumulators, order = self.kernel.accumulators, self.sweep_order()
        for sweep in order:
            with self.each_lane():
                for i in sweep:
                    self.source(f"{self.own('acc', i)} = {self.neutral(accumulators[i])}")
                    if accumulators[i].combine in ARG:
                        self.source(f"{self.own('best', i)} = 0")
            self.reduce_loops(self.sweep_roots(sweep), lambda sweep=sweep: self.accumulate(sweep), sweep)
            for i in sweep:
                if accumulators[i].combine in ARG:
                    self.acc_names[i] = self.own("best", i)
                    continue
                self.acc_names[i] = total = self.own("acc", i)
                if accumulators[i].body.dtype in ROUNDING:
                    with self.each_lane():
                        self.source(f"{total} = {self.printer.rounded(total, accumulators[i].body.dtype)}")
            self.hoist(self.kernel.roots())
            if sweep is order[0]:
                self.fetch_ahead()
        self.over_reduce([s for s in self.kernel.stores if s not in self.early])
        for i in range(len(accumulators)):
            self.acc_names.pop(i)

    def early_in(self, sweep: list[int]) -> list[Store]:
        """The stores that this sweep makes."""
        return self.early if sweep == self.sweep_order()[-1] else []

    def sweep_roots(self, sweep: list[int]) -> list[Value]:
        """What a sweep of the accumulators computes."""
        return [*(self.kernel.accumulators[i].body for i in sweep), *self.store_roots(self.early_in(sweep))]

    def fetch_ahead(self) -> None:
        """Asks for the next row of large inputs: by itself the processor looks ahead within a page only."""
        row = f"n{len(self.extents) - 1}"
        for buffer, begin in self.fetched.items():
            self.source(f"fetch(b{buffer}, {self.printer.print(begin)} + {row}, {row})")

    def accumulate(self, sweep: list[int]) -> None:
        for i in sweep:
            a = self.kernel.accumulators[i]
            value = self.printer.print(a.body)
            self.combine(a, self.own(self.partial(i), i), self.own("best", i), value, self.flat_position())
        self.store(self.early_in(sweep))
        if self.kept is not None and sweep == self.sweep_order()[-1]:
            store = self.kept.store
            self.store([Store(store.buffer, store.index, self.kept.value)])

    @contextmanager
    def each_lane(self, roots: Sequence[Value] = ()):
        """A loop over the lanes, if there are any; the parts of `roots` that are the same for all lanes come first."""
        if not self.lanes:
            yield
            return
        self.hoist(roots)
        with self.loop(self.points, "0", str(self.lanes)):
            yield

    def own(self, name: str, i: int) -> str:
        """Accumulator `i` of the current point: a variable, or with lanes an element of an array for each lane."""
        return f"{name}{i}[i{self.points}]" if self.lanes else f"{name}{i}"

    def arrays(self) -> dict[str, str]:
        """name -> dtype of the arrays that hold an accumulator for each lane."""
        made: dict[str, str] = {}
        for i, a in enumerate(self.kernel.accumulators):
            made[f"acc{i}"] = computing_dtype(a.body.dtype)
            if self.partial(i) == "part":
                made[f"part{i}"] = made[f"acc{i}"]
            if a.combine in ARG:
                made[f"best{i}"] = "int64"
        return made

    def partial(self, i: int) -> str:
        """What accumulator `i` is combined in: "part" for a float sum, which is made of partial sums, else "acc"."""
        a = self.kernel.accumulators[i]
        inner = len(self.extents) - 1
        whole = a.combine != "sum" or a.body.dtype not in ir.FLOATS or not self.kernel.reduce or inner in self.fixed
        return "acc" if whole else "part"

    def reduce_loops(self, roots: list[Value], body, sweep: list[int]) -> None:
        """Loops over all reduce axes; sums of floats are made of partial sums over the innermost axis."""
        axes = range(self.first, len(self.extents))

        def innermost() -> None:
            with self.each_lane(roots):
                body()

        if not axes:
            return innermost()

        def nest(position: int) -> None:
            axis = axes[position]
            if position < len(axes) - 1:
                with self.loop(axis, "0", f"n{axis}"):
                    self.hoist(roots)
                    nest(position + 1)
                return
            parts = [i for i in sweep if self.partial(i) == "part"]
            if not parts:
                with self.loop(axis, "0", f"n{axis}"):
                    innermost()
                return
            with self.printer.scope(f"for from_ in range(0, n{axis}, {PARTIAL}):"):
                with self.each_lane():
                    for i in parts:
                        self.source(f"{self.own('part', i)} = {self.neutral(self.kernel.accumulators[i])}")
                with self.loop(axis, "from_", f"min_(from_ + {PARTIAL}, n{axis})"):
                    innermost()
                with self.each_lane():
                    for i in parts:
                        self.source(f"{self.own('acc', i)} = {self.own('acc', i)} + {self.own('part', i)}")

        nest(0)
        return None

    def over_reduce(self, stores: list[Store]) -> None:
        """Stores of one point of the domain: first those at it, then those at each point of the reduce axes."""
        once = [s for s in stores if not self.uses_reduce(s)]
        if once:
            with self.each_lane(self.store_roots(once)):
                self.store(once)
        every = [s for s in stores if self.uses_reduce(s)]
        if every:
            self.reading_kept = True
            self.reduce_loops(self.store_roots(every), lambda: self.store(every), [])
            self.reading_kept = False
