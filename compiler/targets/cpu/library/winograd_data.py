"""The first side of Winograd's convolution alone: the transformed data of all tiles.

A unit of work is a block of channels. Where there are too few tiles for bands of their own, the threads that multiply
them by different filters share what this kernel makes (`kernel/calls.py: winograd_data`).
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.emit.builder import Array, Builder, Value
from mxc.compiler.targets.cpu.library.blocks import ceil_div
from mxc.compiler.targets.cpu.library.convolution import split
from mxc.compiler.targets.cpu.library.epilogue import Epilogue
from mxc.compiler.targets.cpu.library.winograd_tiles import (
    PLACES,
    READ,
    RESULTS,
    Source,
    grid,
    print_sides,
    tile_count,
)
from mxc.compiler.targets.cpu.machine.isa import Isa


def units(kernel: CallKernel, isa: Isa) -> int:
    return Window.of(kernel.extents).channels // int(dict(kernel.params)["block"])  # type: ignore[call-overload]


def scratch_elements(kernel: CallKernel, isa: Isa) -> int:
    return PLACES * int(dict(kernel.params)["block"])  # type: ignore[call-overload]


def print_kernel(
    kernel: CallKernel, symbol: str, b: Builder, isa: Isa, dtype: str, epilogue_of: Callable[[Value], Epilogue],
) -> None:
    """The kernel's function and those that it calls."""
    params: dict[str, Any] = dict(kernel.params)
    lanes, size = params["block"], params["tiles"]
    print_sides(b, dtype, lanes, epilogue_of)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        epilogue = epilogue_of(args)
        w, (data, target) = Window.of(epilogue.extents), epilogue.buffers  # type: ignore[arg-type]
        *steps, pitch = epilogue.extents[22:]
        source = Source(args, w, data, steps, Array(b, scratch, dtype), lanes)
        tiles, sizes = tile_count(w), grid(w)
        blocks, groups = w.channels // lanes, ceil_div(tiles, size)
        for block in b.range(first, last):
            for group in b.range(0, groups):
                line = target.at((group * blocks + block) * (size * lanes))
                for t in range(size):
                    tile = group * size + t
                    image, y, x = split(tile, sizes)
                    there = tile < tiles  # what lies behind the last one is read as if it were above an image
                    place = b.select(there, image, b.lift(0)), b.select(there, y * RESULTS, b.lift(-READ)), x * RESULTS
                    source.put(place, block, line.at(t * lanes), pitch, False)
