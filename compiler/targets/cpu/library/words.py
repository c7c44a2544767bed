"""Products of matrices whose elements are words, as `word_calls.word_product` defines them: by tiles of AMX, or by
register tiles whose instructions multiply the numbers of a word and add up their products.

A unit of work is a chunk of rows times a group of column panels, of one batch:

    for each grain of the depth:
        pack the grain's part of each panel            [words][NR]
        for each tile of rows, each panel:
            tile (+)= rows, where they lie, x panel
            after the last grain: the epilogue
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.word_geometry import WordProduct
from mxc.compiler.targets.cpu.emit.builder import Array, Value
from mxc.compiler.targets.cpu.library import amx
from mxc.compiler.targets.cpu.library.blocks import Lines, pack_lines
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, Tiles, ceil_div, evenly, least, most
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.tile import LIFT, multiply_pairs, multiply_quads, print_tiles, same_shape, zeros
from mxc.compiler.targets.cpu.machine.isa import Isa

GRAIN_BYTES = 32 << 10  # a panel's part that is packed at once has about so many bytes
CHUNK_ROWS = 256  # a unit has at most so many rows
PANELS = 4  # a unit has at most so many panels
STEP = 4  # register tiles take so many words in one round of their loop


@dataclass(frozen=True)
class RowsCall(Parameters):
    """A tile of rows times a panel. a: the first row, others `pitch` words apart. panel: `words` rows of columns. sums:
    the tile's; more: 1 if they begin with what is kept, else 0."""

    a: Pointer
    pitch: Integer
    panel: Pointer
    words: Integer
    sums: Pointer
    more: Integer


