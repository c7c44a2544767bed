"""Loop kernels as typed source for the CPU (see translate.py): the skeletons of skeletons.py."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import LoopKernel, Store, Value
from mxc.compiler.kernel.simplify_index import affine, index
from mxc.compiler.targets.cpu.emit.skeletons import (
    CHUNK,
    COLUMNS,
    PIECE,
    TILE,
    TILE_ROWS,
    Marked,
    across,
    is_tiled,
    one_place,
    scratch_layout,
    skeleton,
)
from mxc.compiler.targets.cpu.emit.windows import WindowRows
from mxc.compiler.targets.loop_printer import ARG


def loop_source(kernel: LoopKernel) -> str:
    """Typed source of a canonical kernel: constants, then `def kernel(args, first, last, scratch)`."""
    return _Loops(kernel).text()


class _Loops(WindowRows):
    def __init__(self, kernel: LoopKernel):
        self.squares = {id(v): f"square{i}" for i, v in enumerate(across(kernel))}
        self.in_squares = False
        super().__init__(kernel)
        self.chunk = CHUNK // (self.lanes or 1)

    def leaf(self, v: Value) -> str | None:
        if self.in_squares and id(v) in self.squares:
            last = self.points - 1
            return f"{self.squares[id(v)]}[step{last - 1} * {TILE} + step{last}]"
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
                source(f"{self.squares[id(v)]} = tile_{kernel.buffers[int(v.data)]}()")
            self.hoist(kernel.roots())
            {"map": self.map, "rows": self.rows, "columns": self.columns, "windows": self.windows}[skeleton(kernel)]()
            if self.streams:
                source("fence()")
        return "\n".join([*self.printer.constant_lines(), "", source.text()])

    def map(self) -> None:
        rank, stores, chunk = self.points, list(self.kernel.stores), self.chunk
        if rank == 0:
            return self.over_reduce(stores)
        if rank == 1:
            self.source(f"start = first * {chunk}")
            self.source(f"stop = min_(last * {chunk}, n0)")
            self.stretch(stores, "start", "stop")
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
        """Rows row..row_stop, and of each row the stretch start..stop of the last axis."""
        last = self.points - 1
        with self.row_loop(range(last), "row", "row_stop"):
            self.hoist(self.store_roots(stores))
            self.stretch(stores, start, stop)

    def stretch(self, stores: list[Store], start: str, stop: str) -> None:
        """The points start..stop of the last axis of a map."""
        last = self.points - 1
        marked = one_place(self.kernel)
        if marked is not None and not self.streams and not self.lanes:
            self.mark(stores[0], marked, start, stop)
            return
        if not self.streams:
            with self.loop(last, start, stop):
                self.over_reduce(stores)
            return
        with self.printer.scope(f"for piece in range({start}, {stop}, {PIECE}):"):
            self.source(f"count = min_({PIECE}, {stop} - piece)")
            with self.streaming("piece", "count"), self.loop(last, "piece", "piece + count"):
                self.over_reduce(stores)

    def mark(self, store: Store, marked: Marked, start: str, stop: str) -> None:
        """Stores the number of all places along the last axis, and then that of the one place."""
        last = self.points - 1
        self.source(f"mark = int64({self.printer.print(marked.place)})")
        for value, begin, end in ((marked.others, start, stop),
                                  (marked.there, f"max_({start}, mark)", f"min_({stop}, mark + 1)")):
            with self.loop(last, begin, end):
                self.store([Store(store.buffer, store.index, value)])

    def map_squares(self, stores: list[Store]) -> None:
        """Rows row..row_stop in runs along the last axis but one, and of each row the stretch start..stop of the last
        axis: squares of TILE by TILE elements, and then the points that fill no square."""
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
            # Two squares by two: with elements of 4 bytes these are whole lines of the caches on both sides.
            with (self.printer.scope(f"for left in range(start, stop, {2 * TILE}):"),
                  self.printer.scope(f"for upper in range(run, run_stop, {2 * TILE}):")):
                source(f"lower = min_(upper + {2 * TILE}, run_stop)")
                self.ask_ahead(stores)
                with self.printer.scope(f"for tile in range(left, min_(left + {2 * TILE}, stop), {TILE}):"):
                    source(f"whole = upper + (lower - upper) // {TILE} * {TILE} if tile + {TILE} <= stop else upper")
                    with self.printer.scope(f"for from_ in range(upper, whole, {TILE}):"):
                        self.square(roots, stores)
                    with self.loop(run, "whole", "lower"), self.loop(last, "tile", f"min_(tile + {TILE}, stop)"):
                        self.over_reduce(stores)
            self.open_axes.difference_update(outer)
            source("row += run_stop - run")

    @contextmanager
    def steps(self, axis: int, start: str, count: int) -> Iterator[None]:
        """A loop of `count` steps along an axis. LLVM sees how many, which it does not of `loop`."""
        with self.printer.scope(f"for step{axis} in range({count}):"):
            self.source(f"i{axis} = {start} + step{axis}")
            self.open_axes.add(axis)
            yield
            self.open_axes.discard(axis)

    def ask_ahead(self, stores: list[Store]) -> None:
        """Asks for what the next two by two squares read and write: rows so far apart are more than what the processor
        foresees by itself."""
        last, size, text = self.points - 1, 2 * TILE, self.printer.print
        self.source(f"below = upper + {size} if upper + {size} < run_stop else run")
        self.source(f"beside = left if upper + {size} < run_stop else left + {size}")
        with self.steps(last - 1, "below", size), self.steps(last, "beside", 1):
            for s in stores:
                if affine(s.index)[0].get(ir.axis(last)) == 1:
                    self.source(f"claim(b{s.buffer}, {text(s.index)}, {size})")
        with self.steps(last - 1, "below", 1), self.steps(last, "beside", size):
            for v in across(self.kernel):
                self.source(f"fetch(b{v.data}, {text(v.args[0])}, {size})")

    def square(self, roots: list[Value], stores: list[Store]) -> None:
        """The square at `from_` of the last axis but one and `tile` of the last."""
        last = self.points - 1
        with self.steps(last - 1, "from_", 1), self.steps(last, "tile", 1):
            for v in across(self.kernel):
                place = self.printer.print(v.args[0])
                stride = self.printer.print(index(affine(v.args[0])[0][ir.axis(last)]))
                self.source(f"transposed({self.squares[id(v)]}, b{v.data}, {place}, {stride})")
        self.in_squares = True
        with self.steps(last - 1, "from_", TILE), self.steps(last, "tile", TILE):
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
        *wide, (_, narrow) = COLUMNS
        sizes = "".join(f"{columns} if {last} >= {least} else " for least, columns in wide)
        self.source(f"size = {sizes}{narrow}")
        self.source(f"parts = udiv({last} + size - 1, size)")
        with self.printer.scope("for unit in range(first, last):"):
            self.part(last, "size", "1")
            with self.row_loop(range(rank - 1), "row", "row_stop"):
                self.hoist(self.kernel.roots())
                self.column_block(rank - 1)

    def column_block(self, axis: int) -> None:
        """All sweeps and stores of columns start..stop."""
        accumulators = self.kernel.accumulators
        slots: dict[int, int] = {}
        for i in range(len(accumulators)):
            slots[i] = sum(2 if b.combine in ARG else 1 for b in accumulators[:i])
        finished: dict[int, str] = {}
        for sweep in self.sweep_order():
            with self.printer.scope("for i in range(0, stop - start):"):
                for i in sweep:
                    self.source(f"s{slots[i]}[i] = {self.neutral(accumulators[i])}")
                    if accumulators[i].combine in ARG:
                        self.source(f"s{slots[i] + 1}[i] = 0")
            self.acc_names = dict(finished)
            self.column_sweep(axis, self.sweep_roots(sweep),
                              lambda sweep=sweep: self.accumulate_columns(axis, sweep, slots))
            for i in sweep:
                place = slots[i] + (accumulators[i].combine in ARG)
                text = f"s{place}[i{axis} - start]"
                finished[i] = self.printer.rounded(text, accumulators[i].body.dtype) if place == slots[i] else text
        self.acc_names = dict(finished)
        every = [s for s in self.kernel.stores if self.uses_reduce(s) and s not in self.early]
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
        self.store(self.early_in(sweep))
