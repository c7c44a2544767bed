"""The canonical form of a loop kernel: as few axes as its indices allow.

Axes of extent 1 go; an axis that is only used divided by a constant, and modulo it, is split in two; adjacent axes that
every index runs through as if they were one are merged. A contiguous elementwise kernel so becomes one flat loop, and
kernels of different shapes share their code.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import INDEX, Accumulator, LoopKernel, Store, Value
from mxc.compiler.kernel.simplify_index import Simplifier, affine, index, substitute

LANES = (4, 8, 16)  # a last axis of so many elements gets code of its own: one or two vectors of float32 or float64
FEW = (2, 3)  # a last axis of so many elements gets code of its own in maps, which a loop of two steps would slow down
REMEMBERED = 512  # the canonical form, and the text, of so many kernels are kept
SHORT_WINDOW = 3  # a window none of whose axes is longer than this has its extents in the code (`fixed`)
WINDOW_STEP = 4  # windows that slide along a row are at most so many elements apart
SHORTEST_SPLIT = 8  # splitting the innermost axis into runs of fewer elements costs more than the division it saves


@functools.lru_cache(REMEMBERED)  # layers repeat
def canonical(kernel: LoopKernel) -> LoopKernel:
    """An equivalent kernel in canonical form; the canonical form of that is itself."""
    kernel = mapped(kernel, kernel.domain, kernel.reduce, {})
    kernel = _without_ones(kernel)
    while (split := _split(kernel)) is not None:
        kernel = split
    position = 0
    while position + 1 < len(kernel.domain) + len(kernel.reduce):
        merged = _merged(kernel, position)
        kernel, position = (merged, max(position - 1, 0)) if merged is not None else (kernel, position + 1)
    return kernel


def mapped(kernel: LoopKernel, domain: Sequence[int], reduce: Sequence[int], axes: Mapping[int, Value]) -> LoopKernel:
    """The kernel over new extents, with its axes replaced by the index values of `axes`, and then simplified."""
    simplify = Simplifier((*domain, *reduce))
    roots = [simplify(v) for v in substitute(kernel.roots(), axes)]
    accumulators = tuple(Accumulator(a.combine, v) for a, v in zip(kernel.accumulators, roots, strict=False))
    rest = roots[len(accumulators):]
    stores = tuple(Store(s.buffer, rest[2 * i], rest[2 * i + 1], s.mode) for i, s in enumerate(kernel.stores))
    return LoopKernel(kernel.name, kernel.buffers, tuple(domain), tuple(reduce), accumulators, stores)


def _without_ones(kernel: LoopKernel) -> LoopKernel:
    extents = kernel.domain + kernel.reduce
    kept = [i for i, n in enumerate(extents) if n != 1]
    if len(kept) == len(extents):
        return kernel
    axes = {old: ir.axis(new) for new, old in enumerate(kept)}
    first = sum(i < len(kernel.domain) for i in kept)
    new = [extents[i] for i in kept]
    stays = {i: index(0) for i, n in enumerate(extents) if n == 1}
    return mapped(kernel, new[:first], new[first:], {**axes, **stays})


def _uses(kernel: LoopKernel) -> list[Value]:
    """The index values whose user is no sum of indices: each is a whole address, condition or operand."""
    found: dict[Value, None] = {}
    for v in ir.walk(kernel.roots()):
        if v.dtype == INDEX and v.op in ("add", "sub", "mul", "neg"):
            continue
        for a in v.args:
            if a.dtype == INDEX:
                found[a] = None
    for root in kernel.roots():
        if root.dtype == INDEX:
            found[root] = None
    return list(found)


def _split(kernel: LoopKernel) -> LoopKernel | None:
    extents = kernel.domain + kernel.reduce
    for v in ir.walk(kernel.roots()):
        if v.dtype != INDEX or v.op not in ("div", "mod") or v.args[0].op != "axis" or v.args[1].op != "const":
            continue
        position, divisor = int(v.args[0].data), int(v.args[1].data)
        innermost = position in (len(kernel.domain) - 1, len(extents) - 1)
        if extents[position] % divisor or (innermost and divisor < SHORTEST_SPLIT):
            continue
        new = [*extents[:position], extents[position] // divisor, divisor, *extents[position + 1:]]
        axes = {i: ir.axis(i + 1) for i in range(position + 1, len(extents))}
        axes[position] = ir.apply("add", ir.apply("mul", ir.axis(position), index(divisor)), ir.axis(position + 1))
        first = len(kernel.domain) + (position < len(kernel.domain))
        return mapped(kernel, new[:first], new[first:], axes)
    return None


def _merged(kernel: LoopKernel, position: int) -> LoopKernel | None:
    """The kernel with axis `position` and the next merged into one, or None where no single axis can stand for both."""
    first = len(kernel.domain)
    if position == first - 1:
        return None
    extents = kernel.domain + kernel.reduce
    outer, inner, run = ir.axis(position), ir.axis(position + 1), extents[position + 1]
    for use in _uses(kernel):
        terms, _ = affine(use)
        if terms.get(outer, 0) != terms.get(inner, 0) * run:
            return None
    axes = {i: ir.axis(i - 1) for i in range(position + 1, len(extents))} | {position: index(0)}
    new = [*extents[:position], extents[position] * run, *extents[position + 2:]]
    first -= position < first
    return mapped(kernel, new[:first], new[first:], axes)


def lanes(kernel: LoopKernel) -> int:
    """The extent of a canonical kernel's last domain axis where it is short and part of the code (channels in blocks:
    one or two vectors for each point of the other axes), else 0: it is an argument like all others."""
    last, is_map = len(kernel.domain) - 1, not kernel.accumulators and not kernel.reduce
    if last < 0 or kernel.domain[last] not in ((*FEW, *LANES) if is_map else LANES):
        return 0
    if kernel.accumulators and kernel.reduce:
        if _slides(kernel):
            return 0
        score = contiguity(kernel)
        return kernel.domain[last] if score(last) > score(last + len(kernel.reduce)) else 0
    return kernel.domain[last] if is_map and last > 0 else 0


def _slides(kernel: LoopKernel) -> bool:
    """Whether neighbouring points of the last domain axis load the same elements, as windows do that slide along it:
    these points are a row of an image, and no lanes."""
    first, last = len(kernel.domain), len(kernel.domain) - 1
    for v in ir.walk(kernel.roots()):
        terms = affine(v.args[0])[0] if v.op == "load" else {}
        step = terms.get(ir.axis(last), 0)
        if 0 < step <= WINDOW_STEP and any(0 < abs(terms.get(ir.axis(first + i), 0)) < kernel.domain[last] * step
                                           for i in range(len(kernel.reduce))):
            return True
    return False


def fixed(kernel: LoopKernel) -> dict[int, int]:
    """axis -> extent of the axes whose extents are part of the code of a canonical kernel: the lanes, and the axes of a
    short window, whose loops would take longer than what is in them."""
    width, first = lanes(kernel), len(kernel.domain)
    is_window = len(kernel.reduce) > 1 or width
    window = kernel.reduce if is_window and max(kernel.reduce, default=0) <= SHORT_WINDOW else ()
    return {**({first - 1: width} if width else {}), **dict(enumerate(window, first))}


def contiguity(kernel: LoopKernel) -> Callable[[int], int]:
    """A score for each axis of a kernel that reduces: how many loads and stores move by one element along it, less
    those that move by more. What moves along no reduce axis does not count, as each result needs it once; but one
    store does, which decides where loads go either way."""
    reduced = {ir.axis(len(kernel.domain) + i) for i in range(len(kernel.reduce))}
    loads, stores = [v.args[0] for v in ir.walk(kernel.roots()) if v.op == "load"], [s.index for s in kernel.stores]
    swept = [place for place in (*loads, *stores) if not reduced.isdisjoint(ir.walk([place]))]
    once = [place for place in stores if place not in swept][:1]
    places = [affine(place)[0] for place in (*swept, *once)]

    def score(axis: int) -> int:
        strides = [terms.get(ir.axis(axis), 0) for terms in places]
        return sum(s == 1 for s in strides) - sum(abs(s) > 1 for s in strides)

    return score