@dataclass(frozen=True)
class WordsCut(Generic[N]):
    """How a product is cut."""

    columns: int  # of a panel
    tall: int  # rows of a tile
    panels: N
    group: N  # panels of a unit
    groups: N
    chunk: N  # rows of a unit, in whole tiles
    chunks: N
    grain: N  # words of the depth at once
    grains: N
    units: N

    @classmethod
    def of(cls, g: WordProduct[N], isa: Isa) -> WordsCut[N]:
        columns = isa.tile("float32")[1]
        tall = amx.AT_ONCE * amx.ROWS if isa.tiles else isa.rows
        panels: N = ceil_div(g.n, columns)
        chunk: N = ceil_div(ceil_div(g.m, ceil_div(g.m, CHUNK_ROWS)), tall) * tall
        chunks: N = ceil_div(g.m, chunk)
        wanted: N = ceil_div(UNITS, most(1, g.batch * chunks))
        group, groups = evenly(panels, most(ceil_div(panels, PANELS), least(panels, wanted)))
        steps: N = g.k // g.depth
        grains: N = most(1, ceil_div(steps, GRAIN_BYTES // amx.WORD // columns // g.depth))
        return cls(columns, tall, panels, group, groups, chunk, chunks, ceil_div(steps, grains) * g.depth, grains,
                   g.batch * chunks * groups)

    def layout(self: WordsCut[N], g: WordProduct[N]) -> tuple[int, N, N, N]:
        """In words of the scratch: where the table of offsets begins, panels, and sums, and its size. The tiles'
        configuration is in front of them."""
        offsets = amx.CONFIGURATION // amx.WORD
        panels: N = ceil_div(offsets + 2 * (self.grain // g.depth), 16) * 16
        sums: N = panels + self.group * self.grain * self.columns
        kept: N = most(self.tall, least(self.grains - 1, 1) * self.group * self.chunk)  # a single grain needs a tile
        return offsets, panels, sums, sums + kept * self.columns


def units(g: WordProduct[int], isa: Isa) -> int:
    return WordsCut.of(g, isa).units


def scratch_elements(g: WordProduct[int], isa: Isa) -> int:
    return WordsCut.of(g, isa).layout(g)[3]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, isa = p.b, p.isa

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, rows, vectors, RowsCall(*values))

    if isa.tiles:
        amx.print_multiply(p, p.geometry.depth, isa.tile("float32")[1])
    else:
        shapes = [(rows, vectors) for rows in range(1, isa.rows + 1) for vectors in range(1, isa.vectors + 1)]
        print_tiles(b, shapes, RowsCall.text(), tile, f"{RowsCall.text()}, i64 rows, i64 vectors", same_shape)
    where = "ptr args, ptr noalias target, i64 pitch, i64 batch, i64 column, i64 panels, i64 start, i64 words"
    with b.function("pack_panels", where, internal=True) as (args, target, *place):
        _Words(p, args).pack_panels(p.array(target), *place)
    where = "ptr args, ptr noalias tile, i64 batch, i64 row, i64 rows, i64 column, i64 columns"
    with b.function("finish", where, internal=True) as (args, results, *place):
        _Words(p, args).store_rows(isa.tile("float32")[1], p.array(results), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Words(p, args).run(first, last, scratch)


def _print_tile(p: Printing, rows: int, vectors: int, given: RowsCall) -> None:
    """sums[row][vector] = (more ? sums : 0) + sum over words of row[word] * panel[word][vector]."""
    b, lanes, columns = p.b, p.isa.lanes("float32"), p.isa.tile("float32")[1]
    kept, panel = p.array(given.sums), p.array(given.panel)
    lines = [p.array(given.a).at(i * given.pitch) for i in range(rows)]
    places = [i * columns + j * lanes for i in range(rows) for j in range(vectors)]
    sums = zeros(b, p.dtype, lanes, len(places))
    for _ in b.range(0, given.more, carry=sums):
        sums[:] = [kept.vector(place, lanes) for place in places]
    whole = given.words - given.words % STEP
    for begin, end, count in ((b.lift(0), whole, STEP), (whole, given.words, 1)):
        for k in b.range(begin, end, count, carry=sums):
            here, row = [(line.at(k), 0) for line in lines], panel.at(k * columns)
            if p.dtype == "int32":
                multiply_quads(b, p.isa, sums, here, row, columns, count, signed_row=not p.geometry.lifted)
            else:
                multiply_pairs(b, p.isa, sums, here, row, columns, count)
    for total, place in zip(sums, places, strict=True):
        kept.put(place, total)


class _Words(Function):
    """One function of a kernel being printed."""

    g: WordProduct[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        self.args = args
        self.a, self.b_matrix = (self.array(each.pointer) for each in self.epilogue.buffers[:2])

    def run(self, first: Value, last: Value, scratch: Value) -> None:
        b, g, cut = self.b, self.g, WordsCut.of(self.g, self.isa)
        offsets_at, panels_at, sums_at, _ = cut.layout(g)
        memory = self.array(scratch)
        panels, sums = memory.at(panels_at), memory.at(sums_at)
        height = b.minimum(amx.ROWS, g.m)  # of a tile of AMX: no row is read that is not there
        if self.isa.tiles:
            amx.configure(b, scratch, height, g.depth)
            offsets = Array(b, memory.at(offsets_at).pointer, "int64")
            for step in b.range(0, cut.grain // g.depth):
                offsets[step] = step * (g.depth * amx.WORD)
        keep = b.select(cut.grains > 1, b.lift(cut.columns), b.lift(0))  # elements kept of each row
        for unit in b.range(first, last):
            group, rest = unit % cut.groups, unit // cut.groups
            chunk, batch = rest % cut.chunks, rest // cut.chunks
            row0, panel0 = chunk * cut.chunk, group * cut.group
            rows, count = b.minimum(cut.chunk, g.m - row0), b.minimum(cut.group, cut.panels - panel0)
            cover = Tiles.of(rows, cut.tall)
            for grain in b.range(0, cut.grains):
                begin = grain * cut.grain
                words = b.minimum(cut.grain, g.k - begin)
                b.call("pack_panels", [self.args, panels.pointer, cut.grain * cut.columns, batch, panel0 * cut.columns,
                                       count, begin, words])
                for t in b.range(0, cover.count):
                    v = t * cut.tall if self.isa.tiles else cover.start(t)
                    tall = b.minimum(cut.tall, rows - v) if self.isa.tiles else cover.rows(t)
                    for p in b.range(0, count):
                        column = (panel0 + p) * cut.columns
                        columns = b.minimum(cut.columns, g.n - column)
                        tile = _Tile(batch, row0 + v, tall, column, columns, words, b.minimum(grain, 1),
                                     grain.equals(cut.grains - 1))
                        self._tile(tile, self.a.at(batch * g.a_strides[0] + begin),
                                   panels.at(p * (cut.grain * cut.columns)), sums.at((p * cut.chunk + v) * keep),
                                   memory.at(offsets_at).pointer, height)
        if self.isa.tiles:
            amx.release(b)

    def _tile(self, tile: _Tile, a: Array, panel: Array, sums: Array, offsets: Value, height: Value) -> None:
        """Multiplies a tile of rows by a panel; the epilogue follows after the last grain."""
        b, g, pitch, width = self.b, self.g, self.g.a_strides[1], self.isa.tile("float32")[1]
        vectors: Value = ceil_div(tile.columns, self.lanes)
        place = [tile.column, tile.columns]
        if not self.isa.tiles:
            given = RowsCall(a.at(tile.row * pitch).pointer, pitch, panel.pointer, tile.words, sums.pointer, tile.more)
            b.call("multiply", [*given.values(), tile.rows, vectors])
            with b.when(tile.ends):
                b.call("finish", [self.args, sums.pointer, tile.batch, tile.row, tile.rows, *place])
            return
        starts = [b.minimum(tile.row + i * amx.ROWS, g.m - height) for i in range(amx.AT_ONCE)]
        both = b.select(tile.rows > amx.ROWS, b.lift(amx.AT_ONCE), b.lift(1))
        here, there = (a.at(start * pitch).pointer for start in starts)
        tiles = amx.TilesCall(here, there, pitch * amx.WORD, offsets, tile.words // g.depth, panel.pointer,
                              sums.pointer, tile.more)
        b.call("multiply", [*tiles.values(), both, vectors])
        with b.when(tile.ends):
            for i, start in enumerate(starts):
                first = tile.row + i * amx.ROWS
                b.call("finish", [self.args, sums.at((i * amx.ROWS + first - start) * width).pointer, tile.batch,
                                  first, b.minimum(tile.rows - i * amx.ROWS, amx.ROWS), *place])

    def pack_panels(
        self, target: Array, pitch: Value, batch: Value, column: Value, panels: Value, start: Value, words: Value,
    ) -> None:
        """Packs panels from `column` on as [words][NR] each, `pitch` apart; past the end it puts anything."""
        b, g, lanes, width = self.b, self.g, self.lanes, self.isa.tile("float32")[1]
        of_batch, _, line = g.b_strides
        if g.across:
            matrix = Array(b, self.b_matrix.pointer, "bfloat16").at(batch * of_batch + column)
            self._pack_across(Array(b, target.pointer, "int32"), pitch, matrix, (panels, g.n - column), (start, words))
            return
        for p in b.range(0, panels):
            here, first = target.at(p * pitch), column + p * width
            source = self.b_matrix.at(batch * of_batch + first * line + start)
            pack_lines(self.epilogue, lanes, here, Lines(source, g.n - first, line, b.lift(1), words), width)
            if g.lifted:
                for k in b.range(0, words * width, lanes):
                    here.put(k, b.binary("xor", here.vector(k, lanes), b.number(LIFT, self.zero.type)))

    def _pack_across(
        self, target: Array, pitch: Value, matrix: Array, across: tuple[Value, Value], along: tuple[Value, Value],
    ) -> None:
        """Packs pairs of rows of bfloat16, whose columns lie together: all panels' parts of a pair before the next one,
        which may be pages away. across: panels, and columns that are there. along: the first word, and how many."""
        b, lanes, width, step = self.b, self.lanes, self.isa.tile("float32")[1], self.g.b_strides[1]
        (panels, valid), (start, words) = across, along
        for k in b.range(0, words):
            rows = [matrix.at(((start + k) * 2 + i) * step) for i in range(2)]
            for p in b.range(0, panels):
                left, here = valid - p * width, target.at(p * pitch + k * width)
                for j in range(0, width, lanes):
                    mask = b.first_lanes(b.minimum(left, width) - j, lanes)
                    low, high = (b.convert("zext", row.vector(p * width + j, lanes, mask), "i32") for row in rows)
                    here.put(j, b.binary("or", low, b.binary("shl", high, b.number(16, high.type))))


@dataclass(frozen=True)
class _Tile:
    """A tile of rows and its columns in a grain: of `words`. more, ends: whether others come before it and behind."""

    batch: Value
    row: Value
    rows: Value
    column: Value
    columns: Value
    words: Value
    more: Value
    ends: Value
