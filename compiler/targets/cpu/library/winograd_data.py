"""Tiles of arrays whose channels lie in blocks, transformed for Winograd's F(4x4, 3x3): B' d B.

A unit of work is a group of tiles and some of the channel blocks. A vector holds one pixel of a block; what a tile at a
border reads is collected in scratch first, with zeros around it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.isa import Isa
from mxc.compiler.targets.cpu.library.blocks import UNITS, ceil_div, least, most
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane

BLOCKS = 8  # channel blocks of a unit, at most
RESULTS, READ = 4, 6  # of a tile, along each axis


def grid(w: Window) -> list[Number]:
    """Images, and rows and columns of tiles."""
    return [w.batch, ceil_div(w.out[1], RESULTS), ceil_div(w.out[2], RESULTS)]


def tile_count(w: Window) -> Any:
    n, rows, columns = grid(w)
    return n * rows * columns  # type: ignore[operator]


def _cut(w: Window, params: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Tile groups; channel blocks of a unit; units of a group."""
    groups: Any = ceil_div(tile_count(w), params["tiles"])
    blocks: Any = w.channels // params["block"]
    chunks: Any = most(ceil_div(blocks, BLOCKS), least(blocks, ceil_div(UNITS, most(1, groups))))
    chunk: Any = most(1, blocks // most(1, chunks))
    return groups, chunk, ceil_div(blocks, chunk)


def units(kernel: CallKernel, isa: Isa) -> int:
    groups, _, chunks = _cut(Window.of(kernel.extents), dict(kernel.params))
    return int(groups * chunks)


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    """What a tile reads."""
    return READ * READ * int(dict(kernel.params)["block"])  # type: ignore[call-overload]


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    source = "ptr noalias patch, ptr data, i64 block, i64 y, i64 x"
    with b.function("collect", f"ptr args, {source}", True) as (args, patch, data, *place):
        _Data(kernel, b, dtype, epilogue_of(args)).collect(Array(b, patch, dtype), Array(b, data, dtype), *place)
    with b.function("transform", "ptr args, ptr data, i64 row, i64 column, i64 group, i64 block, i64 tile", True) as f:
        args, data, *place = f
        _Data(kernel, b, dtype, epilogue_of(args)).transform(Array(b, data, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        _Data(kernel, b, dtype, epilogue_of(args)).units(args, first, last, Array(b, scratch, dtype))


class _Data:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, dtype: str, epilogue: Epilogue):
        self.b, self.dtype, self.epilogue = b, dtype, epilogue
        self.params: dict[str, Any] = dict(kernel.params)
        self.lanes, self.tiles, self.flat = (self.params[k] for k in ("block", "tiles", "flat"))
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        self.strides = epilogue.extents[22:]

    def units(self, args: Value, first: Value, last: Value, patch: Array) -> None:
        b, w, (image_step, block_step, _, row, column) = self.b, self.window, self.strides
        _, chunk, chunks = _cut(w, self.params)
        sizes = grid(w)
        blocks = w.channels // self.lanes
        for unit in b.range(first, last):
            group, begin = unit // chunks, unit % chunks * chunk
            for t in b.range(0, self.tiles):
                image, ty, tx = split(group * self.tiles + t, sizes)
                exists = image < w.batch
                y = b.select(exists, ty * RESULTS - w.pad[1], b.lift(-READ))  # to fill a group: reads nothing
                x = tx * RESULTS - w.pad[2]
                image = b.select(exists, image, b.lift(0))
                inner = b.inside(y, w.data[1] - (READ - 1)) & b.inside(x, w.data[2] - (READ - 1))
                inner = inner & (b.lift(w.data[1]) >= READ) & (b.lift(w.data[2]) >= READ)
                for block in b.range(begin, b.minimum(begin + chunk, blocks)):
                    plane = self.epilogue.buffers[0].at(image * image_step + block * block_step)
                    with b.when(inner):
                        source = plane.at(y * row + x * column).pointer
                        b.call("transform", [args, source, row, column, group, block, t])
                    with b.when_not(inner):
                        b.call("collect", [args, patch.pointer, plane.pointer, block, y, x])
                        sides = b.lift(READ * self.lanes), b.lift(self.lanes)
                        b.call("transform", [args, patch.pointer, *sides, group, block, t])

    def collect(self, patch: Array, plane: Array, block: Value, y: Value, x: Value) -> None:
        """patch[i][j] = plane[y + i][x + j], or 0 where that lies outside."""
        b, w, (*_, row, column) = self.b, self.window, self.strides
        zero = b.zero(vector_type(TYPES[self.dtype], self.lanes))
        for i in b.range(0, READ):
            line, source = patch.at(i * (READ * self.lanes)), plane.at((y + i) * row)
            exists = b.inside(y + i, w.data[1])
            for column_number in range(READ):
                line.put(column_number * self.lanes, zero)
            with b.when(exists):
                begin, end = b.maximum(0, 0 - x), b.minimum(READ, w.data[2] - x)
                for j in b.range(begin, end):
                    line.put(j * self.lanes, source.vector((x + j) * column, self.lanes))

    def transform(self, data: Array, row: Value, column: Value, group: Value, block: Value, tile: Value) -> None:
        b, half = self.b, []
        done: dict[int, Value] = {}
        for j in range(READ):
            line = data.at(column * j)
            half.append(data_side(b, [line.vector(row * i, self.lanes) for i in range(READ)]))
        for i in range(READ):
            for j, value in enumerate(data_side(b, [half[k][i] for k in range(READ)])):
                place = b.lift(i * READ + j)
                axes = [place * self.tiles + tile] if self.flat else [place, tile]
                self.epilogue.store([group, block, Lane(b.lift(0)), *axes], value, self.dtype, uniform=done)


def data_side(b: Builder, d: Sequence[Value]) -> list[Value]:
    """B' d for a column d: `DATA` of ops/winograd.py, with what its rows share computed once."""
    def times(x: Value, factor: float, y: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), y)

    even, odd = times(d[2], -4, d[4]), times(d[1], -4, d[3])
    near, far = d[4] - d[2], d[3] - d[1]
    return [times(d[2], -5, times(d[0], 4, d[4])), even + odd, even - odd, times(far, 2, near), times(far, -2, near),
            times(d[3], -5, times(d[1], 4, d[5]))]
