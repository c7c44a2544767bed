"""Tiles of AMX: two tiles of rows times two of columns, whose sums are four tiles.

The tiles' registers are 0 to 3 for sums, 4 and 5 for rows, 6 and 7 for columns. What is multiplied and added in one
lane is a word: 32 bits that hold four numbers of 8 bits, or two of bfloat16.
"""
from __future__ import annotations

from dataclasses import dataclass

from mxc.compiler.targets.cpu.emit.builder import Array, Builder, Value
from mxc.compiler.targets.cpu.library.printing import Integer, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.tile import print_tiles, same_shape

ROWS = 16  # of a tile
WORD = 4  # bytes
LINE = 64  # bytes of a tile's row
AT_ONCE = 2  # tiles of rows, and tiles of columns, that are multiplied with each other
PRODUCTS = {"uint8": "tdpbusd", "int8": "tdpbssd", "bfloat16": "tdpbf16ps"}  # by the dtype of what rows hold
CONFIGURATION, COLUMNS_AT, ROWS_AT = 64, 16, 48  # bytes of the tiles' configuration; where its columns and rows are


@dataclass(frozen=True)
class TilesCall(Parameters):
    """One or two tiles of rows times those of the columns of a panel, in `steps` steps of the depth.

    first, second: where the tiles' first rows begin, `apart` bytes from row to row. offsets: a table of how many bytes
    further on each step reads. sums: where they are kept, those of both tiles behind each other, as wide as the panel.
    more: 1 if the sums begin with what is kept, else 0.
    """

    first: Pointer
    second: Pointer
    apart: Integer
    offsets: Pointer
    steps: Integer
    panel: Pointer
    sums: Pointer
    more: Integer


def print_multiply(p: Printing, depth: int, columns: int) -> None:
    """The functions that multiply tiles, of which kernels call `multiply`: with the values of `TilesCall`, the number
    of tiles of rows, and that of tiles of columns. depth: words of a step. columns: of the panel."""

    def tile(rows: int, vectors: int, values: list[Value]) -> None:
        _print_tiles(p, (rows, vectors), (depth, columns), TilesCall(*values))

    shapes = [(rows, vectors) for rows in range(1, AT_ONCE + 1) for vectors in range(1, AT_ONCE + 1)]
    print_tiles(p.b, shapes, TilesCall.text(), tile, f"{TilesCall.text()}, i64 rows, i64 vectors", same_shape)


def configure(b: Builder, memory: Value, tall: Value, depth: int) -> None:
    """Sets the tiles up: their rows, of which those of sums and rows are `tall`, and the bytes of these. memory: of
    CONFIGURATION bytes."""
    text = Array(b, memory, "int8")
    for i in range(CONFIGURATION):
        text[i] = b.number(int(i == 0), "i8")  # the first byte is the number of the form of what follows
    shapes = [*[(tall, LINE)] * AT_ONCE ** 2, *[(tall, depth * WORD)] * AT_ONCE, *[(b.lift(depth), LINE)] * AT_ONCE]
    for i, (rows, columns) in enumerate(shapes):
        text[COLUMNS_AT + 2 * i], text[ROWS_AT + i] = b.number(columns, "i8"), b.convert("trunc", rows, "i8")
    _amx(b, "ldtilecfg", memory)


def release(b: Builder) -> None:
    """Ends the use of tiles."""
    _amx(b, "tilerelease")


def _amx(b: Builder, name: str, *operands: int | Value) -> None:
    """An instruction of AMX; numbers are registers."""
    given = [b.number(each, "i8") if isinstance(each, int) else each for each in operands]
    b.intrinsic(f"llvm.x86.{name}", "void", given, [])


def _print_tiles(p: Printing, shape: tuple[int, int], step: tuple[int, int], given: TilesCall) -> None:
    """sums[row][column] = (more ? sums : 0) + sum over the steps of their words of row * panel[column]."""
    b, product, (rows, vectors), (depth, columns) = p.b, PRODUCTS[p.kernel.buffers[0]], shape, step
    grid = [(i, j) for i in range(rows) for j in range(vectors)]
    starts = [Array(b, each, "int8") for each in (given.first, given.second)]
    panel, sums, offsets = (Array(b, each, kind) for each, kind in (
        (given.panel, "int32"), (given.sums, "int32"), (given.offsets, "int64")))
    pitch = b.lift(columns * WORD)
    places = {(i, j): sums.at(i * ROWS * columns + j * ROWS).pointer for i, j in grid}
    with b.when(given.more.equals(0)):
        for i, j in grid:
            _amx(b, "tilezero", AT_ONCE * i + j)
    with b.when(given.more.differs(0)):
        for i, j in grid:
            _amx(b, "tileloadd64", AT_ONCE * i + j, places[i, j], pitch)
    for k in b.range(0, given.steps):
        row, offset = panel.at(k * (depth * columns)), offsets[k]
        for j in range(vectors):
            _amx(b, "tileloadd64", 6 + j, row.at(j * ROWS).pointer, pitch)
        for i in range(rows):
            _amx(b, "tileloadd64", 4 + i, starts[i].at(offset).pointer, given.apart)
            for j in range(vectors):
                _amx(b, product, AT_ONCE * i + j, 4 + i, 6 + j)
    for i, j in grid:
        _amx(b, "tilestored64", AT_ONCE * i + j, places[i, j], pitch)
