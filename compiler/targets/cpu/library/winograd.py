"""Convolution of Winograd's F(4x4, 3x3) over arrays whose channels lie in blocks.

A unit of work is a band of tiles, of all images one after the other, and some of the filters:

    where the band's tiles lie, and their data transformed     kept while units of the same band follow each other
    for each of the 36 places of a tile:
        for each group of filters (`vectors` blocks), each tile group of the band:
            product of the group's tiles and the filters, over all channels    `tiles` x `vectors` accumulators
    for each group of filters, each tile: A' M A, cut at the image's border, and the epilogue

In scratch, the transformed data of a place lie together, as [tile group][channel block][tile][channel], and the
products of a tile and a group of filters, as [place][filter]. So weights are read once for each band, from end to end
for each place, while what a place multiplies them by stays in the nearest cache.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import BYTES, TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.isa import Isa
from mxc.compiler.targets.cpu.library.blocks import LINE, UNITS, ceil_div, least, most, prefetch
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.epilogue import Epilogue, Lane
from mxc.compiler.targets.cpu.library.winograd_tiles import (
    PLACES,
    READ,
    RESULTS,
    collect,
    grid,
    results,
    tile_count,
    transform,
)

BAND_BYTES = 384 << 10  # of a band's transformed data and products, if that leaves it enough tiles
BAND_TILES = 24, 60  # of a band: at least, at most, about
WEIGHTS = 1024  # kernels for each tile that a band has at least: each band reads all of them once
FILTERS = 64, 32  # of a unit, about; where there are few bands
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
    chunk: Number  # filter groups of a unit
    chunks: Number

    @classmethod
    def of(cls, w: Window, params: dict[str, Any]) -> Cut:
        """For the sizes `w`, which are numbers of Python or of the printed program."""
        size, block, columns = (params[k] for k in ("tiles", "block", "columns"))
        tiles = tile_count(w)
        groups: Any = ceil_div(tiles, size)
        filters: Any = ceil_div(w.filters, columns)
        many, few = (ceil_div(filters, max(1, x // columns)) for x in FILTERS)
        depth: Any = w.channels + least(w.filters, FILTERS[0])
        band: Any = BAND_BYTES // (PLACES * size * BYTES[params["dtype"]]) // most(1, depth)
        band = least(most(band, most(BAND_TILES[0], w.channels * w.filters // WEIGHTS) // size), BAND_TILES[1] // size)
        bands: Any = ceil_div(groups, band)
        band = ceil_div(groups, most(1, bands))
        chunks: Any = most(many, least(few, ceil_div(UNITS, most(1, bands))))
        chunk: Any = ceil_div(filters, most(1, chunks))
        return cls(w.channels // block, filters, tiles, band, bands, chunk, ceil_div(filters, most(1, chunk)))

    def layout(self, params: dict[str, Any]) -> list[Number]:
        """In elements of the scratch, which begins with where tiles lie: where a tile's data, its results, the
        transformed data and the products begin, and its size."""
        size, block, columns = (params[k] for k in ("tiles", "block", "columns"))
        tiles: Any = self.band * size
        sizes = [tiles * WHERE * (8 // BYTES[params["dtype"]]), PLACES * block, RESULTS * RESULTS * block,
                 PLACES * self.pitch(params), self.chunk * tiles * PLACES * columns]
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
    cut = Cut.of(Window.of(kernel.extents), dict(kernel.params))
    return int(cut.bands * cut.chunks)  # type: ignore[operator,arg-type]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    params = dict(kernel.params)
    return int(Cut.of(Window.of(kernel.extents), params).layout(params)[-1])  # type: ignore[arg-type]


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    params: dict[str, Any] = dict(kernel.params)
    shapes = [(t, v) for t in range(1, params["tiles"] + 1) for v in range(1, params["columns"] // params["block"] + 1)]
    for t, v in shapes:
        with b.function(f"tile_{t}_{v}", TILE, internal=True) as values:
            _print_tile(b, params, dtype, t, v, values)
    with b.function("multiply", f"{TILE}, i64 tiles, i64 vectors", internal=True) as (*rest, tiles, vectors):
        for t, v in shapes:
            with b.when(tiles.equals(t) & vectors.equals(v)):
                b.leave(f"tile_{t}_{v}", rest)
    lanes = params["block"]
    with b.function("collect", "ptr args, ptr noalias patch, ptr data, i64 row, i64 column, i64 y, i64 x", True) as f:
        args, patch, plane, row, column, y, x = f
        w = Window.of(epilogue_of(args).extents)  # type: ignore[arg-type]
        collect(w, Array(b, patch, dtype), Array(b, plane, dtype), row, column, y, x, lanes)
    with b.function("transform", "ptr data, i64 row, i64 column, ptr noalias target, i64 pitch", True) as f:
        data, row, column, target, pitch = f
        transform(Array(b, data, dtype), row, column, Array(b, target, dtype), pitch, lanes)
    with b.function("prepare", "ptr args, ptr noalias scratch, i64 first, i64 tiles", True) as (args, *rest):
        _Winograd(kernel, b, dtype, epilogue_of(args)).prepare(args, *rest)
    where = "ptr args, ptr noalias products, ptr noalias results, i64 block, i64 vectors, i64 image, i64 y, i64 x"
    with b.function("finish", where, True) as (args, products, made, *place):
        _Winograd(kernel, b, dtype, epilogue_of(args)).finish(Array(b, products, dtype), Array(b, made, dtype), *place)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        _Winograd(kernel, b, dtype, epilogue_of(args)).units(args, first, last, scratch)


def _print_tile(b: Builder, params: dict[str, Any], dtype: str, tiles: int, vectors: int, values: list[Value]) -> None:
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
        for channel in range(lanes):
            filters = [row.vector(channel * columns + j * lanes, lanes) for j in range(vectors)]
            for i in range(tiles):
                x = here.broadcast(i * lanes + channel, lanes)
                for j in range(vectors):
                    sums[i * vectors + j] = b.fma(x, filters[j], sums[i * vectors + j])
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
        self.strides = epilogue.extents[22:]
        self.data, self.weight = epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> Any:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return Cut.of(self.window, self.params)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, cut, columns, size = self.b, self.cut, self.columns, self.size
        _, made, data, products, _ = (Array(b, scratch, self.dtype).at(x) for x in cut.layout(self.params))
        where, pitch = Array(b, scratch, "int64"), cut.pitch(self.params)
        group_step, filter_step = cut.blocks * (size * self.lanes), cut.blocks * (self.lanes * columns)
        tile_step = PLACES * columns
        for unit in b.range(first, last):
            band, begin = unit // cut.chunks, unit % cut.chunks * cut.chunk
            tiles = b.minimum(cut.band * size, cut.tiles - band * cut.band * size)
            with b.when(unit.equals(first) | begin.equals(0)):
                b.call("prepare", [args, scratch, band * cut.band * size, tiles])
            filters = b.minimum(cut.chunk, cut.filters - begin)
            for place in b.range(0, PLACES):
                for f in b.range(0, filters):
                    weights = self.weight.at((place * cut.filters + begin + f) * filter_step)
                    target = products.at(f * cut.band * (size * tile_step) + place * columns)
                    for t in b.range(0, tiles, size):
                        group = t // size
                        part = b.minimum(group, self.lanes // AHEAD) * cut.blocks * (AHEAD * columns)
                        b.call("multiply", [
                            b.lift(cut.blocks), data.at(place * pitch + group * group_step).pointer, weights.pointer,
                            weights.at(filter_step + part).pointer, target.at(t * tile_step).pointer,
                            b.minimum(size, tiles - t), self.vectors(begin + f)])
            for f in b.range(0, filters):
                block = (begin + f) * (columns // self.lanes)
                source = products.at(f * cut.band * (size * tile_step))
                for t in b.range(0, tiles):
                    here = where.at(t * WHERE)
                    b.call("finish", [args, source.at(t * tile_step).pointer, made.pointer, block,
                                      self.vectors(begin + f), here[0], here[1], here[2]])

    def vectors(self, group: Value) -> Value:
        """Blocks of filters in a group of them."""
        most_vectors = self.columns // self.lanes
        return self.b.minimum(most_vectors, self.window.filters // self.lanes - group * most_vectors)

    def prepare(self, args: Value, scratch: Value, first: Value, tiles: Value) -> None:
        """Where the tiles from `first` on lie, and their data transformed."""
        b, w, cut, lanes, size = self.b, self.window, self.cut, self.lanes, self.size
        patch, _, data, _, _ = (Array(b, scratch, self.dtype).at(x) for x in cut.layout(self.params))
        where, pitch, sizes = Array(b, scratch, "int64"), cut.pitch(self.params), grid(w)
        image_step, block_step, _, row, column = self.strides
        for t in b.range(0, tiles):
            image, ty, tx = split(first + t, sizes)
            place = where.at(t * WHERE)
            place[0], place[1], place[2] = image, ty * RESULTS, tx * RESULTS
        sides = b.lift(READ * lanes), b.lift(lanes)
        for block in b.range(0, cut.blocks):
            for t in b.range(0, tiles):
                place = where.at(t * WHERE)
                y, x = place[1] - w.pad[1], place[2] - w.pad[2]
                plane = self.data.at(place[0] * image_step + block * block_step)
                group = t // size
                target = data.at((group * cut.blocks + block) * (size * lanes) + (t - group * size) * lanes).pointer
                inner = b.inside(y, w.data[1] - (READ - 1)) & b.inside(x, w.data[2] - (READ - 1))
                inner = inner & (b.lift(w.data[1]) >= READ) & (b.lift(w.data[2]) >= READ)
                with b.when(inner):
                    ahead = plane.at(y * row + x * column + block_step)
                    for i in range(READ):
                        for c in (2, 4):
                            prefetch(ahead.at(row * i + column * c))
                    b.call("transform", [plane.at(y * row + x * column).pointer, row, column, target, pitch])
                with b.when_not(inner):
                    b.call("collect", [args, patch.pointer, plane.pointer, row, column, y, x])
                    b.call("transform", [patch.pointer, *sides, target, pitch])

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
