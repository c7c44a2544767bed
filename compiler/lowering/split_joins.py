"""Kernels of joined arrays by their parts: a loop for each stretch, instead of a choice at every point.

What a concatenation computes depends on where along an axis a point lies. As one loop it would compute, or load under
a mask, all parts for every point. Each long stretch becomes a kernel of its own over the same storages, and so does
what lies between two of them; parts with the same formula share its code.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import mapped
from mxc.compiler.kernel.ir import INDEX, LoopKernel, Value
from mxc.compiler.kernel.simplify_index import affine, index
from mxc.compiler.lowering.launches import Launch, Storage, divided
from mxc.compiler.lowering.split_reduction import compact
from mxc.compiler.lowering.stage import lowering_stage

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Joins, Preferences

MOST = 64  # parts: where an axis would be divided into more, the kernel stays whole

Part = tuple[LoopKernel, list[Storage]]


@lowering_stage(needs=("launches", "prefers"))
def split_joins(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Splits kernels of joined arrays by their parts: a launch for each long stretch of an axis."""
    if prefers.joins is None:
        return list(launches)
    return divided(launches, LoopKernel, partial(stretches, prefers.joins))


def stretches(figures: Joins, kernel: LoopKernel, storages: Sequence[Storage]) -> list[Part]:
    """The kernel itself with its storages, or one for each stretch of an axis that its conditions divide."""
    if not kernel.accumulators:
        cuts = _cuts(kernel)
        for axis, places in sorted(cuts.items()):
            rest = math.prod(kernel.domain) // kernel.domain[axis]
            bounds = _long(sorted(places), kernel.domain[axis], -(-figures.shortest // max(1, rest)))
            if 2 < len(bounds) <= MOST + 1:
                parts = [_part(kernel, storages, axis, *pair) for pair in pairwise(bounds)]
                return [smaller for part in parts for smaller in stretches(figures, *part)]
    return [(kernel, list(storages))]


def _long(places: Sequence[int], end: int, least: int) -> list[int]:
    """0, `end`, and the places between them that bound a stretch of at least `least` points, if there are two such
    stretches. Shorter stretches that follow each other stay together, such as the biases among the parameters of a
    recurrent layer."""
    long = [pair for pair in pairwise([0, *places, end]) if pair[1] - pair[0] >= least]
    return sorted({0, end, *(bound for pair in long for bound in pair)}) if len(long) > 1 else [0, end]


def _part(kernel: LoopKernel, storages: Sequence[Storage], axis: int, start: int, stop: int) -> Part:
    """The points from `start` up to `stop` of an axis."""
    domain = tuple(stop - start if i == axis else n for i, n in enumerate(kernel.domain))
    moved = {axis: ir.apply("add", ir.axis(axis), index(start))}
    return compact(mapped(kernel, domain, kernel.reduce, moved), storages)


def _cuts(kernel: LoopKernel) -> dict[int, set[int]]:
    """By axis, the points at which conditions on that axis alone change."""
    found: dict[int, set[int]] = {}
    for v in ir.walk(kernel.roots()):
        if v.op in ("lt", "le", "gt", "ge") and v.args[0].dtype == INDEX:
            place = _cut(v, kernel.domain)
            if place is not None and 0 < place[1] < kernel.domain[place[0]]:
                found.setdefault(place[0], set()).add(place[1])
    return found


def _cut(condition: Value, extents: Sequence[int]) -> tuple[int, int] | None:
    """(axis, first point at which the comparison is not what it was at the points before).

    The comparison is one of factor * axis + rest with a constant. The rest, axes with smaller factors, is always less
    than one step of the axis: `i * 64 + j < 128` with j < 64 changes at i = 2.
    """
    terms, constant = affine(ir.apply("sub", *condition.args))
    if not terms or any(atom.op != "axis" for atom in terms):
        return None
    atom, factor = max(terms.items(), key=lambda term: abs(term[1]))
    if condition.op in ("gt", "le"):  # x > 0 is x - 1 >= 0
        constant -= 1
    if factor < 0:  # x >= 0 is -x - 1 < 0
        terms, factor, constant = {a: -f for a, f in terms.items()}, -factor, -constant - 1
    rest = [(int(a.data), f) for a, f in terms.items() if a is not atom]
    if constant % factor or any(f < 0 for _, f in rest) or sum(f * (extents[a] - 1) for a, f in rest) >= factor:
        return None
    return int(atom.data), -constant // factor
