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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Value
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most
from mxc.compiler.targets.cpu.library.epilogue import Epilogue
from mxc.compiler.targets.cpu.library.printing import KERNEL, Printing
from mxc.compiler.targets.cpu.library.tile import add_products, keep_sums, print_tiles, zeros

DEPTH_BYTES = 1536  # a block has at most so many bytes of each panel column: a panel then fits into the nearest cache
PANEL_BYTES = 192 << 10  # all panels of a unit have at most so many bytes
CHUNK_TILES = 24  # a unit has at most so many row tiles
PANELS = 16  # a unit has at most so many column panels
LINE = 64  # bytes of a cache line, which come from memory together
AHEAD = 4  # parts of a source are asked for so many parts before they are read


@dataclass(frozen=True)
class Size(Generic[N]):
    """The extents of a product; depth is cut at multiples of `granule` only."""

    batches: N
    rows: N
    columns: N
    depth: N
    granule: N


@dataclass(frozen=True)
class Blocking(Generic[N]):
    """How a product is cut."""

    tiles: N
    panels: N
    block: N  # depth of a block
    blocks: N
    group: N  # panels of a unit
    groups: N
    chunk: N  # row tiles of a unit
    chunks: N
    batches: N

    @classmethod
    def of(cls, size: Size[N], tile: tuple[int, int], dtype: str) -> Blocking[N]:
        mr, nr = tile
        tiles: N = ceil_div(size.rows, mr)
        panels: N = ceil_div(size.columns, nr)
        grains: N = ceil_div(size.depth, size.granule)
        most_grains: N = most(1, DEPTH_BYTES // BYTES[dtype] // size.granule)
        blocks: N = most(1, ceil_div(grains, most_grains))
        block: N = ceil_div(grains, blocks) * size.granule
        group: N = least(PANELS, most(1, PANEL_BYTES // BYTES[dtype] // nr // most(1, block)))
        groups: N = ceil_div(panels, group)
        # Each group packs all rows again, each chunk all columns: the operand with fewer of them is packed more often.
        wanted: N = ceil_div(UNITS, most(1, size.batches))
        few: N = most(1, least(wanted, 2 * size.rows // most(1, size.columns)))
        chunks: N = most(ceil_div(tiles, CHUNK_TILES), least(tiles, few))
        groups = most(groups, least(panels, ceil_div(wanted, most(1, chunks))))
        group, groups = evenly(panels, most(1, groups))
        chunks = most(chunks, least(tiles, ceil_div(UNITS, most(1, size.batches * groups))))
        chunk, chunks = evenly(tiles, most(1, chunks))
        return cls(tiles, panels, block, blocks, group, groups, chunk, chunks, size.batches)

    def units(self: Blocking[N]) -> N:
        return self.batches * self.groups * self.chunks

    def layout(self: Blocking[N], tile: tuple[int, int], lanes: int) -> tuple[N, N, N]:
        """In elements of the scratch: where the packed rows begin, where the tiles begin, and its size.

        Each row tile has a vector more behind it, because packing writes whole vectors.
        """
        mr, nr = tile
        rows = self.group * self.block * nr
        tiles: N = ceil_div(rows + self.chunk * (self.block * mr + lanes), 16) * 16
        one_block: N = least(self.blocks - 1, 1)  # 0 or 1: a single block needs a single tile
        return rows, tiles, tiles + most(1, one_block * self.group * self.chunk) * mr * nr


class Product:
    """Where a product's elements are. The subclass sets `size`, in numbers of the printed program, and `epilogue`.

    direct_rows: the rows come packed, and are read where they lie.
    """

    size: Size[Value]
    code: TileCode
    epilogue: Epilogue
    direct_rows = False

    def part(self, batch: Value, start: Value, depth: Value) -> tuple[Value, Value]:
        """Start and length of a block of the depth in this batch, whose granules may be smaller than `size` says."""
        return start, depth

    def at_once(self, depth: Value) -> Value:
        """How much of a block's depth is packed for all row tiles before the next part of it. It is all of the depth
        where each row lies together, and less where different rows lie closer together than the depth of one."""
        return depth

    def row_tile(self, batch: Value, tile: Value, depth: Value) -> Array:
        """Where a row tile that comes packed begins, from `depth` on (`direct_rows`)."""
        raise AssertionError("rows are packed")

    def pack_tile(self, target: Array, batch: Value, row: Value, start: Value, depth: Value) -> None:
        """Packs rows row <= r < row + MR, start <= k < start + depth, as [depth][MR]; past the end it puts anything."""
        raise AssertionError("rows come packed")

    def pack_panel(self, target: Array, batch: Value, column: Value, start: Value, depth: Value) -> None:
        """Packs columns column <= c < column + NR as [depth][NR]; past the end it puts anything."""
        raise AssertionError("panels come packed")

    def finish(self, tile: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value) -> None:
        """The epilogue over a finished tile."""
        raise AssertionError("every product has an epilogue")


class TileCode:
    """The register-tile functions of one module: `multiply(depth, a, b, c, add, rows, columns)`."""

    def __init__(self, printing: Printing):
        isa, self.printing, self.b, self.dtype = printing.isa, printing, printing.b, printing.dtype
        self.lanes, self.array = isa.lanes(self.dtype), printing.array
        self.rows, self.columns = isa.tile(self.dtype)
        self.vectors = isa.vectors
        counts = sorted({1, 2, 4, self.rows})
        below = dict(zip(counts, [0, *counts], strict=False))

        def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
            *_, rows_here, columns_here = values

            def fits(rows: int, vectors: int) -> Value:
                found = (rows_here > below[rows]) & (columns_here > (vectors - 1) * self.lanes)
                if rows < self.rows:
                    found = found & (rows_here <= rows)
                if vectors < self.vectors:
                    found = found & (columns_here <= vectors * self.lanes)
                return found

            return fits

        shapes = [(rows, vectors) for rows in counts for vectors in range(1, self.vectors + 1)]
        print_tiles(self.b, shapes, "i64 depth, ptr noalias a, ptr noalias b, ptr noalias c, i64 add", self._tile,
                    "i64 depth, ptr a, ptr b, ptr c, i64 add, i64 rows, i64 columns", fits_of, ("tile", "multiply"))

    def _tile(self, rows: int, vectors: int, values: list[Value]) -> None:
        """c[rows][vectors] = (add ? c : 0) + sum over depth of a[k][row] * b[k][vector]."""
        b, lanes, (depth, pa, pb, pc, add) = self.b, self.lanes, values
        a, panel, c = (self.array(p) for p in (pa, pb, pc))
        sums = zeros(b, self.dtype, lanes, rows * vectors)
        for k in b.range(0, depth, carry=sums):
            row, line = a.at(k * self.rows), panel.at(k * self.columns)
            add_products(b, lanes, sums, [(row, i) for i in range(rows)], line)
        keep_sums(sums, [(c, i * self.columns + j * lanes) for i in range(rows) for j in range(vectors)], add)

    def multiply(self, depth: Value, a: Array, panel: Array, c: Array, add: Value, rows: Value, columns: Value) -> None:
        self.b.call("multiply", [depth, a.pointer, panel.pointer, c.pointer, add, rows, columns])


def print_kernel(code: TileCode, product_of: Callable[[Value], Product]) -> None:
    """The kernel's function and those that it calls; `product_of` reads a function's `args`.

    Packing and the epilogue are functions of their own: LLVM's code generation takes far longer for one large nest.
    """
    b = code.b
    where = "ptr args, ptr noalias target, i64 batch, i64 line, i64 start, i64 depth"
    with b.function("pack_panel", where, internal=True) as (args, target, *place):
        product_of(args).pack_panel(code.array(target), *place)
    with b.function("pack_tile", where, internal=True) as (args, target, *place):
        product = product_of(args)
        if not product.direct_rows:
            product.pack_tile(code.array(target), *place)
    where = "ptr args, ptr noalias tile, i64 batch, i64 row, i64 rows, i64 column, i64 columns"
    with b.function("finish", where, internal=True) as (args, tile, *place):
        product_of(args).finish(code.array(tile), *place)
    with b.function(code.printing.symbol, KERNEL) as (args, first, last, scratch):
        _Units(code, product_of(args), args, scratch).run(first, last)


class _Units:
    """The kernel's function itself."""

    def __init__(self, code: TileCode, product: Product, args: Value, scratch: Value):
        self.code, self.product, self.args, self.b = code, product, args, code.b
        tile = code.rows, code.columns
        self.cut = Blocking.of(product.size, tile, code.dtype)
        rows_at, tiles_at, _ = self.cut.layout(tile, code.lanes)
        self.panels = code.array(scratch)
        self.row_tiles, self.tiles = self.panels.at(rows_at), self.panels.at(tiles_at)
        self.pitch = self.cut.block * code.rows + code.lanes
        self.keep = self.b.select(self.cut.blocks > 1, self.b.lift(1), self.b.lift(0))

    def run(self, first: Value, last: Value) -> None:
        b, cut, nr = self.b, self.cut, self.code.columns
        for unit in b.range(first, last):
            group = unit % cut.groups
            chunk = unit // cut.groups % cut.chunks
            batch = unit // (cut.groups * cut.chunks)
            panel0, tile0 = group * cut.group, chunk * cut.chunk
            panels = b.minimum(cut.group, cut.panels - panel0)
            tiles = b.minimum(cut.chunk, cut.tiles - tile0)
            for block in b.range(0, cut.blocks):
                start = block * cut.block
                whole = b.minimum(cut.block, self.product.size.depth - start)
                begin, depth = self.product.part(batch, start, whole)
                for p in b.range(0, panels):
                    target = self.panels.at(p * (cut.block * nr)).pointer
                    b.call("pack_panel", [self.args, target, batch, (panel0 + p) * nr, begin, depth])
                if not self.product.direct_rows:
                    self._pack_rows(batch, tile0, tiles, start, whole, begin)
                done = block.equals(cut.blocks - 1)
                for p in b.range(0, panels):
                    self._multiply(p, panel0, batch, (tile0, tiles), (begin, depth), block, done)

    def _pack_rows(
        self, batch: Value, tile0: Value, tiles: Value, start: Value, whole: Value, begin: Value,
    ) -> None:
        """Packs `tiles` row tiles from `tile0` on, of the block of the depth that begins at `start`, and at `begin` in
        this batch."""
        b, mr = self.b, self.code.rows
        at_once = self.product.at_once(whole)
        for k in b.range(0, whole, at_once):
            first, count = self.product.part(batch, start + k, b.minimum(at_once, whole - k))
            for t in b.range(0, tiles):
                target = self.row_tiles.at(t * self.pitch + (first - begin) * mr).pointer
                b.call("pack_tile", [self.args, target, batch, (tile0 + t) * mr, first, count])

    def _multiply(
        self, p: Value, panel0: Value, batch: Value, tiles: tuple[Value, Value], part: tuple[Value, Value],
        block: Value, done: Value,
    ) -> None:
        """Multiplies panel number p of a unit by its row tiles (the first one, and how many) in a part of the depth
        (its begin, and its length), which is block number `block`. done: whether that is the last block."""
        b, cut, mr, nr = self.b, self.cut, self.code.rows, self.code.columns
        (tile0, tile_count), (begin, depth), size = tiles, part, self.product.size
        column = (panel0 + p) * nr
        columns = b.minimum(nr, size.columns - column)
        panel = self.panels.at(p * (cut.block * nr))
        for t in b.range(0, tile_count):
            row = (tile0 + t) * mr
            rows = b.minimum(mr, size.rows - row)
            if self.product.direct_rows:
                row_tile = self.product.row_tile(batch, tile0 + t, begin)
            else:
                row_tile = self.row_tiles.at(t * self.pitch)
            here = self.tiles.at((p * cut.chunk + t) * self.keep * (mr * nr))
            self.code.multiply(depth, row_tile, panel, here, block, rows, columns)
            with b.when(done):
                b.call("finish", [self.args, here.pointer, batch, row, rows, column, columns])


@dataclass(frozen=True)
class Lines:
    """What `pack_lines` reads: `valid` lines that begin `step` elements apart, `depth` elements of each, which are
    `depth_step` apart."""

    source: Array
    valid: Value
    step: Value
    depth_step: Value
    depth: Value


def pack_lines(
    epilogue: Epilogue, lanes: int, target: Array, lines: Lines, block: int,
    parts: tuple[Value, Value, Value] | None = None,
) -> None:
    """target[k][l] = source[l * step + k * depth_step] for `block` lines l; lines from `valid` on get anything.

    parts: how often this is done, and the steps from each source and each target to the next one; None: once.
    """
    b, convert, source, valid = epilogue.b, epilogue.arithmetic.loaded, lines.source, lines.valid
    together = lines.step.equals(1)

    def each() -> Iterator[tuple[Array, Array]]:
        if parts is None:
            yield source, target
            return
        for i in b.range(0, parts[0]):
            for x in b.range(0, valid * lines.step, LINE // BYTES[source.dtype]):
                prefetch(source.at((i + AHEAD) * parts[1] + x))
            yield source.at(i * parts[1]), target.at(i * parts[2])

    with b.when(together):
        masks = [(j, b.first_lanes(b.minimum(valid, block) - j, lanes)) for j in range(0, block, lanes)]
        for origin, to in each():
            for k in b.range(0, lines.depth):
                for j, mask in masks:  # a last vector that reaches into the next depth's lines is overwritten by these
                    vector = origin.vector(k * lines.depth_step + j, lanes, mask)
                    to.put(k * block + j, convert(vector, source.dtype))
    with b.when_not(together):
        offsets = [b.minimum(min(line, block - 1), valid - 1) * lines.step for line in range(ceil_to(block, lanes))]
        squares = b.select(lines.depth_step.equals(1), lines.depth - lines.depth % lanes, b.lift(0))
        for origin, to in each():
            for k in b.range(0, squares, lanes):
                columns = []
                for j in range(0, block, lanes):
                    rows = [convert(origin.vector(k + x, lanes), source.dtype) for x in offsets[j : j + lanes]]
                    columns.append(b.transpose(rows))
                for u in range(lanes):
                    for j, square in enumerate(columns):
                        to.put((k + u) * block + j * lanes, square[u])
            for k in b.range(squares, lines.depth):
                here = origin.at(k * lines.depth_step)
                for line in range(block):
                    to[k * block + line] = convert(here[offsets[line]], source.dtype)


def prefetch(place: Array, nearness: int = 3, written: bool = False) -> None:
    """A hint that the memory at `place` is read soon, or written; where there is no memory, nothing happens. nearness:
    3 asks for it in the nearest cache, 2 in the next one, 0 without keeping it longer than others."""
    b = place.builder
    numbers = [b.number(x, "i32") for x in (int(written), nearness, 1)]  # 1: as data
    b.intrinsic("llvm.prefetch", "void", [place.pointer, *numbers], ["ptr"])


def ceil_to(x: int, multiple: int) -> int:
    return -(-x // multiple) * multiple
