"""Convolution of Winograd's F(4x4, 3x3) over arrays whose channels lie in blocks.

A unit of work is a band of tiles, of all images one after the other:

    where the band's tiles lie, and their data transformed
    for some of the filters after the other:
        for each of the 36 places of a tile:
            for each group of filters (`vectors` blocks), each tile group of the band:
                product of the group's tiles and the filters, over all channels    `tiles` x `vectors` accumulators
        for each group of filters, each tile: A' M A, cut at the image's border, and the epilogue

Of few tiles the transformed data are given (`winograd_data.py`), and a unit is a band and some of the filters.

In scratch, the transformed data of a place lie together, as [tile group][channel block][tile][channel], and the
products of a tile and a group of filters, as [place][filter]. So weights are read once for each band, from end to end
for each place, while what a place multiplies them by stays in the nearest cache.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mxc.compiler.kernel.calls import WINOGRAD_BAND, WINOGRAD_KERNELS, Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.emit.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.blocks import LINE, UNITS, ceil_div, least, most, prefetch
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.library.tile import multiply, sizes
from mxc.compiler.targets.cpu.library.winograd_tiles import (
    PLACES,
    RESULTS,
    Source,
    grid,
    print_sides,
    results,
    tile_count,
)
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND_BYTES = 384 << 10  # of a band's transformed data and products, if that leaves it enough tiles
FILTERS = 64  # at once, about
WHERE = 3  # numbers of a tile: image, first row and column of its results
AHEAD = 3  # lines of the next weights that a tile group asks for, for each channel block; the first groups do so
TILE = "i64 blocks, ptr data, ptr weights, ptr ahead, ptr noalias products"


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut. The same formulas serve Python (to plan) and the printed program (to run)."""

    blocks: Number  # of channels
    filters: Number  # filter groups
    tiles: Number
    band: Number  # tile groups of a band
    bands: Number
    chunk: Number  # filter groups at once
    chunks: Number
    apart: Number  # chunks that are units of their own
    alone: Number  # 1 if a band's data are transformed here, 0 if they are given

    @classmethod
    def of(cls, w: Window, given: Number, params: dict[str, Any]) -> Cut:
        """For the sizes `w`, which are numbers of Python or of the printed program, as `given` is."""
        size, block, columns = (params[k] for k in ("tiles", "block", "columns"))
        tiles = tile_count(w)
        groups: Any = ceil_div(tiles, size)
        filters: Any = ceil_div(w.filters, columns)
        shared: Any = least(given, 1)
        depth: Any = w.channels + least(w.filters, FILTERS)
        band: Any = BAND_BYTES // (PLACES * size * BYTES[params["dtype"]]) // most(1, depth)
        band = most(band, most(WINOGRAD_BAND[0], w.channels * w.filters // WINOGRAD_KERNELS) // size)
        band = least(band + shared * groups, WINOGRAD_BAND[1] // size)
        bands: Any = ceil_div(groups, band)
        band = ceil_div(groups, most(1, bands))
        chunks: Any = most(ceil_div(filters, most(1, FILTERS // columns)),
                           shared * least(filters, ceil_div(UNITS, most(1, bands))))
        chunk: Any = ceil_div(filters, most(1, chunks))
        chunks = ceil_div(filters, most(1, chunk))
        apart: Any = shared * chunks + 1 - shared
        return cls(w.channels // block, filters, tiles, band, bands, chunk, chunks, apart, 1 - shared)

    def layout(self, params: dict[str, Any]) -> list[Number]:
        """In elements of the scratch, which begins with where tiles lie: where a tile's data, its results, the
        transformed data and the products begin, and its size."""
        size, block, columns = (params[k] for k in ("tiles", "block", "columns"))
        tiles: Any = self.band * size
        sizes = [tiles * WHERE * (8 // BYTES[params["dtype"]]), PLACES * block, RESULTS * RESULTS * block,
                 self.alone * PLACES * self.pitch(params), self.chunk * tiles * PLACES * columns]
        ends: list[Any] = [0]
        for elements in sizes:
            ends.append(ceil_div(ends[-1] + elements, 16) * 16)
        return ends[1:]

    def pitch(self, params: dict[str, Any]) -> Any:
        """Elements from place to place of the transformed data: an odd number of lines, or all would meet in a few
        sets of the cache."""
        line = LINE // BYTES[params["dtype"]]
        lines = ceil_div(self.band * self.blocks * (params["tiles"] * params["block"]), line)  # type: ignore[operator]
        return (lines + 1 - lines % 2) * line  # type: ignore[operator]


def units(kernel: CallKernel, isa: Isa) -> int:
    cut = _cut(kernel)
    return int(cut.bands * cut.apart)  # type: ignore[operator,arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    return int(_cut(kernel).layout(dict(kernel.params))[-1])  # type: ignore[arg-type]


def _cut(kernel: CallKernel) -> Cut:
    return Cut.of(Window.of(kernel.extents), kernel.extents[-1], dict(kernel.params))


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    params: dict[str, Any] = dict(kernel.params)
    vectors_of_group = params["columns"] // params["block"]
    shapes = [(t, v) for t in sizes(params["tiles"])
              for v in range(vectors_of_group if params["whole"] else 1, vectors_of_group + 1)]
    for t, v in shapes:
        with b.function(f"tile_{t}_{v}", TILE, internal=True) as values:
            _print_tile(b, isa, params, dtype, t, v, values)
    with b.function("multiply", f"{TILE}, i64 tiles, i64 vectors", internal=True) as (*rest, tiles, vectors):
        for t, v in shapes:
            with b.when((tiles <= t) & vectors.equals(v)):  # of a group there is always room for all
                b.leave(f"tile_{t}_{v}", rest)
    print_sides(b, dtype, params["block"], epilogue_of)
    with b.function("prepare", "ptr args, ptr noalias scratch, i64 first, i64 tiles", True) as (args, *rest):
        _Winograd(kernel, b, dtype, epilogue_of(args)).prepare(args, *rest)
    where = "ptr args, ptr noalias products, ptr noalias results, i64 block, i64 vectors, i64 image, i64 y, i64 x"
    with b.function("finish", where, True) as (args, products, made, *place):
        _Winograd(kernel, b, dtype, epilogue_of(args)).finish(Array(b, products, dtype), Array(b, made, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        _Winograd(kernel, b, dtype, epilogue_of(args)).units(args, first, last, scratch)


def _print_tile(
    b: Builder, isa: Isa, params: dict[str, Any], dtype: str, tiles: int, vectors: int, values: list[Value],
) -> None:
    """products[tile][filter] = sum over channels of data[channel][tile] * weights[channel][filter]."""
    blocks, data, weights, ahead, products = values
    lanes, columns = params["block"], params["columns"]
    step = params["tiles"] * lanes
    pairs = [(i, j) for i in range(tiles) for j in range(vectors)]
    source, weight, following, target = (Array(b, x, dtype) for x in (data, weights, ahead, products))
    sums = [b.zero(vector_type(TYPES[dtype], lanes)) for _ in pairs]
    for k in b.range(0, blocks, carry=sums):
        here, row = source.at(k * step), weight.at(k * (lanes * columns))
        for i in range(AHEAD):
            prefetch(following.at((k * AHEAD + i) * columns), 2)
        multiply(b, isa, sums, [(here, i * lanes) for i in range(tiles)], row, columns, lanes)
    for total, (i, j) in zip(sums, pairs, strict=True):
        target.put(i * (PLACES * columns) + j * lanes, total)


class _Winograd:
    """One function of a kernel being printed."""

    def __init__(self, kernel: CallKernel, b: Builder, dtype: str, epilogue: Epilogue):
        self.b, self.dtype, self.epilogue = b, dtype, epilogue
        self.params: dict[str, Any] = dict(kernel.params)
        self.lanes, self.size, self.columns, self.flat = (
            self.params[k] for k in ("block", "tiles", "columns", "flat"))
        self.window = Window.of(epilogue.extents)  # type: ignore[arg-type]
        *self.strides, self.given = epilogue.extents[22:]
        self.data, self.weight = epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> Any:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return Cut.of(self.window, self.given, self.params)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, cut, size, given = self.b, self.cut, self.size, self.given
        _, made, here, products, _ = (Array(b, scratch, self.dtype).at(x) for x in cut.layout(self.params))
        pitch = b.select(given.equals(0), cut.pitch(self.params), given)
        for unit in b.range(first, last):
            band, part = unit // cut.apart, unit % cut.apart
            tiles = b.minimum(cut.band * size, cut.tiles - band * cut.band * size)
            b.call("prepare", [args, scratch, band * cut.band * size, tiles])
            there = self.data.at(band * cut.band * cut.blocks * (size * self.lanes))
            data = Array(b, b.select(given.equals(0), here.pointer, there.pointer), self.dtype)
            for chunk in b.range(part, b.select(given.equals(0), cut.chunks, part + 1)):
                begin = chunk * cut.chunk
                filters = b.minimum(cut.chunk, cut.filters - begin)
                self._multiply(data, pitch, products, tiles, begin, filters)
                self._finish(args, scratch, products, made, tiles, begin, filters)

    def _multiply(self, data: Array, pitch: Value, products: Array, tiles: Value, begin: Value, filters: Value) -> None:
        """The products of a band's tiles and some filter groups, at all places."""
        b, cut, columns, size = self.b, self.cut, self.columns, self.size
        group_step, filter_step = cut.blocks * (size * self.lanes), cut.blocks * (self.lanes * columns)
        for place in b.range(0, PLACES):
            row = place * cut.filters + begin
            for f in b.range(0, filters):
                weights = self.weight.at((row + f) * filter_step)
                following = b.select(f < filters - 1, row + f + 1, row + cut.filters) * filter_step
                target = products.at(f * cut.band * (size * PLACES * columns) + place * columns)
                for t in b.range(0, tiles, size):
                    group = t // size
                    part = b.minimum(group, self.lanes // AHEAD) * cut.blocks * (AHEAD * columns)
                    b.call("multiply", [
                        b.lift(cut.blocks), data.at(place * pitch + group * group_step).pointer, weights.pointer,
                        self.weight.at(following + part).pointer, target.at(t * (PLACES * columns)).pointer,
                        b.minimum(size, tiles - t), self.vectors(begin + f)])

    def _finish(
        self, args: Value, scratch: Value, products: Array, made: Array, tiles: Value, begin: Value, filters: Value,
    ) -> None:
        b, cut, columns = self.b, self.cut, self.columns
        where, tile_step = Array(b, scratch, "int64"), PLACES * columns
        for f in b.range(0, filters):
            block = (begin + f) * (columns // self.lanes)
            source = products.at(f * cut.band * (self.size * tile_step))
            for t in b.range(0, tiles):
                here = where.at(t * WHERE)
                b.call("finish", [args, source.at(t * tile_step).pointer, made.pointer, block,
                                  self.vectors(begin + f), here[0], here[1], here[2]])

    def vectors(self, group: Value) -> Value:
        """Blocks of filters in a group of them."""
        most_vectors = self.columns // self.lanes
        return self.b.minimum(most_vectors, self.window.filters // self.lanes - group * most_vectors)

    def prepare(self, args: Value, scratch: Value, first: Value, tiles: Value) -> None:
        """Where the tiles from `first` on lie, and their data transformed, unless these are given."""
        b, w, cut, lanes, size = self.b, self.window, self.cut, self.lanes, self.size
        patch, _, data, _, _ = (Array(b, scratch, self.dtype).at(x) for x in cut.layout(self.params))
        where, pitch, sizes = Array(b, scratch, "int64"), cut.pitch(self.params), grid(w)
        for t in b.range(0, tiles):
            image, ty, tx = split(first + t, sizes)
            place = where.at(t * WHERE)
            place[0], place[1], place[2] = image, ty * RESULTS, tx * RESULTS
        source = Source(args, w, self.data, self.strides, patch, lanes)
        for block in b.range(0, b.select(self.given.equals(0), cut.blocks, b.lift(0))):
            for t in b.range(0, tiles):
                place, group = where.at(t * WHERE), t // size
                target = data.at((group * cut.blocks + block) * (size * lanes) + (t - group * size) * lanes)
                source.put((place[0], place[1], place[2]), block, target, pitch, True)

    def finish(
        self, products: Array, made: Array, block: Value, vectors: Value, image: Value, y: Value, x: Value,
    ) -> None:
        """The results of a tile, and the epilogue over those that exist, for `vectors` filter blocks."""
        b, w, lanes = self.b, self.window, self.lanes
        rows, wide = b.minimum(RESULTS, w.out[1] - y), b.minimum(RESULTS, w.out[2] - x)
        at_once = self.flat and self.epilogue.brief
        whole = rows.equals(RESULTS) & wide.equals(RESULTS) & b.number(at_once, "i1")
        for j in b.range(0, vectors):
            values = results(products.at(j * lanes), self.columns, lanes)
            if at_once:
                with b.when(whole):
                    walk = self.epilogue.walk([image, block + j, Lane(b.lift(0)), y * w.out[2] + x], 3)
                    for r, line in enumerate(values):
                        first = walk.moved(b.lift(w.out[2]) * r)
                        for c, value in enumerate(line):
                            first.moved(c).store(value, self.dtype)
            with b.when_not(whole):
                for r, line in enumerate(values):
                    for c, value in enumerate(line):
                        made.put((r * RESULTS + c) * lanes, value)
                for i in b.range(0, rows):
                    begin = (y + i) * w.out[2] + x
                    for k in b.range(0, wide):
                        place = [begin + k] if self.flat else [b.lift(0), y + i, x + k]
                        value = made.vector((i * RESULTS + k) * lanes, lanes)
                        self.epilogue.store([image, block + j, Lane(b.lift(0)), *place], value, self.dtype)
