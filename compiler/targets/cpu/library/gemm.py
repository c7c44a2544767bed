"""C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], as `calls.gemm` defines it."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import Array, Number, Value
from mxc.compiler.targets.cpu.library.blocks import Product, Size, TileCode, pack_lines
from mxc.compiler.targets.cpu.library.epilogue import Axis, Epilogue, Lane


def size(extents: Sequence[Number]) -> Size:
    batch, m, n, k = extents[:4]
    return Size(batch, m, n, k, 1)


class Gemm(Product):
    """An operand that comes packed is read where it is, unless its storage has to be converted."""

    def __init__(self, kernel: CallKernel, code: TileCode, epilogue: Epilogue):
        params = dict(kernel.params)
        self.code, self.epilogue = code, epilogue
        self.size = size(epilogue.extents)
        self.a, self.b = epilogue.buffers[:2]
        self.a_batch, self.a_row, self.a_depth, self.b_batch, self.b_depth, self.b_column = epilogue.extents[4:]
        self.packed_a, self.packed_b = bool(params["packed_a"]), bool(params["packed_b"])
        same = self.a.dtype == code.dtype
        self.direct_rows, self.direct_panels = self.packed_a and same, self.packed_b and same

    def row_tile(self, batch: Value, tile: Value, depth: Value) -> Array:
        mr = self.code.rows
        return self.a.at(batch * self.a_batch + (tile * self.size.depth + depth) * mr)

    def panel(self, batch: Value, panel: Value, depth: Value) -> Array:
        nr = self.code.columns
        return self.b.at(batch * self.b_batch + (panel * self.size.depth + depth) * nr)

    def pack_tile(self, target: Array, batch: Value, row: Value, start: Value, depth: Value) -> None:
        b, mr = self.code.b, self.code.rows
        if self.packed_a:
            source, line, step = self.row_tile(batch, row // mr, start), b.lift(1), b.lift(mr)
        else:
            source = self.a.at(batch * self.a_batch + row * self.a_row + start * self.a_depth)
            line, step = self.a_row, self.a_depth
        valid = b.lift(mr) if self.packed_a else self.size.rows - row
        pack_lines(self.code, self.epilogue, target, source, mr, valid, line, step, depth)

    def pack_panel(self, target: Array, batch: Value, column: Value, start: Value, depth: Value) -> None:
        b, nr = self.code.b, self.code.columns
        if self.packed_b:
            source, line, step = self.panel(batch, column // nr, start), b.lift(1), b.lift(nr)
        else:
            source = self.b.at(batch * self.b_batch + start * self.b_depth + column * self.b_column)
            line, step = self.b_column, self.b_depth
        valid = b.lift(nr) if self.packed_b else self.size.columns - column
        pack_lines(self.code, self.epilogue, target, source, nr, valid, line, step, depth)

    def axes(self, batch: Value, row: Value, column: Value, lanes: int) -> Sequence[Axis]:
        return batch, row, Lane(column)
