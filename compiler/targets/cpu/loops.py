"""Loop kernels as Numba source for the CPU.

Three skeletons. *map*: no accumulators; the innermost axis is the vector loop. *rows*: one point of the domain at a
time, the innermost reduce axis is the vector loop. *columns*: where the loads run along the domain's last axis rather
than along the reduce axes, a block of that axis at a time; its accumulators lie in the thread's scratch memory.

A short last axis of the domain, the *lanes* (canonical.py), is an innermost loop of constant length, in maps and rows,
which takes the place of columns: each point of the other axes is a vector or two. Accumulators are then local arrays.

A unit of work is a part of the domain: see `units`. Its sizes are part of the printed code. Values that do not depend
on an inner loop's axis are printed outside of it. Accumulators that use others' results take a sweep of their own.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import contiguity, fixed, lanes
from mxc.compiler.kernel.ir import LoopKernel, Store, Value, computing_dtype
from mxc.compiler.kernel.simplify_index import affine, index
from mxc.compiler.targets.loop_printer import ARG, LoopPrinter

CHUNK = 8192  # points of a unit
WIDE_BLOCK, BLOCK, WIDE_FROM = 512, 64, 4096  # columns of a unit, for an axis of at least WIDE_FROM, and for shorter
TILE, TILE_ROWS = 8, 16  # where loads run along another axis than stores: squares that are transposed in registers
PARTIAL = 4096  # sums are made of partial sums of this length, which keeps float32 accurate


def skeleton(kernel: LoopKernel) -> str:
    """map, rows or columns."""
    if not kernel.accumulators:
        return "map"
    if not kernel.domain or not kernel.reduce or lanes(kernel):
        return "rows"
    score = contiguity(kernel)
    last = len(kernel.domain) - 1
    return "columns" if score(last) > score(last + len(kernel.reduce)) else "rows"


def is_tiled(kernel: LoopKernel) -> bool:
    """True for a map with loads that jump along the last axis and run along another, as in a transposition."""
    last = ir.axis(len(kernel.domain) - 1)
    for v in ir.walk(kernel.roots()):
        if v.op == "load" and len(kernel.domain) > 1:
            terms = affine(v.args[0])[0]
            if terms.get(last, 0) not in (0, 1) and any(c == 1 and a.op == "axis" for a, c in terms.items()):
                return True
    return False


def across(kernel: LoopKernel) -> list[Value]:
    """The loads of a tiled map that are transposed in registers: they run along the last axis but one; no lanes."""
    if kernel.accumulators or lanes(kernel) or not is_tiled(kernel):
        return []
    last = len(kernel.domain) - 1
    found = []
    for v in ir.walk(kernel.roots()):
        if v.op == "load" and len(v.args) == 1:
            terms = affine(v.args[0])[0]
            if terms.get(ir.axis(last - 1), 0) == 1 and terms.get(ir.axis(last), 0) not in (0, 1):
                found.append(v)
    return found


def has_short_loops(kernel: LoopKernel) -> bool:
    """True when the innermost loops have few, constant steps."""
    return lanes(kernel) > 0 or bool(across(kernel))


def units(kernel: LoopKernel) -> int:
    """Independent pieces of work of a canonical kernel; the printed code divides it in the same way."""
    if 0 in kernel.domain:
        return 0
    if not kernel.domain:
        return 1
    kind, width = skeleton(kernel), lanes(kernel)
    domain, chunk = (kernel.domain[:-1], CHUNK // width) if width else (kernel.domain, CHUNK)
    if kind == "rows":
        return -(-math.prod(domain) // max(1, chunk // max(1, math.prod(kernel.reduce))))
    rows, last = math.prod(domain[:-1]), domain[-1]
    size = chunk if kind == "map" else (WIDE_BLOCK if last >= WIDE_FROM else BLOCK)
    parts = -(-last // size)
    block = max(TILE_ROWS if is_tiled(kernel) else 1, chunk // last) if kind == "map" else 1
    return -(-rows // block) * parts


def scratch_layout(kernel: LoopKernel) -> tuple[list[tuple[str, int]], int]:
    """dtype and byte offset of each scratch buffer that holds accumulators, and the bytes in all."""
    places: list[tuple[str, int]] = []
    if skeleton(kernel) == "columns":
        for a in kernel.accumulators:
            dtypes = [computing_dtype(a.body.dtype)]
            if a.combine in ARG:
                dtypes.append("int64")
            places += [(dtype, (len(places) + i) * 8 * WIDE_BLOCK) for i, dtype in enumerate(dtypes)]
    return places, len(places) * 8 * WIDE_BLOCK


def loop_source(kernel: LoopKernel) -> str:
    """Numba source of a canonical kernel: constants, then `def kernel(args, first, last, scratch)`."""
    return _Loops(kernel).text()


@dataclass(frozen=True)
class Kept:
    """A function's value that the last sweep of the accumulators puts where `store` will put its own later: the stores'
    sweep then takes it from there instead of computing it again (softmax: its exponentials)."""

    store: Store
    value: Value


class _Loops(LoopPrinter):
    def __init__(self, kernel: LoopKernel):
        self.lanes, self.fixed = lanes(kernel), fixed(kernel)
        self.points = len(kernel.domain) - (self.lanes > 0)  # domain axes outside of the lanes
        self.chunk = CHUNK // (self.lanes or 1)
        self.squares = {id(v): f"square{i}" for i, v in enumerate(across(kernel))}
        self.in_squares = False
        super().__init__(kernel, self.points if self.lanes else None)
        self.kept = self.find_kept() if skeleton(kernel) == "rows" and not self.lanes else None
        self.reading_kept = False

    def find_kept(self) -> Kept | None:
        """There is one when a single store sweeps the reduce axes, and all that it needs of their points is a function
        of its own dtype that the last sweep computes too."""
        sweeps, every = self.phases(), [s for s in self.kernel.stores if self.uses_reduce(s)]
        if not sweeps or len(every) != 1 or every[0].mode != "write":
            return None
        store = every[0]
        bodies = [self.kernel.accumulators[i].body for i in sweeps[-1]]
        computed = {id(v) for v in ir.walk(bodies) if v.op in ir.FUNCTIONS and v.dtype == store.value.dtype}
        found = [v for v in ir.walk([store.value]) if id(v) in computed and self.sweeps(v)]
        if len(found) != 1 or self.kernel.buffers[store.buffer] != found[0].dtype or found[0].dtype == "float16":
            return None
        return None if self.loads_besides(store.value, found[0]) else Kept(store, found[0])

    def sweeps(self, v: Value) -> bool:
        return any(a >= self.first for a in self.needs[id(v)][0])

    def loads_besides(self, root: Value, kept: Value) -> bool:
        """True when `root` loads at points of the reduce axes, or at all what depends on them, outside of `kept`."""
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
            return self.printer.element(store.buffer, self.printer.print(store.index), v.dtype)
        if self.in_squares and id(v) in self.squares:
            last = self.points - 1
            return f"{self.squares[id(v)]}[(i{last - 1} - from_) * {TILE} + i{last} - tile]"
        return super().leaf(v)

    def text(self) -> str:
        kernel, source = self.kernel, self.source
        with self.printer.scope("def kernel(args, first, last, scratch):"):
            for i in range(len(kernel.buffers)):
                source(f"b{i} = buffer{i}(args, {i})")
            for i, (_, offset) in enumerate(scratch_layout(kernel)[0]):
                source(f"s{i} = scratch{i}(scratch, {offset})")
            names = [*self.extents, *self.integers.values()]
            for i, name in enumerate(names):
                source(f"{name} = {self.fixed.get(i, f'integer(args, {len(kernel.buffers) + i})')}")
            for name, dtype in self.arrays().items() if self.lanes else ():
                source(f"{name} = lanes_{dtype}()")
            for v in across(kernel):
                source(f"{self.squares[id(v)]} = tile_{kernel.buffers[int(v.data)]}()")  # type: ignore[call-overload]
            self.hoist(kernel.roots())
            {"map": self.map, "rows": self.rows, "columns": self.columns}[skeleton(kernel)]()
        return "\n".join([*self.printer.constant_lines(), "", source.text()])

    # --- skeletons ---------------------------------------------------------------------------------------------------

    def map(self) -> None:
        rank, stores, chunk = self.points, list(self.kernel.stores), self.chunk
        if rank == 0:
            return self.over_reduce(stores)
        if rank == 1:
            self.source(f"start = first * {chunk}")
            self.source(f"stop = min_(last * {chunk}, n0)")
            with self.loop(0, "start", "stop"):
                self.over_reduce(stores)
            return None
        last = self.extents[rank - 1]
        self.source(f"parts = udiv({last} + {chunk - 1}, {chunk})")
        tiled = is_tiled(self.kernel)
        self.source(f"block = max_({TILE_ROWS if tiled else 1}, udiv({chunk}, {last}))")
        with self.printer.scope("for unit in range(first, last):"):
            self.part(last, str(chunk), "block")
            if self.squares:
                self.map_squares(stores)
                return None
            if not tiled:
                self.map_rows(stores, "start", "stop")
                return None
            with self.printer.scope(f"for tile in range(start, stop, {TILE}):"):
                self.map_rows(stores, "tile", f"min_(tile + {TILE}, stop)")
        return None

    def map_rows(self, stores: list[Store], start: str, stop: str) -> None:
        """Rows row..row_stop, of each the stretch start..stop of the last axis."""
        last = self.points - 1
        with self.row_loop(range(last), "row", "row_stop"):
            self.hoist(self.store_roots(stores))
            with self.loop(last, start, stop):
                self.over_reduce(stores)

    def map_squares(self, stores: list[Store]) -> None:
        """Rows row..row_stop in runs along the last axis but one, of each the stretch start..stop of the last: squares
        of TILE by TILE elements, and what is left of them."""
        last, source, roots = self.points - 1, self.source, self.store_roots(stores)
        run, outer = last - 1, range(last - 1)
        with self.printer.scope("while row < row_stop:"):
            source(f"run = umod(row, n{run})")
            source(f"run_stop = min_(n{run}, run + row_stop - row)")
            if outer:
                source(f"rest = udiv(row, n{run})")
            for a in reversed(outer[1:]):
                source(f"i{a} = umod(rest, n{a})")
                source(f"rest = udiv(rest, n{a})")
            if outer:
                source("i0 = rest")
            self.open_axes.update(outer)
            self.hoist(roots)
            with self.printer.scope(f"for tile in range(start, stop, {TILE}):"):
                source(f"whole = run + (run_stop - run) // {TILE} * {TILE} if tile + {TILE} <= stop else run")
                with self.printer.scope(f"for from_ in range(run, whole, {TILE}):"):
                    self.square(roots, stores)
                with self.loop(run, "whole", "run_stop"), self.loop(last, "tile", f"min_(tile + {TILE}, stop)"):
                    self.over_reduce(stores)
            self.open_axes.difference_update(outer)
            source("row += run_stop - run")

    def square(self, roots: list[Value], stores: list[Store]) -> None:
        """The square at `from_` of the last axis but one and `tile` of the last."""
        last = self.points - 1
        with self.loop(last - 1, "from_", "from_ + 1"), self.loop(last, "tile", "tile + 1"):
            for v in across(self.kernel):
                place = self.printer.print(v.args[0])
                stride = self.printer.print(index(affine(v.args[0])[0][ir.axis(last)]))
                self.source(f"transposed({self.squares[id(v)]}, b{v.data}, {place}, {stride})")
        self.in_squares = True
        with self.loop(last - 1, "from_", f"from_ + {TILE}"), self.loop(last, "tile", f"tile + {TILE}"):
            self.over_reduce(stores)
        self.in_squares = False

    def rows(self) -> None:
        if self.points == 0:
            return self.point()
        work = " * ".join(self.extents[self.first:]) or "1"
        self.source(f"block = max_(1, udiv({self.chunk}, max_(1, {work})))")
        self.source("row_start = first * block")
        self.source(f"row_stop = min_(last * block, {' * '.join(self.extents[:self.points])})")
        with self.row_loop(range(self.points), "row_start", "row_stop"):
            self.hoist(self.kernel.roots())
            self.point()
        return None

    def columns(self) -> None:
        rank = self.first
        last = self.extents[rank - 1]
        self.source(f"size = {WIDE_BLOCK} if {last} >= {WIDE_FROM} else {BLOCK}")
        self.source(f"parts = udiv({last} + size - 1, size)")
        with self.printer.scope("for unit in range(first, last):"):
            self.part(last, "size", "1")
            with self.row_loop(range(rank - 1), "row", "row_stop"):
                self.hoist(self.kernel.roots())
                self.column_block(rank - 1)

    def part(self, last: str, size: str, block: str) -> None:
        """Rows row..row_stop and the stretch start..stop of the last axis that make up `unit`."""
        outer = " * ".join(self.extents[:self.points - 1]) or "1"
        self.source(f"row = udiv(unit, parts) * {block}")
        self.source(f"row_stop = min_(row + {block}, {outer})")
        self.source(f"start = umod(unit, parts) * {size}")
        self.source(f"stop = min_(start + {size}, {last})")

    @contextmanager
    def row_loop(self, axes: range, start: str, stop: str):
        """Rows start..stop of the flattened `axes`: divided up once, then counted on."""
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

    # --- reductions --------------------------------------------------------------------------------------------------

    def point(self) -> None:
        """All sweeps and stores of one point of the domain."""
        accumulators = self.kernel.accumulators
        for sweep in self.phases():
            with self.each_lane():
                for i in sweep:
                    self.source(f"{self.own('acc', i)} = {self.neutral(accumulators[i])}")
                    if accumulators[i].combine in ARG:
                        self.source(f"{self.own('best', i)} = 0")
            self.reduce_loops([accumulators[i].body for i in sweep], lambda sweep=sweep: self.accumulate(sweep), sweep)
            for i in sweep:
                if accumulators[i].combine in ARG:
                    self.acc_names[i] = self.own("best", i)
                    continue
                self.acc_names[i] = total = self.own("acc", i)
                if accumulators[i].body.dtype == "float16":
                    with self.each_lane():
                        self.source(f"{total} = half({total})")
            self.hoist(self.kernel.roots())
        self.over_reduce(list(self.kernel.stores))
        for i in range(len(accumulators)):
            self.acc_names.pop(i)

    def accumulate(self, sweep: list[int]) -> None:
        for i in sweep:
            a = self.kernel.accumulators[i]
            value = self.printer.print(a.body)
            self.combine(a, self.own(self.partial(i), i), self.own("best", i), value, self.flat_position())
        if self.kept is not None and sweep == self.phases()[-1]:
            store = self.kept.store
            self.store([Store(store.buffer, store.index, self.kept.value)])

    @contextmanager
    def each_lane(self, roots: Sequence[Value] = ()):
        """A loop over the lanes where there are any; what of `roots` is the same for all of them comes before it."""
        if not self.lanes:
            yield
            return
        self.hoist(roots)
        with self.loop(self.points, "0", str(self.lanes)):
            yield

    def own(self, name: str, i: int) -> str:
        """Accumulator `i` of the current point: a variable, with lanes one for each."""
        return f"{name}{i}[i{self.points}]" if self.lanes else f"{name}{i}"

    def arrays(self) -> dict[str, str]:
        """name -> dtype of the accumulators that are one for each lane."""
        made: dict[str, str] = {}
        for i, a in enumerate(self.kernel.accumulators):
            made[f"acc{i}"] = computing_dtype(a.body.dtype)
            if self.partial(i) == "part":
                made[f"part{i}"] = made[f"acc{i}"]
            if a.combine in ARG:
                made[f"best{i}"] = "int64"
        return made

    def partial(self, i: int) -> str:
        a = self.kernel.accumulators[i]
        inner = len(self.extents) - 1
        whole = a.combine != "sum" or a.body.dtype not in ir.FLOATS or not self.kernel.reduce or inner in self.fixed
        return "acc" if whole else "part"

    def reduce_loops(self, roots: list[Value], body, sweep: list[int]) -> None:
        """Loops over all reduce axes; sums of floats are made of partial sums of the innermost."""
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

    def column_block(self, axis: int) -> None:
        """All sweeps and stores of columns start..stop."""
        accumulators = self.kernel.accumulators
        slots: dict[int, int] = {}
        for i in range(len(accumulators)):
            slots[i] = sum(2 if b.combine in ARG else 1 for b in accumulators[:i])
        finished: dict[int, str] = {}
        for sweep in self.phases():
            with self.printer.scope("for i in range(0, stop - start):"):
                for i in sweep:
                    self.source(f"s{slots[i]}[i] = {self.neutral(accumulators[i])}")
                    if accumulators[i].combine in ARG:
                        self.source(f"s{slots[i] + 1}[i] = 0")
            self.acc_names = dict(finished)
            roots = [accumulators[i].body for i in sweep]
            self.column_sweep(axis, roots, lambda sweep=sweep: self.accumulate_columns(axis, sweep, slots))
            for i in sweep:
                place = slots[i] + (accumulators[i].combine in ARG)
                text = f"s{place}[i{axis} - start]"
                finished[i] = f"half({text})" if accumulators[i].body.dtype == "float16" and place == slots[i] else text
        self.acc_names = dict(finished)
        every = [s for s in self.kernel.stores if self.uses_reduce(s)]
        once = [s for s in self.kernel.stores if not self.uses_reduce(s)]
        if once:
            with self.loop(axis, "start", "stop"):
                self.store(once)
        if every:
            self.column_sweep(axis, self.store_roots(every), lambda: self.store(every))
        self.acc_names = {}

    def column_sweep(self, axis: int, roots: list[Value], body) -> None:
        """The reduce axes outside, the block's columns inside. Accumulators are read in the innermost loop only."""
        names, self.acc_names = self.acc_names, {}

        def nest(reduce_axis: int) -> None:
            if reduce_axis < len(self.extents):
                with self.loop(reduce_axis, "0", f"n{reduce_axis}"):
                    self.hoist(roots)
                    nest(reduce_axis + 1)
            else:
                with self.loop(axis, "start", "stop"):
                    self.acc_names = names
                    body()
                    self.acc_names = {}

        nest(self.first)
        self.acc_names = names

    def accumulate_columns(self, axis: int, sweep: list[int], slots: dict[int, int]) -> None:
        for i in sweep:
            value = self.printer.print(self.kernel.accumulators[i].body)
            place = f"[i{axis} - start]"
            self.combine(self.kernel.accumulators[i], f"s{slots[i]}{place}", f"s{slots[i] + 1}{place}", value,
                         self.flat_position())

    # --- stores ------------------------------------------------------------------------------------------------------

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
