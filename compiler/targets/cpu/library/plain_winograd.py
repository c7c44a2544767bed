"""Convolution of Winograd's F(4x4, 3x3) to plain arrays, of data whose tiles `winograd_side.py` transformed.

A unit of work is a band of tiles, which are whole rows of tiles of an image or whole images, and some of the filters:

    for each of the 36 places of a tile:
        for each group of filters (`vectors` blocks), each few tiles of the band:
            product of the tiles and the filters, over all channels        `rows` x `vectors` accumulators
    for each block of filters:
        for each tile of the band: A' M A, to its place among the band's results   [image][row][column][filter]
        the epilogue over squares of these, transposed
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from mxc.compiler.kernel.geometry import PlainWinograd
from mxc.compiler.targets.cpu.emit.builder import Array, Value
from mxc.compiler.targets.cpu.library.convolution import inner_axes
from mxc.compiler.targets.cpu.library.cutting import UNITS, N, Tiles, ceil_div, evenly, least, most, odd
from mxc.compiler.targets.cpu.library.epilogue import Axis
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.winograd import AHEAD, FILTERS, TileCall, print_products
from mxc.compiler.targets.cpu.library.winograd_tiles import PLACES, RESULTS, grid, results
from mxc.compiler.targets.cpu.machine.isa import Isa

BAND = 48  # a band has at most so many tiles, unless a row of tiles has more: they share the weights that they read


@dataclass(frozen=True)
class PlainCut(Generic[N]):
    """How the work is cut."""

    rows: N  # rows of tiles of an image
    columns: N  # tiles of a row
    images: N  # of a band
    height: N  # rows of tiles of each of its images
    bands: N  # of an image
    parts: N  # bands of all images
    blocks: N  # of channels
    filters: N  # groups of filters
    chunk: N  # groups of a unit
    chunks: N

    @classmethod
    def of(cls, g: PlainWinograd[N]) -> PlainCut[N]:
        w = g.window
        batch, rows, columns = grid(w)
        most_rows: N = most(1, BAND // most(1, columns))
        images: N = most(1, least(batch, most_rows // most(1, rows)))
        height, bands = evenly(rows, ceil_div(rows, most_rows))
        parts: N = ceil_div(batch, images) * bands
        filters: N = ceil_div(w.filters, g.columns)
        chunks: N = most(ceil_div(filters, max(1, FILTERS // g.columns)),
                         least(filters, ceil_div(UNITS, most(1, parts))))
        chunk, chunks = evenly(filters, most(1, chunks))
        return cls(rows, columns, images, height, bands, parts, w.channels // g.block, filters, chunk, chunks)

    def tiles(self) -> N:
        """Of a band, at most."""
        return self.images * self.height * self.columns

    def results(self, g: PlainWinograd[N]) -> N:
        """Where the band's results begin in the scratch, in elements: behind a square and the products."""
        return g.block * g.block + self.chunk * self.tiles() * (PLACES * g.columns)


def units(g: PlainWinograd[int], isa: Isa) -> int:
    cut = PlainCut.of(g)
    return cut.parts * cut.chunks


def scratch_elements(g: PlainWinograd[int], isa: Isa) -> int:
    cut = PlainCut.of(g)
    pixels = cut.images * cut.height * RESULTS * g.window.out[2]
    return cut.results(g) + (pixels + g.block) * g.block  # the last square may be read beyond the results


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    b, lanes = p.b, p.geometry.block
    print_products(p, range(1, p.isa.rows + 1))
    with b.function("finish", "ptr products, ptr noalias target, i64 row, i64 wide", True) as f:
        products, target, row, wide = f
        _finish(p.array(products), p.array(target), row, wide, p.geometry.columns, lanes)
    where = "ptr args, ptr noalias made, ptr noalias square, i64 image, i64 filter, i64 pixel, i64 pixels"
    with b.function("store", where, True) as (args, made, square, *place):
        _Plain(p, args).store(p.array(made), p.array(square), *place)
    with b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        _Plain(p, args).units(args, first, last, scratch)


def _finish(products: Array, target: Array, row: Value, wide: Value, columns: int, lanes: int) -> None:
    """The results of a tile, of which `wide` columns exist; row: elements from row to row of the target."""
    b, made = products.builder, results(products, columns, lanes)
    for c in range(RESULTS):
        with b.when(wide > c):
            for r in range(RESULTS):
                target.put(row * r + c * lanes, made[r][c])


