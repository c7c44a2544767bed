"""Split reductions to few points: partial results in the first kernel, the rest in a second.

The split depends on the shape alone, never on the number of threads, so that results do not either.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mxc.compiler.kernel.canonical import canonical, lanes
from mxc.compiler.kernel.ir import (
    INDEX,
    Accumulator,
    LoopKernel,
    Store,
    Value,
    acc,
    apply,
    axis,
    const,
    load,
    make,
    walk,
)
from mxc.compiler.kernel.simplify_index import substitute
from mxc.compiler.lowering.launches import Launch, Storage, divided
from mxc.compiler.lowering.stage import lowering_stage

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences, Reductions


@lowering_stage(needs=("launches", "prefers"))
def split_reduction(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Splits large reductions to few values: partial results in one launch, the results in another."""
    if prefers.reductions is None:
        return list(launches)
    return divided(launches, LoopKernel, partial(two_sums, prefers.reductions))


def two_sums(figures: Reductions, kernel: LoopKernel,
             storages: Sequence[Storage]) -> list[tuple[LoopKernel, list[Storage]]]:
    """The kernel itself with its storages, or two kernels: partial accumulators, then their combination."""
    whole = [(kernel, list(storages))]
    if any(a.combine not in ("sum", "prod", "max", "min") for a in kernel.accumulators):
        return whole
    domain, length = math.prod(kernel.domain), math.prod(kernel.reduce)
    if domain >= figures.few or length < figures.long or not kernel.accumulators:
        return whole
    if _sweeps_after(kernel) or any(v.op == "acc" for a in kernel.accumulators for v in walk([a.body])):
        return whole
    position = next((i for i, d in enumerate(kernel.reduce) if d > 1), 0)
    extent = kernel.reduce[position]
    parts = _parts(extent, max(1, min(extent, length // figures.part)))
    if parts == 1:
        return whole
    return _two_kernels(kernel, list(storages), position, parts)


def _sweeps_after(kernel: LoopKernel) -> bool:
    """True when a store runs at every point of the reduce axes."""
    first = len(kernel.domain)
    return any(v.op == "axis" and int(v.data) >= first
               for s in kernel.stores for v in walk([s.index, s.value]))


def _parts(extent: int, wanted: int) -> int:
    """The divisor of `extent` nearest below or at `wanted`."""
    return next(n for n in range(wanted, 0, -1) if extent % n == 0)


def _two_kernels(kernel: LoopKernel, storages: list[Storage], position: int,
                 parts: int) -> list[tuple[LoopKernel, list[Storage]]]:
    """Axis `position` of the reduce axes becomes (part, rest): `part` joins the domain as its last axis, but before
    lanes, which stay last."""
    rank, extent = len(kernel.domain), kernel.reduce[position]
    rest, where = extent // parts, 0 if lanes(kernel) else rank
    domain = (*kernel.domain[:where], parts, *kernel.domain[where:])
    moved = {i: axis(i + 1) for i in range(where, rank + len(kernel.reduce))}
    split_axis = apply("add", apply("mul", axis(where), const(rest, INDEX)), axis(rank + 1 + position))
    moved[rank + position] = split_axis
    reduce = tuple(rest if i == position else d for i, d in enumerate(kernel.reduce))
    first_buffers, first_storages = list(kernel.buffers), list(storages)
    partials: list[Storage] = []
    accumulators, stores = [], []
    for number, accumulator in enumerate(kernel.accumulators):
        dtype = accumulator.body.dtype
        partial = Storage("arena", dtype, domain, f"partial{number}")
        partials.append(partial)
        first_buffers.append(dtype)
        first_storages.append(partial)
        accumulators.append(Accumulator(accumulator.combine, substitute([accumulator.body], moved)[0]))
        stores.append(Store(len(first_buffers) - 1, _flat(domain), acc(number, dtype)))
    first = compact(LoopKernel(kernel.name, tuple(first_buffers), domain, reduce,
                                tuple(accumulators), tuple(stores)), first_storages)
    second_buffers = [*kernel.buffers, *(p.dtype for p in partials)]
    back = {where: axis(rank), **{i + 1: axis(i) for i in range(where, rank)}}
    index = substitute([_flat(domain)], back)[0]
    combined = tuple(Accumulator(a.combine, load(len(kernel.buffers) + i, index, a.body.dtype))
                     for i, a in enumerate(kernel.accumulators))
    second = compact(LoopKernel(kernel.name, tuple(second_buffers), kernel.domain, (parts,), combined,
                                 kernel.stores), [*storages, *partials])
    return [first, second]


def _flat(shape: Sequence[int]) -> Value:
    """The row-major position of axes 0, 1, ... in an array of `shape`."""
    position: Value = const(0, INDEX)
    for number, extent in enumerate(shape):
        here = axis(number)
        position = here if number == 0 else apply("add", apply("mul", position, const(extent, INDEX)), here)
    return position


def compact(kernel: LoopKernel, storages: Sequence[Storage]) -> tuple[LoopKernel, list[Storage]]:
    """The kernel, canonical, without the buffers that it does not touch, and the storages of the others."""
    used = sorted(kernel.reads() | kernel.writes())
    new = {old: position for position, old in enumerate(used)}

    def renumber(root: Value) -> Value:
        done: dict[Value, Value] = {}
        for value in walk([root]):
            args = [done[a] for a in value.args]
            data = new[int(value.data)] if value.op == "load" else value.data
            done[value] = make(value.op, args, value.dtype, data)
        return done[root]

    accumulators = tuple(Accumulator(a.combine, renumber(a.body)) for a in kernel.accumulators)
    stores = tuple(Store(new[s.buffer], renumber(s.index), renumber(s.value), s.mode) for s in kernel.stores)
    buffers = tuple(kernel.buffers[i] for i in used)
    made = LoopKernel(kernel.name, buffers, kernel.domain, kernel.reduce, accumulators, stores)
    return canonical(made), [storages[i] for i in used]
