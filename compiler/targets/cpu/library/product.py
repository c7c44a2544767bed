"""The word `product_` of routines: rows times a packed matrix, added to what is there, as a function of a module.

The function takes a block of the depth at a time, so that a panel of it and the rows stay in the nearest cache. Each
panel is then used for all rows, with one tile of them in registers at a time.
"""
from __future__ import annotations

from collections.abc import Iterable

from mxc.compiler.kernel.ir import computing_dtype
from mxc.compiler.kernel.routines.words import PANEL
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Builder
from mxc.compiler.targets.cpu.library.arithmetic import Arithmetic
from mxc.compiler.targets.cpu.library.cutting import Tiles, ceil_div
from mxc.compiler.targets.cpu.library.tile import STEP, Panel, chained
from mxc.compiler.targets.cpu.machine.isa import Isa

BLOCK_BYTES = 1024  # a block has at most so many bytes of each row, and of each column of a panel


def product_symbol(given: str, stored: str) -> str:
    """The function's name for rows of `given` and a matrix of `stored`, which have one computing dtype."""
    return f"mxc_product_{given}_{stored}"


def product_functions(isa: Isa, given: str, stored: str) -> str:
    """LLVM IR of `void product(ptr to, ptr left, ptr packed, i64 rows, i64 depth, i64 columns)`."""
    b, dtype = Builder("nounwind noinline"), computing_dtype(stored)
    lanes, name = isa.lanes(dtype), product_symbol(given, stored)
    vectors = PANEL // lanes
    most = max(1, min(12, (isa.registers - vectors - 1) // vectors))
    for rows in range(1, most + 1):
        _print_tile(b, isa, given, stored, rows)
    with b.function(name, "ptr to, ptr left, ptr packed, i64 rows, i64 depth, i64 columns", True) as f:
        to, left, packed = Array(b, f[0], dtype), Array(b, f[1], given), Array(b, f[2], stored)
        count, depth, columns = f[3:]
        blocks = ceil_div(depth, BLOCK_BYTES // BYTES[dtype])
        block = ceil_div(depth, b.maximum(blocks, 1))
        tiles = Tiles.of(count, most)
        for start in b.range(0, depth, block):
            here = b.minimum(block, depth - start)
            for column in b.range(0, columns, PANEL):
                panel = packed.at(column * depth + start * PANEL)
                for tile in b.range(0, tiles.count):
                    row, height = tiles.start(tile), tiles.rows(tile)
                    rest = [left.at(row * depth + start).pointer, depth, panel.pointer,
                            to.at(row * columns + column).pointer, columns, here, columns - column]
                    for many in range(1, most + 1):
                        with b.when(height.equals(many)):
                            b.call(f"{name}_{many}", rest)
    return b.module()


def with_products(text: str, isa: Isa, products: Iterable[tuple[str, str]]) -> str:
    """A module's LLVM IR with the functions for products of these dtypes, which it calls, behind it."""
    lines = text.splitlines()
    for i, stored in enumerate(sorted(products)):
        more = product_functions(isa, *stored).replace("#0", f"#{i + 1}").splitlines()
        lines += [line for line in more if not (line.startswith("declare") and line in lines)]
    return "\n".join([*lines, ""])


def _print_tile(b: Builder, isa: Isa, given: str, stored: str, rows: int) -> None:
    """to[row][column] += sum over depth of left[row][k] * panel[k][column], for the first `valid` of PANEL columns."""
    dtype = computing_dtype(stored)
    lanes = isa.lanes(dtype)
    vectors = PANEL // lanes
    grid = [(i, j) for i in range(rows) for j in range(vectors)]
    where = "ptr left, i64 pitch, ptr panel, ptr to, i64 columns, i64 depth, i64 valid"
    with b.function(f"{product_symbol(given, stored)}_{rows}", where, internal=True) as f:
        left, panel, to = Array(b, f[0], given), Array(b, f[2], stored), Array(b, f[3], dtype)
        pitch, columns, depth, valid = f[1], f[4], f[5], f[6]
        lines = [left.at(i * pitch) for i in range(rows)]
        whole = depth - depth % STEP
        sums = chained(Arithmetic(b, isa.narrow), lanes, lines, 1, Panel(panel, PANEL, vectors), depth, whole)
        places = [i * columns + j * lanes for i, j in grid]
        with b.when(valid >= PANEL):
            for total, place in zip(sums, places, strict=True):
                to.put(place, total + to.vector(place, lanes))
        with b.when(valid < PANEL):
            for n, (place, (_, j)) in enumerate(zip(places, grid, strict=True)):
                mask = b.first_lanes(valid - j * lanes, lanes)
                to.put(place, sums[n] + to.vector(place, lanes, mask), mask)
