"""Products of matrices by register tiles: the part that all convolutions and GEMM share.

A unit of work is a chunk of row tiles times a group of column panels, of one batch:

    for each block of the depth:
        pack the block's part of each panel        [depth][NR], so that a tile reads it from end to end
        pack the block's part of each row tile     [depth][MR], unless the operand comes so
        for each panel, each row tile:
            tile (+)= row tile x panel             MR x NR accumulators in registers
            after the last block: the epilogue

What differs (where the operands' elements are) is a `Product`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, lanes_of, vector_type
from mxc.compiler.targets.cpu.library.epilogue import Axis, Epilogue
from mxc.compiler.targets.cpu.library.tile import add_products
from mxc.compiler.targets.cpu.machine.isa import Isa

DEPTH_BYTES = 1536  # of the depth that one panel column covers
PANEL_BYTES = 192 << 10  # all panels of a unit
CHUNK_TILES = 24  # row tiles of a unit
PANELS = 16  # column panels of a unit, at most
LINE = 64  # bytes that come from memory together
AHEAD = 4  # parts of a source that are asked for before they are read
UNITS = 8  # so many at least, if the work can be split so far


def ceil_div(x: Number, y: Number) -> Number:
    return (x + y - 1) // y  # type: ignore[operator]


def least(x: Number, y: Number) -> Number:
    """The smaller of two numbers, of Python or of the printed program."""
    if isinstance(x, Value):
        return x.builder.minimum(x, y)
    return y.builder.minimum(x, y) if isinstance(y, Value) else min(x, y)


def most(x: Number, y: Number) -> Number:
    if isinstance(x, Value):
        return x.builder.maximum(x, y)
    return y.builder.maximum(x, y) if isinstance(y, Value) else max(x, y)


@dataclass(frozen=True)
class Size:
    """The extents of a product; depth is cut at multiples of `granule` only."""

    batches: Number
    rows: Number
    columns: Number
    depth: Number
    granule: Number


@dataclass(frozen=True)
class Blocking:
    """How a product is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    tiles: Number
    panels: Number
    block: Number  # depth of a block
    blocks: Number
    group: Number  # panels of a unit
    groups: Number
    chunk: Number  # row tiles of a unit
    chunks: Number
    batches: Number

    @classmethod
    def of(cls, size: Size, tile: tuple[int, int], dtype: str) -> Blocking:
        mr, nr = tile
        tiles, panels = ceil_div(size.rows, mr), ceil_div(size.columns, nr)
        grains = ceil_div(size.depth, size.granule)
        most_grains = most(1, DEPTH_BYTES // BYTES[dtype] // size.granule)
        blocks = most(1, ceil_div(grains, most_grains))
        block = ceil_div(grains, blocks) * size.granule
        group = least(PANELS, most(1, PANEL_BYTES // BYTES[dtype] // nr // most(1, block)))
        groups = ceil_div(panels, group)
        # A group packs all rows anew, a chunk all columns: of the fewer ones there are more copies.
        wanted = ceil_div(UNITS, most(1, size.batches))
        few = most(1, least(wanted, 2 * size.rows // most(1, size.columns)))
        chunks = most(ceil_div(tiles, CHUNK_TILES), least(tiles, few))
        groups = most(groups, least(panels, ceil_div(wanted, most(1, chunks))))
        group = most(1, ceil_div(panels, most(1, groups)))
        groups = ceil_div(panels, group)
        chunks = most(chunks, least(tiles, ceil_div(UNITS, most(1, size.batches * groups))))
        chunk = most(1, ceil_div(tiles, most(1, chunks)))
        return cls(tiles, panels, block, blocks, group, groups, chunk, ceil_div(tiles, chunk), size.batches)

    @property
    def units(self) -> Number:
        return self.batches * self.groups * self.chunks

    def layout(self, tile: tuple[int, int], lanes: int) -> tuple[Number, Number, Number]:
        """In elements of the scratch: where the packed rows begin, where the tiles begin, and its size.

        A vector more behind each row tile, since packing writes whole vectors.
        """
        mr, nr = tile
        rows = self.group * self.block * nr
        tiles = ceil_div(rows + self.chunk * (self.block * mr + lanes), 16) * 16
        one_block = least(self.blocks - 1, 1)  # 0 or 1: a single block needs a single tile
        return rows, tiles, tiles + most(1, one_block * self.group * self.chunk) * mr * nr


class Product:
    """Where a product's elements are. The subclass sets `size`, in numbers of the printed program, and `epilogue`."""

    size: Size
    code: TileCode
    epilogue: Epilogue
    direct_rows = False

    def part(self, batch: Value, start: Value, depth: Value) -> tuple[Value, Value]:
        """A block of the depth as the batch has it: the granules of some may be smaller."""
        return start, depth

    def at_once(self, depth: Value) -> Value:
        """How much of a block's depth is packed of each row tile before more of it: rows lie apart, or the depth."""
        return depth

    def row_tile(self, batch: Value, tile: Value, depth: Value) -> Array:
        """Where the packed row tile begins, from `depth` on (direct_rows)."""
        raise AssertionError("rows are packed")

    def pack_tile(self, target: Array, batch: Value, row: Value, start: Value, depth: Value) -> None:
        """Rows row <= r < row + MR, start <= k < start + depth, as [depth][MR]; what lies past the end: anything."""
        raise AssertionError("rows come packed")

    def pack_panel(self, target: Array, batch: Value, column: Value, start: Value, depth: Value) -> None:
        """Columns column <= c < column + NR as [depth][NR]; what lies past the end: anything."""
        raise AssertionError("panels come packed")

    def axes(self, batch: Value, row: Value, column: Value, lanes: int) -> Sequence[Axis]:
        """The epilogue's axes for `lanes` columns from `column` on."""
        raise AssertionError("every product has axes, or a way to finish of its own")

    def finish(self, tile: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value) -> None:
        """The epilogue over a finished tile: whole vectors, or masked ones where columns end."""
        code = self.code
        b, nr, lanes = code.b, code.columns, code.lanes
        whole = columns.equals(nr)
        with b.when(whole):
            for r in b.range(0, rows):
                uniform: dict[int, Value] = {}
                for j in range(0, nr, lanes):
                    axes = self.axes(batch, row + r, column + j, lanes)
                    self.epilogue.store(axes, tile.vector(r * nr + j, lanes), code.dtype, None, uniform)
        with b.when_not(whole):
            for r in b.range(0, rows):
                for at in b.range(0, columns, lanes):
                    mask = b.first_lanes(columns - at, lanes)
                    axes = self.axes(batch, row + r, column + at, lanes)
                    self.epilogue.store(axes, tile.vector(r * nr + at, lanes), code.dtype, mask)


def keep_sums(tile: Array, sums: Sequence[Value], places: Sequence[int], add: Value) -> None:
    """tile[place] = (add ? tile[place] : 0) + a vector of sums, for each place."""
    b = tile.builder
    with b.when(add.equals(0)):
        for total, place in zip(sums, places, strict=True):
            tile.put(place, total)
    with b.when(add.differs(0)):
        for total, place in zip(sums, places, strict=True):
            tile.put(place, total + tile.vector(place, lanes_of(total.type)))


class TileCode:
    """The register-tile functions of one module: `multiply(depth, a, b, c, add, rows, columns)`."""

    def __init__(self, b: Builder, isa: Isa, dtype: str):
        self.b, self.dtype, self.lanes = b, dtype, isa.lanes(dtype)
        self.rows, self.columns = isa.tile(dtype)
        self.vectors = isa.vectors
        counts = sorted({1, 2, 4, self.rows})
        for rows in counts:
            for vectors in range(1, self.vectors + 1):
                self._tile(rows, vectors)
        with b.function("multiply", "i64 depth, ptr a, ptr b, ptr c, i64 add, i64 rows, i64 columns", True) as f:
            depth, a, panel, c, add, rows_left, columns_left = f
            enough = 0
            for rows in counts:
                for vectors in range(1, self.vectors + 1):
                    fits = (rows_left > enough) & (columns_left > (vectors - 1) * self.lanes)
                    if rows < self.rows:
                        fits = fits & (rows_left <= rows)
                    if vectors < self.vectors:
                        fits = fits & (columns_left <= vectors * self.lanes)
                    with b.when(fits):
                        b.leave(f"tile_{rows}_{vectors}", [depth, a, panel, c, add])
                enough = rows

    def _tile(self, rows: int, vectors: int) -> None:
        """c[rows][vectors] = (add ? c : 0) + sum over depth of a[k][row] * b[k][vector]."""
        b, lanes, kind = self.b, self.lanes, vector_type(TYPES[self.dtype], self.lanes)
        grid = [(i, j) for i in range(rows) for j in range(vectors)]
        parameters = "i64 depth, ptr noalias a, ptr noalias b, ptr noalias c, i64 add"
        with b.function(f"tile_{rows}_{vectors}", parameters, internal=True) as (depth, pa, pb, pc, add):
            a, panel, c = (Array(b, p, self.dtype) for p in (pa, pb, pc))
            sums = [b.zero(kind) for _ in grid]

            for k in b.range(0, depth, carry=sums):
                row, line = a.at(k * self.rows), panel.at(k * self.columns)
                add_products(b, lanes, sums, [(row, i) for i in range(rows)], line)
            keep_sums(c, sums, [i * self.columns + j * lanes for i, j in grid], add)

    def multiply(self, depth: Value, a: Array, panel: Array, c: Array, add: Value, rows: Value, columns: Value) -> None:
        self.b.call("multiply", [depth, a.pointer, panel.pointer, c.pointer, add, rows, columns])


def print_kernel(code: TileCode, symbol: str, product_of: Callable[[Value], Product]) -> None:
    """The kernel's function and those that it calls; `product_of` reads a function's `args`.

    Packing and the epilogue are functions of their own: LLVM's code generation takes far longer for one large nest.
    """
    b, mr, nr = code.b, code.rows, code.columns
    where = "ptr args, ptr noalias target, i64 batch, i64 line, i64 start, i64 depth"
    with b.function("pack_panel", where, internal=True) as (args, target, *place):
        product_of(args).pack_panel(Array(b, target, code.dtype), *place)
    with b.function("pack_tile", where, internal=True) as (args, target, *place):
        product = product_of(args)
        if not product.direct_rows:
            product.pack_tile(Array(b, target, code.dtype), *place)
    where = "ptr args, ptr noalias tile, i64 batch, i64 row, i64 rows, i64 column, i64 columns"
    with b.function("finish", where, internal=True) as (args, tile, *place):
        product_of(args).finish(Array(b, tile, code.dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        product = product_of(args)
        size = product.size
        cut = Blocking.of(size, (mr, nr), code.dtype)
        rows_at, tiles_at, _ = cut.layout((mr, nr), code.lanes)
        panels = Array(b, scratch, code.dtype)
        row_tiles, tiles, pitch = panels.at(rows_at), panels.at(tiles_at), cut.block * mr + code.lanes
        keep = b.select(b.lift(cut.blocks) > 1, b.lift(1), b.lift(0))
        for unit in b.range(first, last):
            group = unit % cut.groups
            chunk = unit // cut.groups % cut.chunks
            batch = unit // (cut.groups * cut.chunks)
            panel0, tile0 = group * cut.group, chunk * cut.chunk
            panel_count = b.minimum(cut.group, cut.panels - panel0)
            tile_count = b.minimum(cut.chunk, cut.tiles - tile0)
            for block in b.range(0, cut.blocks):
                start = block * cut.block
                whole = b.minimum(cut.block, size.depth - start)
                begin, depth = product.part(batch, start, whole)
                for p in b.range(0, panel_count):
                    target = panels.at(p * (cut.block * nr)).pointer
                    b.call("pack_panel", [args, target, batch, (panel0 + p) * nr, begin, depth])
                if not product.direct_rows:
                    at_once = product.at_once(whole)
                    for k in b.range(0, whole, at_once):
                        first, count = product.part(batch, start + k, b.minimum(at_once, whole - k))
                        for t in b.range(0, tile_count):
                            target = row_tiles.at(t * pitch + (first - begin) * mr).pointer
                            b.call("pack_tile", [args, target, batch, (tile0 + t) * mr, first, count])
                done = block.equals(cut.blocks - 1)
                for p in b.range(0, panel_count):
                    column = (panel0 + p) * nr
                    columns = b.minimum(nr, size.columns - column)
                    panel = panels.at(p * (cut.block * nr))
                    for t in b.range(0, tile_count):
                        row = (tile0 + t) * mr
                        rows = b.minimum(mr, size.rows - row)
                        if product.direct_rows:
                            row_tile = product.row_tile(batch, tile0 + t, begin)
                        else:
                            row_tile = row_tiles.at(t * pitch)
                        here = tiles.at((p * cut.chunk + t) * keep * (mr * nr))
                        code.multiply(depth, row_tile, panel, here, block, rows, columns)
                        with b.when(done):
                            b.call("finish", [args, here.pointer, batch, row, rows, column, columns])


class Lanes(Protocol):
    """What prints vectors of so many lanes."""

    b: Builder
    lanes: int


def pack_lines(
    code: Lanes, epilogue: Epilogue, target: Array, source: Array, block: int, valid: Value, line_step: Value,
    depth_step: Value, depth: Value, parts: tuple[Value, Value, Value] | None = None,
) -> None:
    """target[k][l] = source[l * line_step + k * depth_step] for `block` lines l; from `valid` on: anything.

    parts: so often, with these steps from each source to the next and from each target to the next.
    """
    b, lanes, convert = code.b, code.lanes, epilogue.arithmetic.loaded
    together = line_step.equals(1)

    def each() -> Iterator[tuple[Array, Array]]:
        if parts is None:
            yield source, target
            return
        for i in b.range(0, parts[0]):
            for x in b.range(0, valid * line_step, LINE // BYTES[source.dtype]):
                prefetch(source.at((i + AHEAD) * parts[1] + x))
            yield source.at(i * parts[1]), target.at(i * parts[2])

    with b.when(together):
        masks = [(j, b.first_lanes(b.minimum(valid, block) - j, lanes)) for j in range(0, block, lanes)]
        for origin, to in each():
            for k in b.range(0, depth):
                for j, mask in masks:  # a last vector that reaches into the next depth's lines is overwritten by these
                    vector = origin.vector(k * depth_step + j, lanes, mask)
                    to.put(k * block + j, convert(vector, source.dtype))
    with b.when_not(together):
        offsets = [b.minimum(min(line, block - 1), valid - 1) * line_step for line in range(ceil_to(block, lanes))]
        squares = b.select(depth_step.equals(1), depth - depth % lanes, b.lift(0))
        for origin, to in each():
            for k in b.range(0, squares, lanes):
                columns = []
                for j in range(0, block, lanes):
                    rows = [convert(origin.vector(k + x, lanes), source.dtype) for x in offsets[j : j + lanes]]
                    columns.append(b.transpose(rows))
                for u in range(lanes):
                    for j, square in enumerate(columns):
                        to.put((k + u) * block + j * lanes, square[u])
            for k in b.range(squares, depth):
                here = origin.at(k * depth_step)
                for line in range(block):
                    to[k * block + line] = convert(here[offsets[line]], source.dtype)


def prefetch(place: Array, nearness: int = 3) -> None:
    """A hint that it is read soon; nothing happens where there is no such memory. nearness: 3 asks for it in the
    nearest cache, 2 in the next one, 0 without keeping it longer than others."""
    b = place.builder
    numbers = [b.number(x, "i32") for x in (0, nearness, 1)]  # to be read, as data
    b.intrinsic("llvm.prefetch", "void", [place.pointer, *numbers], ["ptr"])


def ceil_to(x: int, multiple: int) -> int:
    return -(-x // multiple) * multiple
