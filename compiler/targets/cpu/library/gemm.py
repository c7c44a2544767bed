"""C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], as `calls.gemm` defines it.

A unit of work is a chunk of rows times a group of column panels, of one batch:

    for each block of the depth:
        pack the block's part of each panel of B        [depth][NR], unless it comes so, or lies there
        for each part of the rows:
            pack it from A as [depth][MR]               unless a row's depth lies together: then it is read in place
            for each panel:
                for each tile of rows:
                    tile (+)= rows x panel              MR x NR accumulators in registers
                after the last block: the epilogue of the part's rows and the panel's columns

Turned (`calls.gemm`), it computes the transposed product from the transposed operands: rows are those of B, columns
those of A, and the epilogue takes results transposed. Results that are stored as they are go from the registers to
their place.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library import vector
from mxc.compiler.targets.cpu.library.blocks import LINE, UNITS, ceil_div, least, most, pack_lines, prefetch
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.machine.isa import Isa

DEPTH_BYTES = 1536  # of the depth that one panel column covers
PANELS = 16  # column panels of a unit, of the whole depth of a block; of less there may be more
ROWS = 1024  # of a unit, at most
PART = 12  # tiles of rows that all panels of a unit read before the next ones
SQUARE = 16  # row chunks for as many groups of columns, of a square product, where rows are packed too
KEPT_BYTES = 2 << 20  # of all panels of a unit, over the whole depth, that stay packed for the next unit
UNIT_PRODUCTS = 1 << 18  # multiplications of a unit, at least
AHEAD = 8  # lines of an operand that are fetched before they are packed: the machine does not foresee long steps
CHAINS = 8  # sums at least that grow independently of each other: a multiply-add takes as many half cycles
STEP = 4  # of the depth, in one round of a tile's loop


@dataclass(frozen=True)
class Cut:
    """How a product is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    panels: Number
    block: Number  # depth of a block
    blocks: Number
    group: Number  # panels of a unit
    groups: Number
    chunk: Number  # rows of a unit
    chunks: Number
    units: Number
    kept: Number  # 1 if panels stay packed over the whole depth, else 0

    @classmethod
    def of(cls, extents: Sequence[Number], params: dict[str, Any], tile: tuple[int, int], dtype: str) -> Cut:
        batch, m, n, k = extents[:4]
        if params["turned"]:
            m, n = n, m
        mr, nr = tile
        panels: Any = ceil_div(n, nr)
        deepest = DEPTH_BYTES // BYTES[dtype]
        blocks: Any = most(1, ceil_div(k, deepest))
        block: Any = ceil_div(k, blocks)
        wanted: Any = most(1, least(UNITS, m * n * k // UNIT_PRODUCTS * batch))  # type: ignore[operator]
        wanted = ceil_div(wanted, most(1, batch))
        few = most(1, least(wanted, m * (1 if params["rows_in_place"] else SQUARE) // most(1, n)))  # type: ignore[operator]
        groups = most(ceil_div(panels, PANELS * deepest // most(1, block)), least(panels, ceil_div(wanted, few)))
        group: Any = most(1, ceil_div(panels, most(1, groups)))
        groups = ceil_div(panels, group)
        chunks: Any = most(most(few, ceil_div(m, ROWS)), ceil_div(wanted, most(1, groups)))
        chunks = least(chunks, ceil_div(m, mr))
        chunk: Any = most(1, ceil_div(m, most(1, chunks)))
        chunks = ceil_div(m, chunk)
        size: Any = most(1, group * k * nr * BYTES[dtype])
        kept = least(least(1, KEPT_BYTES // size), chunks - 1)
        return cls(panels, block, blocks, group, groups, chunk, chunks, batch * groups * chunks, kept)

    @property
    def span(self) -> Number:
        """The depth of the panels that lie packed."""
        return self.block + self.kept * (self.blocks - 1) * self.block  # type: ignore[operator]

    def height(self, tile: tuple[int, int], lanes: int) -> Any:
        """Rows of the results that are kept of each panel, whole vectors of them: of a single block a part's are."""
        part: Any = PART * tile[0] + least(self.blocks - 1, 1) * self.chunk  # type: ignore[operator]
        return ceil_div(least(self.chunk, part), lanes) * lanes

    def layout(self, tile: tuple[int, int], lanes: int) -> tuple[Number, Number, Number]:
        """In elements of the scratch: where the packed rows begin, where the room to turn vectors, behind which the
        results lie, and its size.

        A vector more behind each tile of rows, since packing writes whole vectors.
        """
        mr, nr = tile
        rows: Any = self.group * self.span * nr  # type: ignore[operator]
        tiles: Any = ceil_div(self.chunk, mr)
        room: Any = ceil_div(rows + least(tiles, PART) * (self.block * mr + lanes), 16) * 16
        more: Any = least(self.blocks - 1, 1)  # 0 or 1: of a single block the results of one panel are kept
        return rows, room, room + (lanes + most(1, more * self.group) * self.height(tile, lanes)) * nr


def units(kernel: CallKernel, isa: Isa) -> int:
    params = dict(kernel.params)
    if params["vector"]:
        return vector.units(kernel)
    dtype = computing_dtype(str(params["dtype"]))
    return int(Cut.of(kernel.extents, params, isa.tile(dtype), dtype).units)  # type: ignore[arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    params = dict(kernel.params)
    if params["vector"]:
        return vector.scratch_elements(kernel, isa)
    dtype = computing_dtype(str(params["dtype"]))
    cut = Cut.of(kernel.extents, params, isa.tile(dtype), dtype)
    return int(cut.layout(isa.tile(dtype), isa.lanes(dtype))[2])  # type: ignore[arg-type]


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    if dict(kernel.params)["vector"]:
        vector.print_kernel(kernel, symbol, b, isa, dtype, epilogue_of)
        return

    def product(args: Value) -> _Product:
        return _Product(kernel, b, isa, dtype, epilogue_of(args))

    in_place = bool(dict(kernel.params)["rows_in_place"])
    for rows in range(1, isa.rows + 1):
        for vectors in range(1, isa.vectors + 1):
            _print_tiles(b, isa, dtype, in_place, rows, vectors)
    with b.function("multiply", f"{TILES}, i64 rows, i64 columns", internal=True) as (*rest, rows_left, columns):
        for rows in range(1, isa.rows + 1):
            for vectors in range(1, isa.vectors + 1):
                fits = rows_left.equals(rows) & (columns > (vectors - 1) * isa.lanes(dtype))
                if vectors < isa.vectors:
                    fits = fits & (columns <= vectors * isa.lanes(dtype))
                with b.when(fits):
                    b.leave(f"tiles_{rows}_{vectors}", rest)
    where = "ptr args, ptr noalias target, i64 pitch, i64 batch, i64 column, i64 panels, i64 start, i64 depth"
    with b.function("pack_panels", where, internal=True) as (args, target, *place):
        product(args).pack_panels(Array(b, target, dtype), *place)
    if not in_place:
        where = "ptr args, ptr noalias target, i64 pitch, i64 batch, i64 row, i64 tiles, i64 rows, i64 longer, " \
                "i64 start, i64 depth"
        with b.function("pack_rows", where, internal=True) as (args, target, *place):
            product(args).pack_rows(Array(b, target, dtype), *place)
    where = "ptr args, ptr tile, ptr room, i64 batch, i64 row, i64 rows, i64 column, i64 columns"
    with b.function("finish", where, internal=True) as (args, tile, room, *place):
        made = product(args)
        if made.turned:
            made.finish_turned(Array(b, tile, dtype), Array(b, room, dtype), *place)
        else:
            made.finish(Array(b, tile, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        product(args).units(args, first, last, Array(b, scratch, dtype))


TILES = "i64 count, i64 depth, ptr a, i64 step, i64 pitch, ptr panel, ptr noalias c, i64 c_pitch, i64 add"


def _print_tiles(b: Builder, isa: Isa, dtype: str, in_place: bool, rows: int, vectors: int) -> None:
    """c[rows][vectors] = (add ? c : 0) + sum over depth of row[k] * panel[k][vector], rows of c `c_pitch` apart; so for
    each of `count` tiles that follow each other, their rows `step` apart.

    The rows begin `pitch` apart and their depth lies together; or (not `in_place`) they are packed as [depth][MR].
    """
    lanes, (mr, nr) = isa.lanes(dtype), isa.tile(dtype)
    grid = [(i, j) for i in range(rows) for j in range(vectors)]
    chains = next(n for n in (1, 2, 4) if n == STEP or n * len(grid) >= CHAINS)
    with b.function(f"tiles_{rows}_{vectors}", TILES, internal=True) as given:
        count, depth, pa, step, pitch, pp, pc, c_pitch, add = given
        panel, whole = Array(b, pp, dtype), depth - depth % STEP
        for t in b.range(0, count):
            a, c = Array(b, pa, dtype).at(t * step), Array(b, pc, dtype).at(t * rows * c_pitch)
            lines = [a.at(i * pitch) if in_place else a.at(i) for i in range(rows)]
            sums = [b.zero(vector_type(TYPES[dtype], lanes)) for _ in range(chains) for _ in grid]
            for begin, end, steps in ((b.lift(0), whole, STEP), (whole, depth, 1)):
                for k in b.range(begin, end, steps, carry=sums):
                    line, here = panel.at(k * nr), [row.at(k if in_place else k * mr) for row in lines]
                    for u in range(steps):
                        columns = [line.vector(u * nr + j * lanes, lanes) for j in range(vectors)]
                        for n, (i, j) in enumerate(grid):
                            x = here[i].broadcast(u if in_place else u * mr, lanes)
                            at = u % chains * len(grid) + n
                            sums[at] = b.fma(x, columns[j], sums[at])
            for at in range(len(grid), len(sums)):
                sums[at % len(grid)] = sums[at % len(grid)] + sums[at]
            places = [c.at(i * c_pitch + j * lanes) for i, j in grid]
            with b.when(add.equals(0)):
                for total, place in zip(sums, places, strict=False):
                    place.put(0, total)
            with b.when(add.differs(0)):
                for total, place in zip(sums, places, strict=False):
                    place.put(0, total + place.vector(0, lanes))


class _Product:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, isa: Isa, dtype: str, epilogue: Epilogue):
        self.params = dict(kernel.params)
        self.b, self.dtype, self.epilogue = b, dtype, epilogue
        self.lanes, self.tile = isa.lanes(dtype), isa.tile(dtype)
        self.a, self.b_matrix = epilogue.buffers[:2]
        self.batch, self.m, self.n, self.k = epilogue.extents[:4]
        self.a_strides, self.b_strides = epilogue.extents[4:7], epilogue.extents[7:10]
        self.turned = bool(self.params["turned"])
        if self.turned:
            self.a, self.b_matrix, self.m, self.n = self.b_matrix, self.a, self.n, self.m
            (s0, s1, s2), (t0, t1, t2) = self.b_strides, self.a_strides
            self.a_strides, self.b_strides = [s0, s2, s1], [t0, t2, t1]
        self.packed, self.in_place = bool(self.params["packed_b"]), bool(self.params["rows_in_place"])
        self.direct = self.packed and self.b_matrix.dtype == dtype

    def _panel(self, batch: Value, column: Value, depth: Value) -> Array:
        """Where a panel that comes packed begins, from `depth` on."""
        return self.b_matrix.at(batch * self.b_strides[0] + column * self.k + depth * self.tile[1])

    def pack_panels(
        self, target: Array, pitch: Value, batch: Value, column: Value, panels: Value, start: Value, depth: Value,
    ) -> None:
        """Panels from `column` on as [depth][NR] each, `pitch` apart; what lies past the end: anything.

        Where a row of B lies together, all panels' parts of it are read before the next one: it may be a page away.
        """
        b, nr, lanes = self.b, self.tile[1], self.lanes
        if self.packed:  # stored in another dtype than computed in
            for p in b.range(0, panels):
                self._copy(target.at(p * pitch), self._panel(batch, column + p * nr, start), b.lift(nr), depth)
            return
        of_batch, step, line = self.b_strides
        source = self.b_matrix.at(batch * of_batch + start * step + column * line)
        together = line.equals(1)
        with b.when(together):
            whole = b.minimum(panels, (self.n - column) // nr)
            masks = [b.first_lanes(self.n - column - whole * nr - j, lanes) for j in range(0, nr, lanes)]
            for k in b.range(0, depth):
                row, place = source.at(k * step), target.at(k * nr)
                for p in b.range(0, whole):
                    prefetch(row.at(AHEAD * step + p * nr))
                    self._copy_row(place.at(p * pitch), row.at(p * nr), [None] * len(masks))
                for p in b.range(whole, panels):
                    self._copy_row(place.at(p * pitch), row.at(p * nr), masks)
        with b.when_not(together):
            for p in b.range(0, panels):
                pack_lines(self, self.epilogue, target.at(p * pitch), source.at(p * nr * line), nr,
                           self.n - column - p * nr, line, step, depth)

    def _copy_row(self, target: Array, source: Array, masks: Sequence[Value | None]) -> None:
        for i, mask in enumerate(masks):
            vector = source.vector(i * self.lanes, self.lanes, mask)
            target.put(i * self.lanes, self.epilogue.arithmetic.loaded(vector, source.dtype))

    def _copy(self, target: Array, source: Array, width: Value, depth: Value) -> None:
        for k in self.b.range(0, depth):
            self._copy_row(target.at(k * width), source.at(k * width), [None] * (self.tile[1] // self.lanes))

    def pack_rows(
        self, target: Array, pitch: Value, batch: Value, row: Value, tiles: Value, rows: Value, longer: Value,
        start: Value, depth: Value,
    ) -> None:
        """Tiles of `rows` rows from `row` on, the first `longer` of them one longer, as [depth][MR] each, `pitch`
        apart; what lies past the end: anything."""
        b, mr, lanes = self.b, self.tile[0], self.lanes
        of_batch, line, step = self.a_strides
        source = self.a.at(batch * of_batch + row * line + start * step)
        together = line.equals(1)
        with b.when(together):
            # the vectors of a tile end within the next two tiles, of half a tile's rows each
            left = self.m - row
            inner = b.select(tiles * rows + longer + 2 * mr <= left, tiles, b.maximum(tiles - 2, 0))
            whole = depth - depth % STEP
            for begin, end, steps in ((b.lift(0), whole, STEP), (whole, depth, 1)):
                for k in b.range(begin, end, steps):
                    lines = [source.at((k + u) * step) for u in range(steps)]
                    for u in range(steps):
                        for x in b.range(0, tiles * rows + longer, LINE // BYTES[source.dtype]):
                            prefetch(lines[u].at(AHEAD * step + x))
                    for t0, t1 in ((b.lift(0), inner), (inner, tiles)):
                        for t in b.range(t0, t1):
                            first = t * rows + b.minimum(t, longer)
                            for u in range(steps):  # in this order: what a vector writes too much the next overwrites
                                for j in range(0, mr, lanes):
                                    mask = None if t1 is inner else b.first_lanes(left - first - j, lanes)
                                    vector = lines[u].at(first).vector(j, lanes, mask)
                                    target.put(t * pitch + (k + u) * mr + j,
                                               self.epilogue.arithmetic.loaded(vector, source.dtype))
        with b.when_not(together):
            for t in b.range(0, tiles):
                first = t * rows + b.minimum(t, longer)
                pack_lines(self, self.epilogue, target.at(t * pitch), source.at(first * line), mr,
                           self.m - row - first, line, step, depth)

    def finish(self, tile: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value) -> None:
        """The epilogue over finished results: whole vectors, or masked ones where columns end."""
        b, nr, lanes = self.b, self.tile[1], self.lanes
        whole = columns.equals(nr)
        with b.when(whole):
            for r in b.range(0, rows):
                uniform: dict[int, Value] = {}
                for j in range(0, nr, lanes):
                    axes = batch, row + r, Lane(column + j)
                    self.epilogue.store(axes, tile.vector(r * nr + j, lanes), self.dtype, None, uniform)
        with b.when_not(whole):
            for r in b.range(0, rows):
                for at in b.range(0, columns, lanes):
                    axes, mask = (batch, row + r, Lane(column + at)), b.first_lanes(columns - at, lanes)
                    self.epilogue.store(axes, tile.vector(r * nr + at, lanes), self.dtype, mask)

    def finish_turned(
        self, tile: Array, room: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value,
    ) -> None:
        """The same of results of the transposed product: its rows are columns of the result."""
        b, nr, lanes = self.b, self.tile[1], self.lanes
        for r in b.range(0, rows, lanes):
            for j in range(0, nr, lanes):
                square = [tile.vector((r + u) * nr + j, lanes) for u in range(lanes)]
                for u, across in enumerate(b.transpose(square)):
                    room.put((j + u) * lanes, across)
            whole = rows - r >= lanes
            for fits, mask in ((whole, None), (b.negate(whole), b.first_lanes(rows - r, lanes))):
                with b.when(fits):
                    for c in b.range(0, columns):
                        axes = batch, column + c, Lane(row + r)
                        self.epilogue.store(axes, room.vector(c * lanes, lanes), self.dtype, mask)

    def place(self, batch: Value, row: Value, column: Value) -> tuple[Array, Value] | None:
        """Where results are stored as they are, and how far apart their rows; None: the epilogue has to."""
        stores = self.epilogue.kernel.stores
        store = stores[0]
        plain = len(stores) == 1 and store.mode == "write" and store.value.op == "acc"
        if self.turned or not plain or not self.epilogue.buffers[store.buffer].dtype == store.value.dtype == self.dtype:
            return None
        (start, step, spread), (pitch,) = self.epilogue.terms(store.index, (batch, row, Lane(column))), \
            self.epilogue.factors(store.index, (1,))
        if step is None or step.constant != 1 or spread is not None:
            return None
        return self.epilogue.buffers[store.buffer].at(start), pitch

    def units(self, args: Value, first: Value, last: Value, scratch: Array) -> None:
        b, (mr, nr) = self.b, self.tile
        cut: Any = Cut.of(self.epilogue.extents, self.params, self.tile, self.dtype)
        rows_at, room_at, _ = cut.layout(self.tile, self.lanes)
        packed_rows, room = scratch.at(rows_at), scratch.at(room_at)
        results, height = room.at(self.lanes * nr), cut.height(self.tile, self.lanes)
        keep = b.select(b.lift(cut.blocks) > 1, b.lift(1), b.lift(0))
        pitch, panel_pitch = cut.block * mr + self.lanes, cut.span * nr
        lies = [b.lift(-1)]  # the panels of which batch and group lie packed
        for unit in b.range(first, last, carry=lies):
            which, row0 = unit // cut.chunks, unit % cut.chunks * cut.chunk
            batch, panel0 = which // cut.groups, which % cut.groups * cut.group
            panels, rows = b.minimum(cut.group, cut.panels - panel0), b.minimum(cut.chunk, self.m - row0)
            count = ceil_div(rows, mr)
            size = rows // b.maximum(count, 1)
            longer = rows - size * count
            if not self.direct:
                with b.when(lies[0].differs(which) & b.lift(cut.kept).differs(0)):
                    b.call("pack_panels", [args, scratch.pointer, panel_pitch, batch, panel0 * nr, panels, b.lift(0),
                                           self.k])
            lies[0] = which

            def row_of(t: Value, row0: Value = row0, size: Value = size, longer: Value = longer) -> Value:
                return row0 + t * size + b.minimum(t, longer)

            for block in b.range(0, cut.blocks):
                start = block * cut.block
                depth = b.minimum(cut.block, self.k - start)
                if not self.direct:
                    with b.when(b.lift(cut.kept).equals(0)):
                        b.call("pack_panels", [args, scratch.pointer, panel_pitch, batch, panel0 * nr, panels, start,
                                               depth])
                for begin in b.range(0, count, PART):
                    end = b.minimum(begin + PART, count)
                    if not self.in_place:
                        b.call("pack_rows", [args, packed_rows.pointer, pitch, batch, row_of(begin), end - begin, size,
                                             b.maximum(longer - begin, 0), start, depth])
                    for p in b.range(0, panels):
                        column = (panel0 + p) * nr
                        columns = b.minimum(nr, self.n - column)
                        if self.direct:
                            panel = self._panel(batch, column, start)
                        else:
                            panel = scratch.at(p * panel_pitch + start * cut.kept * nr)
                        whole = columns.equals(nr)
                        # what an epilogue reads comes while a tile is computed; turned ones are finished by vectors
                        at_once = 1 if self.place(batch, row0, column) is None and not self.turned else PART
                        for t0 in b.range(begin, end, at_once):
                            t1, row = b.minimum(t0 + at_once, end), row_of(t0)
                            result = results.at((p * height + row - row0) * keep * nr)
                            place, to, apart = self.place(batch, row, column), result.pointer, b.lift(nr)
                            if place is not None:
                                to, apart = b.select(whole, place[0].pointer, to), b.select(whole, place[1], apart)
                            tall = b.minimum(b.maximum(longer, t0), t1)  # the tiles before it are one row longer
                            runs = [(t0, tall, size + 1), (tall, t1, size)]
                            if at_once == 1:
                                runs = [(t0, t1, b.select(t0 < longer, size + 1, size))]
                            for t, after, here in runs:
                                if self.in_place:
                                    of_batch, line, _ = self.a_strides
                                    a, step = self.a.at(batch * of_batch + row_of(t) * line + start), here * line
                                else:
                                    a, step = packed_rows.at((t - begin) * pitch), pitch
                                c = Array(b, to, self.dtype).at((row_of(t) - row) * apart)
                                b.call("multiply", [after - t, depth, a.pointer, step, self.a_strides[1], panel.pointer,
                                                    c.pointer, apart, block, here, columns])
                            ends = block.equals(cut.blocks - 1)
                            with b.when(ends if place is None else ends & b.negate(whole)):
                                b.call("finish", [args, result.pointer, room.pointer, batch, row, row_of(t1) - row,
                                                  column, columns])
