"""Products of long sums with few results: sums over parts of the depth in one launch, the results in another. Products
that somebody else computes, as a library: their epilogues in launches of their own.

Blocks of threads compute tiles of a result. Where it has fewer tiles than blocks run at a time, the depth is divided
too, by sizes alone: each block sums a part of it, and the second launch adds the parts up in their order.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from mxc.compiler.kernel import calls, ir, parts
from mxc.compiler.kernel.ir import Accumulator, CallKernel, Kernel, LoopKernel
from mxc.compiler.lowering.launches import Launch, Storage, divided
from mxc.compiler.lowering.split_reduction import compact
from mxc.compiler.lowering.stage import lowering_stage

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Depths, Preferences


@lowering_stage(needs=("launches", "prefers"))
def split_depth(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Splits products of few results and long sums into parts, and epilogues from a library's products."""
    if prefers.depths is None:
        return list(launches)
    return divided(launches, CallKernel, partial(in_parts, prefers.depths))


def in_parts(figures: Depths, kernel: CallKernel, storages: Sequence[Storage]) -> list[tuple[Kernel, list[Storage]]]:
    """The kernel itself with its storages, or two kernels: sums over parts of the depth, or the whole product, then
    their sums with the kernel's epilogue."""
    if parts.sums(kernel.geometry) is None or figures.whole(kernel):
        return [(kernel, list(storages))]
    if (bare := _bare(kernel)) is not None and figures.apart(bare):
        return _with_epilogue(kernel, bare, storages, 1)
    part = _part(figures, kernel)
    if part == 0:
        return [(kernel, list(storages))]
    divided_up = parts.parts(kernel.geometry, part)
    count, *_ = parts.output_axes(divided_up)
    first = parts.dense(kernel, divided_up, ir.computing_dtype(kernel.geometry.dtype))
    return _with_epilogue(kernel, first, storages, count)


def _bare(kernel: CallKernel) -> CallKernel | None:
    """A kernel without its epilogue; None where that reads more of a result than its dtype holds."""
    dtype = kernel.geometry.dtype
    if any(v.op == "acc" and v.dtype != dtype for v in ir.walk(s.value for s in kernel.stores)):
        return None
    return parts.dense(kernel, kernel.geometry, dtype)


def _with_epilogue(kernel: CallKernel, first: CallKernel, storages: Sequence[Storage], count: int,
                   ) -> list[tuple[Kernel, list[Storage]]]:
    """`first`, which stores `count` sums for each result or the result itself, and a kernel's epilogue over these."""
    axes, dtype = parts.output_axes(kernel.geometry), first.buffers[-1]
    made = Storage("arena", dtype, axes if count == 1 else (count, *axes), kernel.name)
    strides = {axis: prod(axes[axis + 1:]) for axis in range(len(axes))}
    values = [s.value for s in kernel.stores]
    sums: tuple[Accumulator, ...] = ()
    total = ir.load(len(kernel.buffers), calls.linear(strides), dtype)
    if count > 1:
        place = calls.linear({**strides, len(axes): prod(axes)})
        sums = (Accumulator("sum", ir.load(len(kernel.buffers), place, dtype)),)
        total = ir.acc(0, dtype)
    finished = {id(v): ir.cast(total, v.dtype) for v in ir.walk(values) if v.op == "acc"}
    stores = tuple(replace(s, value=v) for s, v in zip(kernel.stores, calls.replaced(values, finished), strict=True))
    second = LoopKernel(kernel.name, (*kernel.buffers, dtype), axes, (count,) if count > 1 else (), sums, stores)
    return [(first, [*storages[:kernel.operands], made]), compact(second, [*storages, made])]


def _part(figures: Depths, kernel: CallKernel) -> int:
    """How much of the depth each part of a kernel has; 0 for one that stays whole."""
    sizes = parts.sums(kernel.geometry)
    assert sizes is not None
    groups, rows, columns, depth = sizes
    tiles = groups * -(-rows // figures.tile[0]) * -(-columns // figures.tile[1])
    if not 0 < tiles < figures.few:
        return 0
    count = min(-(-figures.blocks // tiles), depth // figures.part)
    return -(-depth // (count * figures.step)) * figures.step if count > 1 else 0
