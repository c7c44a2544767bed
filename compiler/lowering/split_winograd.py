"""Winograd's convolutions of few tiles: the transformation of the data in a launch of its own."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.geometry import WinogradConvolution
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.lowering.launches import Launch, Storage, divided
from mxc.compiler.lowering.stage import lowering_stage
from mxc.compiler.ops import winograd

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences, WinogradCosts


@lowering_stage(needs=("launches", "prefers"))
def split_winograd(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Splits Winograd's convolutions of few tiles: the data's transformation in one launch, the rest in another."""
    if prefers.winograd is None:
        return list(launches)
    return divided(launches, CallKernel, partial(two_sides, prefers.winograd))


def two_sides(figures: WinogradCosts, kernel: CallKernel,
              storages: Sequence[Storage]) -> list[tuple[CallKernel, list[Storage]]]:
    """The kernel itself with its storages; of few tiles, one for the data's side and one for the rest.

    With few tiles threads divide the work by filters, so in one kernel each thread would transform all of the data.
    """
    g = kernel.geometry
    if not isinstance(g, WinogradConvolution) or not _few_tiles(g, figures):
        return [(kernel, list(storages))]
    line = figures.line_bytes // 4  # float32 elements in a line of the cache
    groups = -(-calls.winograd_tiles(g.window) // g.tiles)
    lines = -(-groups * g.tiles * g.window.channels // line)
    # The pitch is an odd number of lines: with an even one the places would share a few sets of the cache.
    pitch = (lines + 1 - lines % 2) * line
    side = calls.winograd_data(kernel.name, kernel.buffers[0], g.window, g.data_strides, g.block, g.tiles, pitch)
    made = Storage("arena", kernel.buffers[0], (winograd.PLACES * pitch,), kernel.name)
    rest, data = _apart(replace(kernel, geometry=replace(g, given=pitch)))
    return [(side, [storages[0], made]), (rest, [made, *storages[1:], *storages[:data]])]


def _apart(kernel: CallKernel) -> tuple[CallKernel, int]:
    """(kernel, number of buffers added): the kernel's first operand is about to become another array, so an epilogue
    that reads the data gets one more buffer for them."""
    values = [s.value for s in kernel.stores]
    found = [v for v in ir.walk(values) if v.op == "load" and v.data == 0]
    if not found:
        return kernel, 0
    new = calls.replaced(values, {id(v): ir.make("load", v.args, v.dtype, len(kernel.buffers)) for v in found})
    stores = tuple(replace(s, value=v) for s, v in zip(kernel.stores, new, strict=True))
    return replace(kernel, buffers=(*kernel.buffers, kernel.buffers[0]), stores=stores), 1


def _few_tiles(g: WinogradConvolution[int], figures: WinogradCosts) -> bool:
    w, (least, most) = g.window, figures.band
    band = most if g.transforms else min(most, max(least, w.channels * w.filters // figures.band_kernels))
    return calls.winograd_tiles(w) < figures.bands * band
