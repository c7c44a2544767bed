"""Convolution of Winograd's F(4x4, 3x3) over arrays whose channels lie in blocks, from the transformed data on.

A unit of work is a band of tile groups and some of the filters:

    for each group of filters (`vectors` blocks):
        for each of the 36 places of a tile:
            for each tile group of the band:
                product of the group's tiles and the filters, over all channels    `tiles` x `vectors` accumulators
        for each tile of the band: A' M A, cut at the image's border, and the epilogue

The products of a band lie in scratch as [tile][place][filter], so that a tile's are together.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.isa import Isa
from mxc.compiler.targets.cpu.library.blocks import UNITS, ceil_div, least, most
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.library.winograd_data import READ, RESULTS, grid, tile_count

PLACES = READ * READ
BAND_BYTES = 256 << 10  # of a band's transformed data, if that leaves it enough tiles
BAND_TILES = 24, 60  # of a band: at least, at most, about


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    blocks: Number  # of channels
    filters: Number  # filter groups
    tiles: Number
    groups: Number  # of tiles
    band: Number  # tile groups of a band
    bands: Number
    chunk: Number  # filter groups of a unit
    chunks: Number

    @classmethod
    def of(cls, w: Window, params: dict[str, Any]) -> Cut:
        """For the sizes `w`, which are numbers of Python or of the printed program."""
        size, block, columns = (params[k] for k in ("tiles", "block", "columns"))
        tiles = tile_count(w)
        groups: Any = ceil_div(tiles, size)
        band: Any = BAND_BYTES // (PLACES * size * BYTES[params["dtype"]]) // most(1, w.channels)
        band = least(most(band, BAND_TILES[0] // size), BAND_TILES[1] // size)
        bands: Any = ceil_div(groups, band)
        band = ceil_div(groups, most(1, bands))
        filters: Any = ceil_div(w.filters, columns)
        chunks: Any = most(1, least(filters, ceil_div(UNITS, most(1, bands))))
        chunk: Any = most(1, filters // chunks)
        return cls(w.channels // block, filters, tiles, groups, band, bands, chunk, ceil_div(filters, chunk))


def units(kernel: CallKernel, isa: Isa) -> int:
    cut = Cut.of(Window.of(kernel.extents), dict(kernel.params))
    return int(cut.bands * cut.chunks)  # type: ignore[operator,arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    """A tile's results, and the products of a band."""
    params: dict[str, Any] = dict(kernel.params)
    band: Any = Cut.of(Window.of(kernel.extents), params).band
    return int(RESULTS * RESULTS * params["block"] + band * params["tiles"] * PLACES * params["columns"])


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    params: dict[str, Any] = dict(kernel.params)
    shapes = [(t, v) for t in range(1, params["tiles"] + 1) for v in range(1, params["columns"] // params["block"] + 1)]
    for t, v in shapes:
        with b.function(f"tile_{t}_{v}", TILE, internal=True) as values:
            _print_tile(b, params, dtype, t, v, values)
    with b.function("multiply", f"i64 tiles, i64 vectors, {TILE}", internal=True) as (tiles, vectors, *rest):
        for t, v in shapes:
            with b.when(tiles.equals(t) & vectors.equals(v)):
                b.call(f"tile_{t}_{v}", rest)
    where = "ptr args, ptr noalias products, ptr noalias results, i64 block, i64 vectors, i64 tile"
    with b.function("finish", where, True) as (args, products, results, *place):
        code = _Winograd(kernel, b, dtype, epilogue_of(args))
        code.finish(Array(b, products, dtype), Array(b, results, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        _Winograd(kernel, b, dtype, epilogue_of(args)).units(args, first, last, Array(b, scratch, dtype))


TILE = "i64 blocks, ptr data, ptr weights, ptr noalias products"


def _print_tile(b: Builder, params: dict[str, Any], dtype: str, tiles: int, vectors: int, values: list[Value]) -> None:
    """products[tile][filter] = sum over channels of data[channel][tile] * weights[channel][filter]."""
    blocks, data, weights, products = values
    lanes, columns = params["block"], params["columns"]
    step = PLACES * params["tiles"] * lanes
    grid = [(i, j) for i in range(tiles) for j in range(vectors)]
    source, weight, target = (Array(b, x, dtype) for x in (data, weights, products))
    sums = [b.zero(vector_type(TYPES[dtype], lanes)) for _ in grid]
    for k in b.range(0, blocks, carry=sums):
        here, row = source.at(k * step), weight.at(k * (lanes * columns))
        for channel in range(lanes):
            filters = [row.vector(channel * columns + j * lanes, lanes) for j in range(vectors)]
            for i in range(tiles):
                x = here.broadcast(i * lanes + channel, lanes)
                for j in range(vectors):
                    sums[i * vectors + j] = b.fma(x, filters[j], sums[i * vectors + j])
    for total, (i, j) in zip(sums, grid, strict=True):
        target.put(i * (PLACES * columns) + j * lanes, total)


class _Winograd:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, dtype: str, epilogue: Epilogue):
        self.b, self.dtype, self.epilogue = b, dtype, epilogue
        self.params: dict[str, Any] = dict(kernel.params)
        self.lanes, self.size, self.columns, self.flat = (
            self.params[k] for k in ("block", "tiles", "columns", "flat"))
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        self.data, self.weight = epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> Any:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return Cut.of(self.window, self.params)

    def units(self, args: Value, first: Value, last: Value, results: Array) -> None:
        b, w, cut, columns = self.b, self.window, self.cut, self.columns
        products = results.at(RESULTS * RESULTS * self.lanes)
        group_step = cut.blocks * (PLACES * self.size * self.lanes)
        filter_step = cut.blocks * (self.lanes * columns)
        for unit in b.range(first, last):
            band, chunk = unit // cut.chunks, unit % cut.chunks
            begin = band * cut.band
            groups = b.minimum(cut.band, cut.groups - begin)
            tiles = b.minimum(groups * self.size, cut.tiles - begin * self.size)
            source = self.data.at(begin * group_step)
            for f in b.range(chunk * cut.chunk, b.minimum((chunk + 1) * cut.chunk, cut.filters)):
                first_block = f * (columns // self.lanes)
                vectors = b.minimum(columns // self.lanes, w.filters // self.lanes - first_block)
                for place in b.range(0, PLACES):
                    weights = self.weight.at((place * cut.filters + f) * filter_step)
                    target = products.at(place * columns)
                    for g in b.range(0, groups):
                        here = source.at(g * group_step + place * (self.size * self.lanes))
                        there = target.at(g * (self.size * PLACES * columns))
                        count = b.minimum(self.size, tiles - g * self.size)
                        b.call("multiply", [count, vectors, cut.blocks, here.pointer, weights.pointer, there.pointer])
                for t in b.range(0, tiles):
                    made = products.at(t * (PLACES * columns))
                    tile = begin * self.size + t
                    b.call("finish", [args, made.pointer, results.pointer, first_block, vectors, tile])

    def finish(self, products: Array, results: Array, block: Value, vectors: Value, tile: Value) -> None:
        """The results of a tile, and the epilogue over those that exist, for `vectors` filter blocks."""
        b, w, lanes = self.b, self.window, self.lanes
        image, ty, tx = split(tile, grid(w))
        y, x = ty * RESULTS, tx * RESULTS
        rows, wide = b.minimum(RESULTS, w.out[1] - y), b.minimum(RESULTS, w.out[2] - x)
        for j in b.range(0, vectors):
            source = products.at(j * lanes)
            half = []
            for c in range(READ):
                column = [source.vector((r * READ + c) * self.columns, lanes) for r in range(READ)]
                half.append(output_side(b, column))
            for r in range(RESULTS):
                for c, value in enumerate(output_side(b, [half[c][r] for c in range(READ)])):
                    results.put((r * RESULTS + c) * lanes, value)
            for i in b.range(0, rows):
                line = (y + i) * w.out[2] + x
                for k in b.range(0, wide):
                    place = [line + k] if self.flat else [b.lift(0), y + i, x + k]
                    value = results.vector((i * RESULTS + k) * lanes, lanes)
                    self.epilogue.store([image, block + j, Lane(b.lift(0)), *place], value, self.dtype)


def output_side(b: Builder, m: Sequence[Value]) -> list[Value]:
    """A' m for a column m: `OUTPUT` of ops/winograd.py, with what its rows share computed once."""
    def times(x: Value, factor: float, y: Value) -> Value:
        return b.fma(x, b.number(factor, x.type), y)

    near, near_odd, far, far_odd = m[1] + m[2], m[1] - m[2], m[3] + m[4], m[3] - m[4]
    return [m[0] + near + far, times(far_odd, 2, near_odd), times(far, 4, near), times(far_odd, 8, near_odd) + m[5]]