class _Plain(Function):
    """One function of a kernel being printed."""

    g: PlainWinograd[Value]

    def units(self, args: Value, first: Value, last: Value, scratch: Value) -> None:
        b, w, cut, columns, lanes = self.b, self.g.window, PlainCut.of(self.g), self.g.columns, self.lanes
        products, made = (self.array(scratch).at(place) for place in (lanes * lanes, cut.results(self.g)))
        step = cut.tiles() * (PLACES * columns)
        for unit in b.range(first, last):
            part, chunk = unit // cut.chunks, unit % cut.chunks
            image, row = part // cut.bands * cut.images, part % cut.bands * cut.height
            images, height = b.minimum(cut.images, w.batch - image), b.minimum(cut.height, cut.rows - row)
            begin = chunk * cut.chunk
            filters = b.minimum(cut.chunk, cut.filters - begin)
            tiles = (image * cut.rows + row) * cut.columns, images * height * cut.columns
            self._multiply(cut, products, tiles, begin, filters)
            for f in b.range(0, filters):
                for j in b.range(0, self.vectors(begin + f)):
                    self._finish(cut, products.at(step * f + j * lanes), made, images, height)
                    pixels = b.minimum(height * RESULTS, w.out[1] - row * RESULTS) * w.out[2]
                    for i in b.range(0, images):
                        here = made.at(i * height * RESULTS * w.out[2] * lanes)
                        b.call("store", [args, here.pointer, scratch, image + i, (begin + f) * columns + j * lanes,
                                         row * RESULTS * w.out[2], pixels])

    def vectors(self, group: Value) -> Value:
        """Blocks of filters in a group of them."""
        most_vectors = self.g.columns // self.lanes
        return self.b.minimum(most_vectors, self.g.window.filters // self.lanes - group * most_vectors)

    def _multiply(self, cut: PlainCut[Value], products: Array, tiles: tuple[Value, Value], begin: Value, filters: Value,
                  ) -> None:
        """The products of some tiles (the first one, and how many) and some filter groups, at all places."""
        b, g, columns, lanes, (data, weight) = self.b, self.g, self.g.columns, self.lanes, self.epilogue.buffers[:2]
        of_rows = odd(g.window.batch * cut.rows * cut.columns) * lanes
        cover = Tiles.of(tiles[1], self.isa.rows, empty=False)
        for place in b.range(0, PLACES):
            row, here = place * cut.filters + begin, data.at(place * cut.blocks * of_rows + tiles[0] * lanes)
            for f in b.range(0, filters):
                following = b.select(f < filters - 1, row + f + 1, row + cut.filters)
                weights, ahead = (weight.at(x * odd(g.window.channels) * columns) for x in (row + f, following))
                target = products.at((f * cut.tiles() * PLACES + place) * columns)
                for t in b.range(0, cover.count):
                    start = cover.start(t)
                    asked = ahead.at(b.minimum(t, lanes // AHEAD) * cut.blocks * (AHEAD * columns))
                    given = TileCall(cut.blocks, here.at(start * lanes).pointer, of_rows, weights.pointer,
                                     asked.pointer, target.at(start * (PLACES * columns)).pointer, b.lift(0))
                    b.call("multiply", [*given.values(), cover.rows(t), self.vectors(begin + f)])

    def _finish(self, cut: PlainCut[Value], products: Array, made: Array, images: Value, height: Value) -> None:
        """The results of a band's tiles for a block of filters, row by row of the images."""
        b, width, lanes = self.b, self.g.window.out[2], self.lanes
        for row in b.range(0, images * height):
            for x in b.range(0, cut.columns):
                source = products.at((row * cut.columns + x) * (PLACES * self.g.columns))
                target = made.at((row * width + x) * (RESULTS * lanes))
                b.call("finish", [source.pointer, target.pointer, width * lanes, width - x * RESULTS])

    def store(self, made: Array, square: Array, image: Value, filter0: Value, pixel: Value, pixels: Value) -> None:
        """The epilogue over the results of a block of filters, at so many pixels of an image."""
        b, lanes = self.b, self.lanes
        for x in b.range(0, pixels, lanes):
            axes = inner_axes(b, self.g.flat, pixel + x, self.g.window.out, lanes)
            rows = [made.vector((x + i) * lanes, lanes) for i in range(lanes)]

            def places(u: Value, axes: list[Axis] = axes) -> list[Axis]:
                return [image, filter0 + u, *axes]

            whole, mask = pixels - x >= lanes, b.first_lanes(pixels - x, lanes)
            self.store_square(square, rows, b.lift(lanes), whole, mask, places)
