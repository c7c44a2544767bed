"""The first side of Winograd's convolution alone: the transformed data of all tiles.

A unit of work is a block of channels. Where there are too few tiles for bands of their own, the threads that multiply
them by different filters share what this kernel makes (`kernel/calls.py: winograd_data`).
"""
from __future__ import annotations

from mxc.compiler.kernel.geometry import WinogradData
from mxc.compiler.targets.cpu.emit.builder import Value
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.cutting import ceil_div
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.library.winograd_tiles import (
    PLACES,
    READ,
    RESULTS,
    TileSource,
    grid,
    print_sides,
    tile_count,
)
from mxc.compiler.targets.cpu.machine.isa import Isa


def units(g: WinogradData[int], isa: Isa) -> int:
    return g.window.channels // g.block


def scratch_elements(g: WinogradData[int], isa: Isa) -> int:
    return PLACES * g.block


def print_kernel(p: Printing) -> None:
    """The kernel's function and those that it calls."""
    print_sides(p, p.geometry.block)
    with p.b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        made = Function(p, args)
        g: WinogradData[Value] = made.g
        b, w, lanes, size, (data, target) = p.b, g.window, g.block, g.tiles, made.epilogue.buffers
        source = TileSource(args, w, data, g.data_strides, p.array(scratch), lanes)
        tiles, sizes = tile_count(w), grid(w)
        blocks: Value = w.channels // lanes
        groups: Value = ceil_div(tiles, size)
        for block in b.range(first, last):
            for group in b.range(0, groups):
                line = target.at((group * blocks + block) * size * lanes)
                for t in b.range(0, size):
                    tile = group * size + t
                    image, y, x = split(tile, sizes)
                    there = tile < tiles  # tiles behind the last one are read as if they lay above an image
                    place = b.select(there, image, b.lift(0)), b.select(there, y * RESULTS, b.lift(-READ)), x * RESULTS
                    source.put(place, block, line.at(t * lanes), g.pitch, False)
