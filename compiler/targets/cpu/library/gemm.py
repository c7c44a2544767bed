"""C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], as `calls.gemm` defines it.

A unit of work is a chunk of rows times a group of column panels, of one batch:

    for each block of the depth:
        pack the block's part of each panel of B        [depth][NR], unless it comes so, or the last unit has packed it
        for each part of the rows:
            pack it from A as [depth][MR]               unless rows are read in place
            for each panel:
                for each tile of rows:
                    tile (+)= rows x panel              MR x NR accumulators in registers
                after the last block: the epilogue of the part's rows and the panel's columns

A kernel that is `turned` (`calls.gemm`) computes the transposed product from the transposed operands: its rows are the
columns of B, its columns are the rows of A, and its epilogue transposes the results. Results that are stored as they
are go from the registers to their place.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from mxc.compiler.kernel.gemm_of_parts import GemmOfParts
from mxc.compiler.kernel.geometry import Gemm
from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Value, vector_type
from mxc.compiler.targets.cpu.library import vector
from mxc.compiler.targets.cpu.library.arithmetic import Arithmetic
from mxc.compiler.targets.cpu.library.blocks import LINE, Lines, pack_lines, prefetch
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, Tiles, ceil_div, evenly, least, most
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, NoAlias, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.tile import STEP, Panel, chained, keep_sums, print_tiles
from mxc.compiler.targets.cpu.machine.isa import Isa

DEPTH_BYTES = 1536  # a block has at most so many bytes of each panel column: a panel then fits into the nearest cache
PANELS = 16  # a unit has at most so many panels of DEPTH_BYTES of the depth, and in proportion more of shallower ones
ROWS = 1024  # a unit has at most so many rows
PART = 12  # so many tiles of rows are multiplied by all panels of a unit before the next ones are
SQUARE = 16  # packed rows are cut into up to SQUARE * m / n chunks before columns are cut; rows in place into m / n
KEPT_BYTES = 2 << 20  # panels of a unit with at most so many bytes over the whole depth stay packed for the next unit
UNIT_PRODUCTS = 1 << 18  # a unit has at least so many multiplications, if the product has
AHEAD = 8  # a line of an operand is asked for so many lines before it is packed: hardware does not foresee long steps


@dataclass(frozen=True)
class GemmCut(Generic[N]):
    """How a product is cut."""

    panels: N
    block: N  # depth of a block
    blocks: N
    group: N  # panels of a unit
    groups: N
    chunk: N  # rows of a unit
    chunks: N
    units: N
    kept: N  # 1 if panels stay packed over the whole depth, else 0

    @classmethod
    def of(cls, g: Gemm[N], tile: tuple[int, int]) -> GemmCut[N]:
        batch, (m, n), k = g.batch, (g.n, g.m) if g.turned else (g.m, g.n), g.k
        mr, nr = tile
        size = BYTES[computing_dtype(g.dtype)]
        panels: N = ceil_div(n, nr)
        deepest = DEPTH_BYTES // size
        blocks: N = most(1, ceil_div(k, deepest))
        block: N = ceil_div(k, blocks)
        wanted: N = most(1, least(UNITS, m * n * k // UNIT_PRODUCTS * batch))
        wanted = ceil_div(wanted, most(1, batch))
        few: N = most(1, least(wanted, m * (1 if g.rows_in_place else SQUARE) // most(1, n)))
        groups: N = most(ceil_div(panels, PANELS * deepest // most(1, block)), least(panels, ceil_div(wanted, few)))
        group, groups = evenly(panels, most(1, groups))
        chunks: N = most(most(few, ceil_div(m, ROWS)), ceil_div(wanted, most(1, groups)))
        chunks = least(chunks, ceil_div(m, mr))
        chunk, chunks = evenly(m, most(1, chunks))
        whole: N = most(1, group * k * nr * size)
        kept: N = least(least(1, KEPT_BYTES // whole), chunks - 1)
        return cls(panels, block, blocks, group, groups, chunk, chunks, batch * groups * chunks, kept)

    def span(self: GemmCut[N]) -> N:
        """The depth of the panels that lie packed."""
        return self.block + self.kept * (self.blocks - 1) * self.block

    def height(self: GemmCut[N], tile: tuple[int, int], lanes: int) -> N:
        """How many rows of results are kept for each panel, in whole vectors: those of a part if the depth is a single
        block, else those of the whole chunk."""
        part: N = PART * tile[0] + least(self.blocks - 1, 1) * self.chunk
        return ceil_div(least(self.chunk, part), lanes) * lanes

    def layout(self: GemmCut[N], tile: tuple[int, int], lanes: int) -> tuple[N, N, N]:
        """In elements of the scratch: where the packed rows begin; where the room for transposing vectors begins, with
        the results behind it; and the size of the scratch.

        Each tile of rows has a vector more behind it, because packing writes whole vectors.
        """
        mr, nr = tile
        rows: N = self.group * self.span() * nr
        tiles: N = ceil_div(self.chunk, mr)
        room: N = ceil_div(rows + least(tiles, PART) * (self.block * mr + lanes), 16) * 16
        more: N = least(self.blocks - 1, 1)  # 0 or 1: with a single block, one panel's results are kept
        return rows, room, room + (lanes + most(1, more * self.group) * self.height(tile, lanes)) * nr


def units(g: Gemm[int], isa: Isa) -> int:
    if g.vector:
        return vector.units(g)
    return GemmCut.of(g, isa.tile(computing_dtype(g.dtype))).units


def scratch_elements(g: Gemm[int], isa: Isa) -> int:
    if g.vector:
        return vector.scratch_elements(g, isa)
    dtype = computing_dtype(g.dtype)
    return GemmCut.of(g, isa.tile(dtype)).layout(isa.tile(dtype), isa.lanes(dtype))[2]


@dataclass(frozen=True)
class TileCall(Parameters):
    """`count` tiles of rows that follow each other, their rows `step` elements apart, times a panel.

    a: rows that begin `pitch` apart and whose depth lies together, or that are packed as [depth][MR]. c: results, whose
    rows are `c_pitch` apart. add: 0 to write these, another number to add to them.
    """

    count: Integer
    depth: Integer
    a: Pointer
    step: Integer
    pitch: Integer
    panel: Pointer
    c: NoAlias
    c_pitch: Integer
    add: Integer


@dataclass(frozen=True)
class RowsCall(Parameters):
    """`tiles` tiles of rows, from row `row` of a batch on, that are packed as [depth][MR] each, `pitch` elements apart.

    A tile has `rows` rows, and each of the first `longer` tiles has one more. Of the depth, the part that begins at
    `start` is packed.
    """

    args: Pointer
    target: NoAlias
    pitch: Integer
    batch: Integer
    row: Integer
    tiles: Integer
    rows: Integer
    longer: Integer
    start: Integer
    depth: Integer


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    g: Gemm[int] = p.geometry
    b, isa, lanes = p.b, p.isa, p.isa.lanes(p.dtype)
    if g.vector:
        vector.print_kernel(p)
        return
    p, factor = _without_factor(p)

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, rows, vectors, TileCall(*values), factor)

    def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
        *_, rows_here, columns_here = values

        def fits(rows: int, vectors: int) -> Value:
            found = rows_here.equals(rows) & (columns_here > (vectors - 1) * lanes)
            return found & (columns_here <= vectors * lanes) if vectors < isa.vectors else found

        return fits

    shapes = [(rows, vectors) for rows in range(1, isa.rows + 1) for vectors in range(1, isa.vectors + 1)]
    print_tiles(b, shapes, TileCall.text(), tile, f"{TileCall.text()}, i64 rows, i64 columns", fits_of)
    where = "ptr args, ptr noalias target, i64 pitch, i64 batch, i64 column, i64 panels, i64 start, i64 depth"
    with b.function("pack_panels", where, internal=True) as (args, target, *place):
        _Product(p, args).pack_panels(p.array(target), *place)
    if not g.rows_in_place:
        with b.function("pack_rows", RowsCall.text(), internal=True) as values:
            here = RowsCall(*values)
            _Product(p, here.args).pack_rows(here)
    where = "ptr args, ptr tile, ptr room, i64 batch, i64 row, i64 rows, i64 column, i64 columns"
    with b.function("finish", where, internal=True) as (args, results, room, *place):
        made = _Product(p, args)
        if g.turned:
            made.finish_turned(p.array(results), p.array(room), *place)
        else:
            made.store_rows(made.tile[1], p.array(results), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Units(p, args, p.array(scratch)).run(first, last)


def _without_factor(p: Printing) -> tuple[Printing, float | None]:
    """The kernel, and None; where all that its epilogue does to results is to multiply them by a number, the kernel
    without that epilogue, and the number. Tiles multiply by it before they add, and store results as they are."""
    (store, *others), dtype = p.kernel.stores, p.dtype
    value = store.value
    if others or store.mode != "write" or value.op != "mul" or not value.dtype == p.kernel.geometry.dtype == dtype:
        return p, None
    result, factor = value.args
    if result.op != "acc" or factor.op != "const":
        return p, None
    return replace(p, kernel=replace(p.kernel, stores=(replace(store, value=result),))), float(factor.data)


def _print_tile(p: Printing, rows: int, vectors: int, given: TileCall, factor: float | None) -> None:
    """c[rows][vectors] = (add ? c : 0) + sum over depth of row[k] * panel[k][vector], times a factor if there is
    one."""
    b, lanes, (mr, nr) = p.b, p.isa.lanes(p.dtype), p.isa.tile(p.dtype)
    g: Gemm[int] = p.geometry
    panel, whole = p.array(given.panel), given.depth - given.depth % STEP
    for t in b.range(0, given.count):
        a, c = p.array(given.a).at(t * given.step), p.array(given.c).at(t * rows * given.c_pitch)
        lines = [a.at(i * given.pitch) if g.rows_in_place else a.at(i) for i in range(rows)]
        sums = chained(Arithmetic(b, p.isa.narrow), lanes, lines, 1 if g.rows_in_place else mr,
                       Panel(panel, nr, vectors), given.depth, whole)
        if factor is not None:
            by = b.number(factor, vector_type(TYPES[p.dtype], lanes))
            sums = [total * by for total in sums]
        places = [c.at(i * given.c_pitch + j * lanes) for i in range(rows) for j in range(vectors)]
        keep_sums(sums, [(place, 0) for place in places], given.add)


class _Product(Function):
    """One function of a kernel being printed. Turned, its operands are exchanged and transposed."""

    g: Gemm[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g, self.tile = self.g, self.isa.tile(self.dtype)
        self.a, self.b_matrix = self.epilogue.buffers[:2]
        if isinstance(g, GemmOfParts):
            self.a, self.b_matrix = self.a.at(g.starts[0]), self.b_matrix.at(g.starts[1])
        self.m, self.n, self.k, self.a_strides, self.b_strides = g.m, g.n, g.k, g.a_strides, g.b_strides
        if g.turned:
            self.a, self.b_matrix, self.m, self.n = self.b_matrix, self.a, self.n, self.m
            (s0, s1, s2), (t0, t1, t2) = self.b_strides, self.a_strides
            self.a_strides, self.b_strides = (s0, s2, s1), (t0, t2, t1)
        self.direct = bool(g.packed_b) and self.b_matrix.dtype == self.dtype

    def _panel(self, batch: Value, column: Value, depth: Value) -> Array:
        """Where a panel that comes packed begins, from `depth` on."""
        return self.b_matrix.at(batch * self.b_strides[0] + column * self.k + depth * self.tile[1])

    def pack_panels(
        self, target: Array, pitch: Value, batch: Value, column: Value, panels: Value, start: Value, depth: Value,
    ) -> None:
        """Packs panels from `column` on as [depth][NR] each, `pitch` apart; past the end it puts anything.

        Where a row of B lies together, all panels' parts of it are read before the next row: that may be a page away.
        """
        b, nr, lanes = self.b, self.tile[1], self.lanes
        if self.g.packed_b:  # stored in another dtype than computed in
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
                here = target.at(p * pitch)
                lines = Lines(source.at(p * nr * line), self.n - column - p * nr, line, step, depth)
                pack_lines(self.epilogue, lanes, here, lines, nr)

    def _copy_row(self, target: Array, source: Array, masks: Sequence[Value | None]) -> None:
        for i, mask in enumerate(masks):
            vector = source.vector(i * self.lanes, self.lanes, mask)
            target.put(i * self.lanes, self.loaded(vector, source.dtype))

    def _copy(self, target: Array, source: Array, width: Value, depth: Value) -> None:
        for k in self.b.range(0, depth):
            self._copy_row(target.at(k * width), source.at(k * width), [None] * (self.tile[1] // self.lanes))

    def pack_rows(self, given: RowsCall) -> None:
        """Packs tiles of rows, as `RowsCall` says; past the end of the rows it puts anything."""
        b, mr, lanes = self.b, self.tile[0], self.lanes
        of_batch, line, step = self.a_strides
        source = self.a.at(given.batch * of_batch + given.row * line + given.start * step)
        together, target = line.equals(1), self.array(given.target)
        with b.when(together):
            self._pack_rows_together(given, source, target)
        with b.when_not(together):
            for t in b.range(0, given.tiles):
                first, here = t * given.rows + b.minimum(t, given.longer), target.at(t * given.pitch)
                lines = Lines(source.at(first * line), self.m - given.row - first, line, step, given.depth)
                pack_lines(self.epilogue, lanes, here, lines, mr)

    def _pack_rows_together(self, given: RowsCall, source: Array, target: Array) -> None:
        """Packs them where neighbouring rows lie side by side: one element of the depth after the other."""
        b, mr, lanes, step = self.b, self.tile[0], self.lanes, self.a_strides[2]
        tiles, rows, longer = given.tiles, given.rows, given.longer
        # A tile's vectors read `width` rows from its first one on; it has at least half of MR itself. So from the tile
        # before the last `last` ones on there are `width` rows, and none before these needs masks.
        width = ceil_div(mr, lanes) * lanes
        last = ceil_div(width, mr // 2) - 1
        left = self.m - given.row
        inner = b.select(tiles * rows + longer + width <= left, tiles, b.maximum(tiles - last, 0))
        whole = given.depth - given.depth % STEP
        for begin, end, steps in ((b.lift(0), whole, STEP), (whole, given.depth, 1)):
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
                                target.put(t * given.pitch + (k + u) * mr + j, self.loaded(vector, source.dtype))

    def finish_turned(
        self, tile: Array, room: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value,
    ) -> None:
        """The epilogue over results of the transposed product, whose rows are columns of the result."""
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
        """Where results are stored as they are, and how far apart their rows lie; None if the epilogue has to run."""
        stores = self.epilogue.kernel.stores
        store = stores[0]
        plain = len(stores) == 1 and store.mode == "write" and store.value.op == "acc"
        target = self.epilogue.buffers[store.buffer]
        if self.g.turned or not plain or not target.dtype == store.value.dtype == self.dtype:
            return None
        (start, step, spread), (pitch,) = self.epilogue.terms(store.index, (batch, row, Lane(column))), \
            self.epilogue.factors(store.index, (1,))
        if step is None or step.constant != 1 or spread is not None:
            return None
        return target.at(start), pitch


class _Units(_Product):
    """The kernel's function itself. scratch: its memory."""

    def __init__(self, printing: Printing, args: Value, scratch: Array):
        super().__init__(printing, args)
        b, (mr, nr) = self.b, self.tile
        self.args, self.scratch, cut = args, scratch, GemmCut.of(self.g, self.tile)
        self.cut = cut
        rows_at, room_at, _ = cut.layout(self.tile, self.lanes)
        self.packed_rows, self.room = scratch.at(rows_at), scratch.at(room_at)
        self.results, self.height = self.room.at(self.lanes * nr), cut.height(self.tile, self.lanes)
        self.keep = b.select(cut.blocks > 1, b.lift(1), b.lift(0))
        self.pitch, self.panel_pitch = cut.block * mr + self.lanes, cut.span() * nr

    def run(self, first: Value, last: Value) -> None:
        b, cut = self.b, self.cut
        lies = [b.lift(-1)]  # the number of the batch and group whose panels lie packed
        for unit in b.range(first, last, carry=lies):
            which, row0 = unit // cut.chunks, unit % cut.chunks * cut.chunk
            batch, panel0 = which // cut.groups, which % cut.groups * cut.group
            panels, rows = b.minimum(cut.group, cut.panels - panel0), b.minimum(cut.chunk, self.m - row0)
            part = _Part(batch, row0, Tiles.of(rows, self.tile[0]), panel0, panels)
            if not self.direct:
                with b.when(lies[0].differs(which) & cut.kept.differs(0)):
                    self._pack_panels(part, b.lift(0), self.k)
            lies[0] = which
            for block in b.range(0, cut.blocks):
                start = block * cut.block
                depth = b.minimum(cut.block, self.k - start)
                if not self.direct:
                    with b.when(cut.kept.equals(0)):
                        self._pack_panels(part, start, depth)
                self._block(part, block, start, depth)

    def _pack_panels(self, part: _Part, start: Value, depth: Value) -> None:
        self.b.call("pack_panels", [self.args, self.scratch.pointer, self.panel_pitch, part.batch,
                                    part.panel0 * self.tile[1], part.panels, start, depth])

    def _block(self, part: _Part, block: Value, start: Value, depth: Value) -> None:
        """All tiles of a unit by all its panels, in block number `block` of the depth."""
        b, tiles, nr = self.b, part.tiles, self.tile[1]
        for begin in b.range(0, tiles.count, PART):
            end = b.minimum(begin + PART, tiles.count)
            if not self.g.rows_in_place:
                b.call("pack_rows", RowsCall(
                    self.args, self.packed_rows.pointer, self.pitch, part.batch, part.row(begin), end - begin,
                    tiles.size, b.maximum(tiles.longer - begin, 0), start, depth).values())
            for p in b.range(0, part.panels):
                column = (part.panel0 + p) * nr
                columns = b.minimum(nr, self.n - column)
                if self.direct:
                    panel = self._panel(part.batch, column, start)
                else:
                    panel = self.scratch.at(p * self.panel_pitch + start * self.cut.kept * nr)
                whole = columns.equals(nr)
                # With an epilogue each tile is a call: what the epilogue reads is fetched while a tile is computed.
                # Turned tiles are finished several at once, as whole vectors of their rows.
                at_once = 1 if self.place(part.batch, part.row0, column) is None and not self.g.turned else PART
                for t0 in b.range(begin, end, at_once):
                    self._tiles(part, _Piece(block, start, depth, begin, p, column, columns, whole, panel), t0,
                                b.minimum(t0 + at_once, end), at_once)

    def _tiles(self, part: _Part, piece: _Piece, t0: Value, t1: Value, at_once: int) -> None:
        """Multiplies tiles t0 <= t < t1, which are at most `at_once`, by a panel; their epilogue follows after the last
        block."""
        b, tiles, nr = self.b, part.tiles, self.tile[1]
        row = part.row(t0)
        result = self.results.at((piece.number * self.height + row - part.row0) * self.keep * nr)
        place, to, apart = self.place(part.batch, row, piece.column), result.pointer, b.lift(nr)
        if place is not None:
            to, apart = b.select(piece.whole, place[0].pointer, to), b.select(piece.whole, place[1], apart)
        tall = b.minimum(b.maximum(tiles.longer, t0), t1)  # the tiles before it are one row longer
        runs = [(t0, tall, tiles.size + 1), (tall, t1, tiles.size)]
        if at_once == 1:
            runs = [(t0, t1, tiles.rows(t0))]
        for t, after, here in runs:
            if self.g.rows_in_place:
                of_batch, line, _ = self.a_strides
                a, step = self.a.at(part.batch * of_batch + part.row(t) * line + piece.start), here * line
            else:
                a, step = self.packed_rows.at((t - piece.begin) * self.pitch), self.pitch
            c = self.array(to).at((part.row(t) - row) * apart)
            b.call("multiply", [*TileCall(after - t, piece.depth, a.pointer, step, self.a_strides[1],
                                          piece.panel.pointer, c.pointer, apart, piece.block).values(),
                                here, piece.columns])
        ends = piece.block.equals(self.cut.blocks - 1)
        with b.when(ends if place is None else ends & b.negate(piece.whole)):
            b.call("finish", [self.args, result.pointer, self.room.pointer, part.batch, row, part.row(t1) - row,
                              piece.column, piece.columns])


@dataclass(frozen=True)
class _Part:
    """What a unit computes: some rows of a batch, in tiles from `row0` on, by `panels` panels from `panel0` on."""

    batch: Value
    row0: Value
    tiles: Tiles
    panel0: Value
    panels: Value

    def row(self, tile: Value) -> Value:
        """The first row of a tile."""
        return self.row0 + tile * self.tiles.size + tile.builder.minimum(tile, self.tiles.longer)


@dataclass(frozen=True)
class _Piece:
    """One panel of a unit in one block of the depth.

    block: the block's number. start, depth: where it begins, and how deep it is. begin: the first of the tiles whose
    rows lie packed. number: the panel's in the unit. column, columns: its first column, and how many there are; whole:
    whether they fill it.
    """

    block: Value
    start: Value
    depth: Value
    begin: Value
    number: Value
    column: Value
    columns: Value
    whole: Value
    panel: Array
