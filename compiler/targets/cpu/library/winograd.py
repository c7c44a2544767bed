"""Convolution of Winograd's F(4x4, 3x3) over arrays whose channels lie in blocks.

A unit of work is a band of tiles, of all images one after the other:

    where the band's tiles lie, and their data transformed
    for one part of the filters after the other:
        for each of the 36 places of a tile:
            for each group of filters (`vectors` blocks), each tile group of the band:
                product of the group's tiles and the filters, over all channels    `tiles` x `vectors` accumulators
        for each group of filters, each tile: A' M A, cut at the image's border, and the epilogue

Where there are few tiles, the transformed data are given (`winograd_data.py`), and a unit is a band and some of the
filters.

In scratch, the transformed data of a place lie together, as [tile group][channel block][tile][channel], and the
products of a tile and a group of filters, as [place][filter]. So weights are read once for each band, from end to end
for each place, while what a place multiplies them by stays in the nearest cache.

Weights of which memory should not hold four times as many numbers are transformed here, a few at a time, so that they
stay in a core's cache:

        for some channels, one group of filters after the other:
            G g G' of their kernels, to scratch as [place][channel][filter]
            for each place: the products as above, added to those of the channels before
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.calls import winograd_rows
from mxc.compiler.kernel.geometry import WinogradConvolution
from mxc.compiler.ops.winograd import TAPS
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Value
from mxc.compiler.targets.cpu.library.blocks import LINE, prefetch
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, ceil_div, evenly, least, most, odd
from mxc.compiler.targets.cpu.library.epilogue import Lane
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Integer, NoAlias, Parameters, Pointer, Printing
from mxc.compiler.targets.cpu.library.tile import keep_sums, multiply, print_tiles, zeros
from mxc.compiler.targets.cpu.library.winograd_tiles import (
    PLACES,
    READ,
    RESULTS,
    TileSource,
    grid,
    print_sides,
    results,
    scaled_weight_rows,
    tile_count,
)
from mxc.compiler.targets.cpu.machine.isa import Isa
from mxc.compiler.targets.cpu.preferences import WINOGRAD

BAND_BYTES = 384 << 10  # a band's transformed data and products have at most so many bytes, if it has enough tiles then
FILTERS = 64  # about so many filters are computed at once
WEIGHT_BYTES = 384 << 10  # weights that are transformed at once have at most so many bytes, if those of one block have
PRODUCT_BYTES = 256 << 10  # and the products of all filters that share a band's data at most so many, or one group's
WHERE = 3  # so many numbers tell where a tile is: its image, and the first row and column of its results
AHEAD = 3  # each tile group asks for so many lines of the next weights of each channel block, until all are asked for


@dataclass(frozen=True)
class TileCall(Parameters):
    """The products of a tile group and a group of filters, at one place, over `blocks` channel blocks. ahead: the
    weights that are asked for meanwhile. step: elements from one channel block of the data to the next. add: whether
    they are added to what is there."""

    blocks: Integer
    data: Pointer
    step: Integer
    weights: Pointer
    ahead: Pointer
    products: NoAlias
    add: Integer


@dataclass(frozen=True)
class WinogradCut(Generic[N]):
    """How a convolution is cut."""

    blocks: N  # of channels
    filters: N  # filter groups
    tiles: N
    band: N  # tile groups of a band
    bands: N
    chunk: N  # filter groups at once
    chunks: N
    apart: N  # chunks that are units of their own
    alone: N  # 1 if a band's data are transformed here, 0 if they are given
    depth: N  # channel blocks whose products are summed at once

    @classmethod
    def of(cls, g: WinogradConvolution[N]) -> WinogradCut[N]:
        w, columns, place_bytes = g.window, g.columns, PLACES * BYTES[g.dtype]
        blocks, filters, tiles = w.channels // g.block, ceil_div(w.filters, columns), tile_count(w)
        size, groups = g.tiles, ceil_div(tiles, g.tiles)
        shared: N = least(g.given, 1)
        band: N = WINOGRAD.band[1] // size
        if not g.transforms:
            depth = w.channels + least(w.filters, FILTERS)
            cached: N = BAND_BYTES // most(1, place_bytes * size * depth)
            wanted: N = most(cached, most(WINOGRAD.band[0], w.channels * w.filters // WINOGRAD.band_kernels) // size)
            band = least(band, wanted + shared * groups)
        bands: N = ceil_div(groups, most(1, band))
        band = ceil_div(groups, most(1, bands))
        at_once: N = most(1, least(filters, FILTERS // columns))
        if g.transforms:
            at_once = most(1, PRODUCT_BYTES // most(1, place_bytes * columns * size * band))
        chunks: N = most(ceil_div(filters, at_once), shared * least(filters, ceil_div(UNITS, most(1, bands))))
        chunk: N = ceil_div(filters, most(1, chunks))
        chunks = ceil_div(filters, most(1, chunk))
        apart = shared * chunks + 1 - shared
        parts: N = ceil_div(blocks, most_blocks(g)) if g.transforms else most(1, least(blocks, 1))
        return cls(blocks, filters, tiles, band, bands, chunk, chunks, apart, 1 - shared, evenly(blocks, parts)[0])

    def layout(self: WinogradCut[N], g: WinogradConvolution[N]) -> list[N]:
        """In elements of the scratch, which begins with where tiles lie: where a tile's data, its results, the
        transformed data, the products and the transformed weights begin, and its size."""
        tiles, block = self.band * g.tiles, g.block
        sizes = (tiles * WHERE * (8 // BYTES[g.dtype]), PLACES * block, RESULTS * RESULTS * block,
                 self.alone * PLACES * self.pitch(g), self.chunk * tiles * PLACES * g.columns,
                 PLACES * weight_pitch(g) if g.transforms else 0)
        ends: list[N] = []
        end: N | int = 0
        for elements in sizes:
            end = ceil_div(end + elements, 16) * 16
            ends.append(end)
        return ends

    def pitch(self: WinogradCut[N], g: WinogradConvolution[N]) -> N:
        """Elements from place to place of the transformed data: an odd number of lines, or all would meet in a few
        sets of the cache."""
        line = LINE // BYTES[g.dtype]
        lines: N = ceil_div(self.band * self.blocks * g.tiles * g.block, line)
        return (lines + 1 - lines % 2) * line


def most_blocks(g: WinogradConvolution[N]) -> int:
    """Channel blocks whose weights are transformed at once."""
    return max(1, WEIGHT_BYTES // (PLACES * g.block * g.columns * BYTES[g.dtype]))


def weight_pitch(g: WinogradConvolution[N]) -> int:
    """Elements from place to place of these weights: an odd number of channels, as with those that are given."""
    return odd(most_blocks(g) * g.block) * g.columns


def units(g: WinogradConvolution[int], isa: Isa) -> int:
    cut = WinogradCut.of(g)
    return cut.bands * cut.apart


def scratch_elements(g: WinogradConvolution[int], isa: Isa) -> int:
    return WinogradCut.of(g).layout(g)[-1]


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, g = p.b, p.geometry
    print_products(p, winograd_rows(g.rows), g.block * g.columns // 64 if g.transforms else 0)
    print_sides(p, g.block)
    if g.transforms:
        with b.function("weights", "ptr source, ptr noalias target, i64 blocks", True) as (source, target, blocks):
            _transform_weights(p, p.array(source), p.array(target), blocks)
    with b.function("prepare", "ptr args, ptr noalias scratch, i64 first, i64 tiles", True) as (args, *rest):
        _Winograd(p, args).prepare(args, *rest)
    where = "ptr args, ptr noalias products, ptr noalias results, i64 block, i64 vectors, i64 image, i64 y, i64 x"
    with b.function("finish", where, True) as (args, products, made, *place):
        _Winograd(p, args).finish(p.array(products), p.array(made), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Winograd(p, args).units(args, first, last, scratch)


def _transform_weights(p: Printing, source: Array, target: Array, blocks: Value) -> None:
    """The kernels of a group of filters and some channel blocks, [channel block][tap][channel][filter], transformed."""
    b, g = p.b, p.geometry
    columns, lanes, pitch = g.columns, g.block, weight_pitch(g)
    for k in b.range(0, blocks):
        for u in b.range(0, lanes):
            here, there = source.at((k * (TAPS * lanes) + u) * columns), target.at((k * lanes + u) * columns)
            for j in range(0, columns, lanes):
                taps = [here.vector(t * (lanes * columns) + j, lanes) for t in range(TAPS)]
                for x, row in enumerate(scaled_weight_rows(b, [taps[:3], taps[3:6], taps[6:]])):
                    for y, (value,) in enumerate(scaled_weight_rows(b, [[tap] for tap in row])):
                        there.put((x * READ + y) * pitch + j, value)


def print_products(p: Printing, counts: Iterable[int], lines: int = 0) -> None:
    """The function `multiply`: a `TileCall` for as many tiles and vectors of filters as the last two of its parameters
    say. counts: the numbers of tiles that it is printed for, of which it takes the smallest that has room. lines: if
    not 0, so many lines that follow each other are asked for with each channel block, in place of AHEAD rows."""
    g, vectors_of_group = p.geometry, p.geometry.columns // p.geometry.block

    def tile(tiles: int, vectors: int, values: list[Value]) -> None:
        _print_tile(p, tiles, vectors, TileCall(*values), lines)

    def fits_of(values: list[Value]) -> Callable[[int, int], Value]:
        *_, tiles, vectors_here = values
        return lambda t, vectors: (tiles <= t) & vectors_here.equals(vectors)

    shapes = [(t, v) for t in counts for v in range(vectors_of_group if g.whole else 1, vectors_of_group + 1)]
    print_tiles(p.b, shapes, TileCall.text(), tile, f"{TileCall.text()}, i64 tiles, i64 vectors", fits_of,
                ("tile", "multiply"))


def _print_tile(p: Printing, tiles: int, vectors: int, given: TileCall, lines: int) -> None:
    """products[tile][filter] (+)= sum over channels of data[channel][tile] * weights[channel][filter]."""
    b, g = p.b, p.geometry
    lanes, columns = g.block, g.columns
    pairs = [(i, j) for i in range(tiles) for j in range(vectors)]
    source, weight, following, target = map(p.array, (given.data, given.weights, given.ahead, given.products))
    sums = zeros(b, p.dtype, lanes, len(pairs))
    for k in b.range(0, given.blocks, carry=sums):
        here, row = source.at(k * given.step), weight.at(k * (lanes * columns))
        for i in range(lines or AHEAD):
            prefetch(following.at((k * (lines or AHEAD) + i) * (LINE // BYTES[g.dtype] if lines else columns)), 2)
        multiply(b, p.isa, sums, [(here, i * lanes) for i in range(tiles)], row, columns, lanes)
    keep_sums(sums, [(target, i * (PLACES * columns) + j * lanes) for i, j in pairs], given.add)


class _Winograd(Function):
    """One function of a kernel being printed."""

    g: WinogradConvolution[Value]

    def __init__(self, printing: Printing, args: Value):
        super().__init__(printing, args)
        g = self.g
        self.columns, self.window, self.strides, self.given = g.columns, g.window, g.data_strides, g.given
        self.data, self.weight = self.epilogue.buffers[:2]

    @functools.cached_property
    def cut(self) -> WinogradCut[Value]:
        """Printed where it is first asked for: `finish`, which runs for each tile, has no time for its divisions."""
        return WinogradCut.of(self.g)

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, cut, size, given = self.b, self.cut, self.g.tiles, self.given
        _, made, here, products, weights, _ = (self.array(scratch).at(x) for x in cut.layout(self.g))
        pitch = b.select(given.equals(0), cut.pitch(self.g), given)
        for unit in b.range(first, last):
            band, part = unit // cut.apart, unit % cut.apart
            tiles = b.minimum(cut.band * size, cut.tiles - band * cut.band * size)
            b.call("prepare", [args, scratch, band * cut.band * size, tiles])
            there = self.data.at(band * cut.band * cut.blocks * size * self.lanes)
            data = Array(b, b.select(given.equals(0), here.pointer, there.pointer), self.dtype)
            for chunk in b.range(part, b.select(given.equals(0), cut.chunks, part + 1)):
                begin = chunk * cut.chunk
                filters = b.minimum(cut.chunk, cut.filters - begin)
                if self.g.transforms:
                    self._multiply_in_parts(data, pitch, products, weights, (tiles, begin, filters))
                else:
                    self._multiply(data, pitch, products, tiles, begin, filters)
                self._finish(args, scratch, products, made, tiles, begin, filters)

    def _multiply(self, data: Array, pitch: Value, products: Array, tiles: Value, begin: Value, filters: Value) -> None:
        """The products of a band's tiles and some filter groups, at all places."""
        b, cut, columns, size = self.b, self.cut, self.columns, self.g.tiles
        group_step, filter_step = cut.blocks * size * self.lanes, odd(self.window.channels) * columns
        for place in b.range(0, PLACES):
            row = place * cut.filters + begin
            for f in b.range(0, filters):
                weights = self.weight.at((row + f) * filter_step)
                following = b.select(f < filters - 1, row + f + 1, row + cut.filters) * filter_step
                target = products.at(f * cut.band * size * (PLACES * columns) + place * columns)
                for group in b.range(0, ceil_div(tiles, size)):
                    part = b.minimum(group, self.lanes // AHEAD) * cut.blocks * (AHEAD * columns)
                    self._product(group, tiles, begin + f, cut.blocks, data.at(place * pitch + group * group_step),
                                  weights, self.weight.at(following + part), target, b.lift(0))

    def _multiply_in_parts(
        self, data: Array, pitch: Value, products: Array, weights: Array, what: tuple[Value, Value, Value],
    ) -> None:
        """As `_multiply`, of weights that are transformed here. what: tiles, and begin and number of filter groups."""
        b, cut, columns, size, lanes, (tiles, begin, filters) = (
            self.b, self.cut, self.columns, self.g.tiles, self.lanes, what)
        here, block = weight_pitch(self.g), TAPS * lanes * columns
        packed = self.weight.at(begin * cut.blocks * block)
        for k in b.range(0, cut.blocks, cut.depth):
            blocks = b.minimum(cut.depth, cut.blocks - k)
            for f in b.range(0, filters):
                b.call("weights", [packed.at((f * cut.blocks + k) * block).pointer, weights.pointer, blocks])
                # those that are transformed next, of which each place asks for its part
                following = packed.at(b.select(f < filters - 1, (f + 1) * cut.blocks + k, k + blocks) * block)
                for place in b.range(0, PLACES):
                    ahead = following.at(place * blocks * (block // PLACES))
                    target = products.at(f * cut.band * size * (PLACES * columns) + place * columns)
                    for group in b.range(0, ceil_div(tiles, size)):
                        there = data.at(place * pitch + (group * cut.blocks + k) * size * lanes)
                        self._product(group, tiles, begin + f, blocks, there, weights.at(place * here), ahead, target,
                                      b.minimum(k, 1))

    # many parameters: those of a TileCall, and where its tiles are
    def _product(self, group: Value, tiles: Value, filters: Value, blocks: Value, data: Array, weights: Array,
                 ahead: Array, products: Array, add: Value) -> None:
        """The products of a tile group and a group of filters at one place."""
        b, size = self.b, self.g.tiles
        first = group * size
        given = TileCall(blocks, data.pointer, size * self.lanes, weights.pointer, ahead.pointer,
                         products.at(first * (PLACES * self.columns)).pointer, add)
        b.call("multiply", [*given.values(), b.minimum(size, tiles - first), self.vectors(filters)])

    def _finish(
        self, args: Value, scratch: Value, products: Array, made: Array, tiles: Value, begin: Value, filters: Value,
    ) -> None:
        b, cut, columns = self.b, self.cut, self.columns
        where, tile_step = Array(b, scratch, "int64"), PLACES * columns
        for f in b.range(0, filters):
            block = (begin + f) * (columns // self.lanes)
            source = products.at(f * cut.band * self.g.tiles * tile_step)
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
        b, w, cut, lanes, size = self.b, self.window, self.cut, self.lanes, self.g.tiles
        patch, _, data, _, _, _ = (self.array(scratch).at(x) for x in cut.layout(self.g))
        where, pitch, sizes = Array(b, scratch, "int64"), cut.pitch(self.g), grid(w)
        for t in b.range(0, tiles):
            image, ty, tx = split(first + t, sizes)
            place = where.at(t * WHERE)
            place[0], place[1], place[2] = image, ty * RESULTS, tx * RESULTS
        source = TileSource(args, w, self.data, self.strides, patch, lanes)
        for block in b.range(0, b.select(self.given.equals(0), cut.blocks, b.lift(0))):
            for t in b.range(0, tiles):
                place, group = where.at(t * WHERE), t // size
                target = data.at((group * cut.blocks + block) * size * lanes + (t - group * size) * lanes)
                source.put((place[0], place[1], place[2]), block, target, pitch, True)

    def finish(
        self, products: Array, made: Array, block: Value, vectors: Value, image: Value, y: Value, x: Value,
    ) -> None:
        """The results of a tile, and the epilogue over those that exist, for `vectors` filter blocks."""
        b, w, lanes = self.b, self.window, self.lanes
        rows, wide = b.minimum(RESULTS, w.out[1] - y), b.minimum(RESULTS, w.out[2] - x)
        at_once = self.g.flat and self.epilogue.brief
        whole = rows.equals(RESULTS) & wide.equals(RESULTS) & b.number(at_once, "i1")
        for j in b.range(0, vectors):
            values = results(products.at(j * lanes), self.columns, lanes, self.g.transforms)
            if at_once:
                with b.when(whole):
                    walk = self.epilogue.walk([image, block + j, Lane(b.lift(0)), y * w.out[2] + x], 3)
                    for r, line in enumerate(values):
                        first = walk.moved(w.out[2] * r)
                        for c, value in enumerate(line):
                            first.moved(c).store(value, self.dtype)
            with b.when_not(whole):
                for r, line in enumerate(values):
                    for c, value in enumerate(line):
                        made.put((r * RESULTS + c) * lanes, value)
                for i in b.range(0, rows):
                    begin = (y + i) * w.out[2] + x
                    for k in b.range(0, wide):
                        place = [begin + k] if self.g.flat else [b.lift(0), y + i, x + k]
                        value = made.vector((i * RESULTS + k) * lanes, lanes)
                        self.epilogue.store([image, block + j, Lane(b.lift(0)), *place], value, self.dtype)
