"""The two sides of Winograd's F(4x4, 3x3) in registers: what becomes of a tile's data, and of its products.

A vector holds one pixel of a block of channels.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mxc.compiler.kernel.geometry import Window
from mxc.compiler.ops import winograd
from mxc.compiler.targets.cpu.emit.builder import TYPES, Array, Builder, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import prefetch
from mxc.compiler.targets.cpu.library.cutting import N, ceil_div
from mxc.compiler.targets.cpu.library.printing import Function, Integer, NoAlias, Parameters, Pointer, Printing

RESULTS, READ, PLACES = winograd.RESULTS, winograd.READ, winograd.PLACES


def grid(w: Window[N]) -> list[N]:
    """Images, and rows and columns of tiles."""
    return [w.batch, ceil_div(w.out[1], RESULTS), ceil_div(w.out[2], RESULTS)]


def tile_count(w: Window[N]) -> N:
    n, rows, columns = grid(w)
    return n * rows * columns


@dataclass(frozen=True)
class CollectCall(Parameters):
    """patch[i][j] = data[y + i][x + j], or 0 where that lies outside. row, column: elements between those of data."""

    args: Pointer
    patch: NoAlias
    data: Pointer
    row: Integer
    column: Integer
    y: Integer
    x: Integer


def _collect(p: Printing, given: CollectCall, lanes: int) -> None:
    b, (y, x), w = p.b, (given.y, given.x), Function(p, given.args).g.window
    patch, plane = p.array(given.patch), p.array(given.data)
    zero = b.zero(vector_type(TYPES[patch.dtype], lanes))
    for i in b.range(0, READ):
        line, source = patch.at(i * (READ * lanes)), plane.at((y + i) * given.row)
        for j in range(READ):
            line.put(j * lanes, zero)
        with b.when(b.inside(y + i, w.data[1])):
            begin, end = b.maximum(0, 0 - x), b.minimum(READ, w.data[2] - x)
            for k in b.range(begin, end):
                line.put(k * lanes, source.vector((x + k) * given.column, lanes))


def print_sides(p: Printing, lanes: int) -> None:
    """The functions that `TileSource.put` calls."""
    with p.b.function("collect", CollectCall.text(), True) as values:
        _collect(p, CollectCall(*values), lanes)
    with p.b.function("transform", "ptr data, i64 row, i64 column, ptr noalias target, i64 pitch", True) as f:
        data, row, column, target, pitch = f
        transform(p.array(data), row, column, p.array(target), pitch, lanes)


@dataclass(frozen=True)
class TileSource:
    """Where tiles' data come from. args: the kernel's. steps: elements between images, blocks, slices, rows, pixels.
    patch: memory for the data of one tile."""

    args: Value
    w: Window[Value]
    data: Array
    steps: Sequence[Value]
    patch: Array
    lanes: int

    def put(self, place: tuple[Value, Value, Value], block: Value, target: Array, pitch: Value, ahead: bool) -> None:
        """Puts the transformed data of the tile at `place` (image, row and column of its first result), of a channel
        block, to `target`; pitch: elements from one of its places to the next. ahead: the next block follows."""
        b, w, (image_step, block_step, _, row, column) = self.data.builder, self.w, self.steps
        image, y, x = place[0], place[1] - w.pad[1], place[2] - w.pad[2]
        plane = self.data.at(image * image_step + block * block_step)
        inner = b.inside(y, w.data[1] - (READ - 1)) & b.inside(x, w.data[2] - (READ - 1))
        inner = inner & (w.data[1] >= READ) & (w.data[2] >= READ)
        with b.when(inner):
            following = plane.at(y * row + x * column + block_step)
            for i, c in itertools.product(range(READ if ahead else 0), (2, 4)):
                prefetch(following.at(row * i + column * c))
            b.call("transform", [plane.at(y * row + x * column).pointer, row, column, target.pointer, pitch])
        with b.when_not(inner):
            b.call("collect", CollectCall(self.args, self.patch.pointer, plane.pointer, row, column, y, x).values())
            sides = b.lift(READ * self.lanes), b.lift(self.lanes)
            b.call("transform", [self.patch.pointer, *sides, target.pointer, pitch])


def transform(data: Array, row: Value, column: Value, target: Array, pitch: Value, lanes: int) -> None:
    """target[place] = B' d B of the tile at `data`; pitch: elements from place to place."""
    b, half = data.builder, []
    for j in range(READ):
        line = data.at(column * j)
        half.append(data_side(b, [line.vector(row * i, lanes) for i in range(READ)]))
    for i in range(READ):
        for j, value in enumerate(data_side(b, [half[k][i] for k in range(READ)])):
            target.put(pitch * (i * READ + j), value)


