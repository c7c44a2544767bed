"""Products of long sums with few results: sums over parts of the depth in one launch, the results in another.

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
from mxc.compiler.kernel.ir import Accumulator, CallKernel, Kernel, LoopKernel, Store
from mxc.compiler.lowering.launches import Launch, Storage, divided
from mxc.compiler.lowering.split_reduction import compact
from mxc.compiler.lowering.stage import lowering_stage

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Depths, Preferences


@lowering_stage(needs=("launches", "prefers"))
def split_depth(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Splits products of long sums with few results: sums of parts in one launch, the results in another."""
    if prefers.depths is None:
        return list(launches)
    return divided(launches, CallKernel, partial(in_parts, prefers.depths))


def in_parts(figures: Depths, kernel: CallKernel, storages: Sequence[Storage]) -> list[tuple[Kernel, list[Storage]]]:
    """The kernel itself with its storages, or two kernels: sums over parts of the depth, then their sums with the
    kernel's epilogue."""
    part = _part(figures, kernel)
    if part == 0 or figures.whole(kernel):
        return [(kernel, list(storages))]
    divided_up = parts.parts(kernel.geometry, part)
    count, *axes = parts.output_axes(divided_up)
    dtype = ir.computing_dtype(kernel.geometry.dtype)
    made = Storage("arena", dtype, (count, *axes), kernel.name)
    strides = [prod(axes[i:]) for i in range(len(axes) + 1)]  # of the part, then of the axes
    store = Store(kernel.operands, calls.linear(dict(enumerate(strides))), ir.acc(0, dtype))
    first = CallKernel(kernel.name, divided_up, (*kernel.buffers[:kernel.operands], dtype), (store,))
    place = calls.linear({**{i: strides[i + 1] for i in range(len(axes))}, len(axes): strides[0]})
    total = Accumulator("sum", ir.load(len(kernel.buffers), place, dtype))
    values = [s.value for s in kernel.stores]
    finished = {id(v): ir.cast(ir.acc(0, dtype), v.dtype) for v in ir.walk(values) if v.op == "acc"}
    stores = tuple(replace(s, value=v) for s, v in zip(kernel.stores, calls.replaced(values, finished), strict=True))
    second = LoopKernel(kernel.name, (*kernel.buffers, dtype), tuple(axes), (count,), (total,), stores)
    return [(first, [*storages[:kernel.operands], made]), compact(second, [*storages, made])]


def _part(figures: Depths, kernel: CallKernel) -> int:
    """How much of the depth each part of a kernel has; 0 for one that stays whole."""
    sizes = parts.sums(kernel.geometry)
    if sizes is None:
        return 0
    groups, rows, columns, depth = sizes
    tiles = groups * -(-rows // figures.tile[0]) * -(-columns // figures.tile[1])
    if not 0 < tiles < figures.few:
        return 0
    count = min(-(-figures.blocks // tiles), depth // figures.part)
    return -(-depth // (count * figures.step)) * figures.step if count > 1 else 0