def results(products: Array, columns: int, lanes: int, scaled: bool = False) -> list[list[Value]]:
    """A' M A of the products [place][columns], the 4 x 4 results of a block of filters. scaled: with weights by
    `scaled_weight_rows`."""
    b, half, side = products.builder, [], _scaled_output_side if scaled else output_side
    for c in range(READ):
        column = [products.vector((r * READ + c) * columns, lanes) for r in range(READ)]
        half.append(side(b, column))
    return [side(b, [half[c][r] for c in range(READ)]) for r in range(RESULTS)]


def both_sides(b: Builder, side: Callable[[Builder, Sequence[Value]], list[Value]],
               columns: Sequence[Sequence[Value]]) -> list[Value]:
    """S X S' row by row, for the matrix X of these columns and the `side` that multiplies a column by S."""
    half = [side(b, column) for column in columns]
    return [value for row in zip(*half, strict=True) for value in side(b, row)]


def data_side(b: Builder, d: Sequence[Value]) -> list[Value]:
    """B' d for a column d: `DATA` of ops/winograd.py, with what its rows share computed once."""
    def times(x: Value, factor: float, y: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), y)

    even, odd = times(d[2], -4, d[4]), times(d[1], -4, d[3])
    near, far = d[4] - d[2], d[3] - d[1]
    return [times(d[2], -5, times(d[0], 4, d[4])), even + odd, even - odd, times(far, 2, near), times(far, -2, near),
            times(d[3], -5, times(d[1], 4, d[5]))]


def spread_side(b: Builder, y: Sequence[Value]) -> list[Value]:
    """A y for a column y of 4 elements: the gradient of `output_side`."""
    def times(x: Value, factor: float, z: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), z)

    even, odd, far, far_odd = y[0] + y[2], y[1] + y[3], times(y[2], 4, y[0]), times(y[3], 4, y[1])
    return [y[0], even + odd, even - odd, times(far_odd, 2, far), times(far_odd, -2, far), y[3]]


def kernel_side(b: Builder, m: Sequence[Value]) -> list[Value]:
    """24 G' m for a column m: the gradient of a kernel's transformation."""
    def times(x: Value, factor: float, z: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), z)

    near, near_odd, far, far_odd = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
    return [times(m[0], 6, times(near, -4, far)), times(near_odd, -4, far_odd + far_odd),
            times(m[5], 24, (far - near) * b.number(4, far.type))]


def output_side(b: Builder, m: Sequence[Value]) -> list[Value]:
    """A' m for a column m: `OUTPUT` of ops/winograd.py, with what its rows share computed once."""
    def times(x: Value, factor: float, y: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), y)

    near, near_odd, far, far_odd = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
    return [m[0] + near + far, times(far_odd, 2, near_odd), times(far, 4, near), times(far_odd, 8, near_odd) + m[5]]


def scaled_weight_rows(b: Builder, g: Sequence[Sequence[Value]]) -> Iterator[list[Value]]:
    """The rows of G g for the rows of g, multiplied by 4, -6, -6, 24, 24 and 1: that saves half of the arithmetic.

    Each is printed when it is asked for, so that few are in registers at once.
    """
    def added(x: Sequence[Value], y: Sequence[Value], factor: float) -> list[Value]:
        return [b.fma(q, b.number(factor, q.type), p) for p, q in zip(x, y, strict=True)]

    yield list(g[0])
    ends = [x + y for x, y in zip(g[0], g[2], strict=True)]
    yield [x + y for x, y in zip(ends, g[1], strict=True)]
    yield [x - y for x, y in zip(ends, g[1], strict=True)]
    far = added(g[0], g[2], 4)
    yield added(far, g[1], 2)
    yield added(far, g[1], -2)
    yield list(g[2])


def _scaled_output_side(b: Builder, m: Sequence[Value]) -> list[Value]:
    """`output_side` of products with weights by `scaled_weight_rows`."""
    def times(x: Value, factor: float, y: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), y)

    sixth = b.number(-1 / 6, m[0].type)
    near, near_odd, far, far_odd = (m[1] + m[2]) * sixth, (m[1] - m[2]) * sixth, m[3] + m[4], m[3] - m[4]
    return [times(m[0], 1 / 4, times(far, 1 / 24, near)), times(far_odd, 1 / 12, near_odd), times(far, 1 / 6, near),
            times(far_odd, 1 / 3, near_odd) + m[5]]
