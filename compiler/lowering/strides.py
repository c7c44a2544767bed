"""Copies that do nothing but rearrange what a product reads or writes: the product does so itself, by its strides.

Attention multiplies slices of one array, head by head, and puts the heads behind each other again. Each of these slices
and transpositions would be a launch of its own, which writes to memory what the product then reads from there.

A copy is here a map that stores each element that it loads as it is, or times a number; both places are sums of axes
times strides. An axis of the product runs through the array between the two by a stride of its own, which is a number
of steps along an axis of the copy, and so a stride in the array on the copy's other side.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.gemm_of_parts import GemmOfParts, moved_gemm
from mxc.compiler.kernel.geometry import Gemm
from mxc.compiler.kernel.ir import CallKernel, LoopKernel, Store, Value
from mxc.compiler.kernel.simplify_index import affine
from mxc.compiler.lowering.launches import Launch, Storage
from mxc.compiler.lowering.stage import lowering_stage

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences, Products

EXACT = ("float32", "float64")  # numbers of these dtypes are not rounded between a product and its factor


@dataclass(frozen=True)
class _Place:
    """Where a copy loads or stores: `start` plus a stride for each axis."""

    start: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _Copy:
    """position: that of its launch. extents: of its axes. factor: what each element is multiplied by, if anything."""

    position: int
    source: Storage
    target: Storage
    extents: tuple[int, ...]
    loads: _Place
    stores: _Place
    factor: Value | None


@lowering_stage(needs=("launches", "prefers"))
def strides(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Leaves out copies that rearrange what a product reads or writes: it does so itself, by its strides."""
    if prefers.products is None:
        return list(launches)
    return _Rearranging(launches, prefers.products).run()


class _Rearranging:
    """given: the launches of the program. launches: what becomes of them; None where a copy was left out."""

    def __init__(self, launches: Sequence[Launch], figures: Products):
        self.given, self.figures = launches, figures
        self.launches: list[Launch | None] = list(launches)
        self.users: dict[Storage, list[int]] = {}  # the positions of the launches that read or write it
        for position, launch in enumerate(launches):
            for storage in dict.fromkeys(launch.storages):
                self.users.setdefault(storage, []).append(position)

    def run(self) -> list[Launch]:
        for position, launch in enumerate(self.given):
            copy = _copy_of(launch, position)
            if copy is not None and (self.read_by_products(copy) or self.written_by_a_product(copy)):
                self.launches[position] = None
        return [launch for launch in self.launches if launch is not None]

    def read_by_products(self, copy: _Copy) -> bool:
        """Lets all that read the copy's result, which must be products, read its source."""
        made = copy.target
        readers = [p for p in self.users[made] if p != copy.position]
        if made.pool != "arena" or not readers or readers[0] < copy.position:
            return False
        if self.is_written(copy.source, range(copy.position + 1, readers[-1] + 1)):
            return False
        changed = {p: launch for p in readers if (launch := self._reading(p, copy)) is not None}
        if len(changed) < len(readers):
            return False
        self.put(changed, copy)
        return True

    def written_by_a_product(self, copy: _Copy) -> bool:
        """Lets the product that makes the copy's source, which nobody else reads, write the copy's result."""
        made, target = copy.source, copy.target
        if made.pool != "arena" or copy.factor is not None or len(self.users[made]) != 2:
            return False
        writer = self.users[made][0]
        if writer > copy.position or any(writer <= p < copy.position for p in self.users[target]):
            return False
        launch = self._writing(writer, copy)
        if launch is not None:
            self.put({writer: launch}, copy)
        return launch is not None

    def is_written(self, storage: Storage, positions: range) -> bool:
        found = (self.launches[p] for p in self.users[storage] if p in positions)
        return any(launch is not None and storage in launch.writes for launch in found)

    def put(self, changed: dict[int, Launch], copy: _Copy) -> None:
        """Puts launches to their places, and takes the copy's out of the users."""
        for storage in (copy.source, copy.target):
            self.users[storage].remove(copy.position)
        for position, launch in changed.items():
            self.launches[position] = launch
            for storage in (copy.source, copy.target):
                if storage in launch.storages and position not in self.users[storage]:
                    self.users[storage] = sorted([*self.users[storage], position])

    def _reading(self, position: int, copy: _Copy) -> Launch | None:
        """The launch at `position`, which reads the copy's source in place of its result; None where it cannot."""
        launch, first = self.launches[position], self.launches[copy.position]
        assert launch is not None and first is not None
        kernel = launch.kernel
        if not isinstance(kernel, CallKernel) or not isinstance(kernel.geometry, Gemm) or kernel.geometry.packed_b:
            return None
        g, storages, stores = kernel.geometry, list(launch.storages), kernel.stores
        slots = [i for i, storage in enumerate(storages) if storage is copy.target]
        if any(slot >= kernel.operands for slot in slots) or copy.source in launch.writes or _loads(kernel, slots):
            return None
        steps, starts = [g.a_strides, g.b_strides], list(g.starts if isinstance(g, GemmOfParts) else (0, 0))
        extents = (g.batch, g.m, g.k), (g.batch, g.k, g.n)
        for slot in slots:
            found = _through(copy, copy.stores, copy.loads, extents[slot], steps[slot]) if not starts[slot] else None
            if found is None or 1 not in found.strides[1:] or min(found.strides) < 0:
                return None
            steps[slot], starts[slot] = (found.strides[0], found.strides[1], found.strides[2]), found.start
            storages[slot] = copy.source
            if copy.factor is not None:
                stores = _times(stores, copy.factor)
        made = moved_gemm(g, steps[0], steps[1], (starts[0], starts[1]), self.figures)
        return None if made is None else _joined(first, launch, replace(kernel, geometry=made, stores=stores), storages)

    def _writing(self, position: int, copy: _Copy) -> Launch | None:
        """The launch at `position`, which writes the copy's result in place of its source; None where it cannot."""
        launch, second = self.launches[position], self.launches[copy.position]
        assert launch is not None and second is not None
        kernel = launch.kernel
        if not isinstance(kernel, CallKernel) or not isinstance(kernel.geometry, Gemm):
            return None
        g = kernel.geometry
        slots = [i for i, storage in enumerate(launch.storages) if storage is copy.source]
        modes = [s.mode for s in kernel.stores if s.buffer in slots]
        if len(slots) != 1 or modes != ["write"] or _loads(kernel, slots):
            return None
        store = next(s for s in kernel.stores if s.buffer == slots[0])
        written, extents = _place(store.index, 3), (g.batch, g.m, g.n)
        if written is None or written.start or prod(extents) != prod(copy.extents):
            return None
        found = _through(copy, copy.loads, copy.stores, extents, written.strides)
        if found is None or found.strides[2] != 1 or min(found.strides) < 0:
            return None
        index = calls.linear(dict(enumerate(found.strides)), found.start)
        stores = tuple(replace(s, index=index) if s is store else s for s in kernel.stores)
        storages = [copy.target if storage is copy.source else storage for storage in launch.storages]
        return _joined(launch, second, replace(kernel, stores=stores), storages)


def _loads(kernel: CallKernel, slots: Sequence[int]) -> bool:
    """Whether the epilogue of a product reads one of these buffers: an operand that is added to the result, too."""
    values = [value for store in kernel.stores for value in (store.value, store.index)]
    return any(v.op == "load" and int(v.data) in slots for v in ir.walk(values))


def _copy_of(launch: Launch, position: int) -> _Copy | None:
    """The copy that a launch is; None for another one."""
    kernel = launch.kernel
    if not isinstance(kernel, LoopKernel) or kernel.reduce or len(kernel.stores) != 1 or len(launch.storages) != 2:
        return None
    store, rank = kernel.stores[0], len(kernel.domain)
    value, factor = store.value, None
    if value.op == "mul" and value.dtype in EXACT and value.args[1].op == "const":
        value, factor = value.args
    dtypes = set(kernel.buffers)
    if value.op != "load" or len(value.args) != 1 or store.mode != "write" or len(dtypes) > 1:
        return None
    loads, stores = _place(value.args[0], rank), _place(store.index, rank)
    source, target = launch.storages[int(value.data)], launch.storages[store.buffer]
    if loads is None or stores is None or source is target or value.dtype not in dtypes:
        return None
    return _Copy(position, source, target, kernel.domain, loads, stores, factor)


def _place(index: Value, rank: int) -> _Place | None:
    """An index over so many axes; None for one that is no sum of axes times strides."""
    terms, start = affine(index)
    axes = [ir.axis(i) for i in range(rank)]
    return _Place(start, tuple(terms.get(a, 0) for a in axes)) if set(terms) <= set(axes) else None


def _through(copy: _Copy, near: _Place, far: _Place, extents: Sequence[int], steps: Sequence[int]) -> _Place | None:
    """Where, on the far side of a copy, lies what axes of these extents and strides run through on the near side; None
    where that is no such place. The near side is without gaps and read or written once."""
    axes = sorted((stride, axis) for axis, stride in enumerate(near.strides) if copy.extents[axis] > 1)
    dense = 1
    for stride, axis in axes:
        if stride != dense:
            return None
        dense *= copy.extents[axis]
    last = dict.fromkeys(range(len(copy.extents)), 0)  # of each axis, the last place that is reached
    found = []
    for extent, step in zip(extents, steps, strict=True):
        if extent == 1 or step == 0:
            found.append(0)
            continue
        stride, axis = max((each for each in axes if each[0] <= step), default=(0, 0))
        if stride == 0 or step % stride:
            return None
        last[axis] += step // stride * (extent - 1)
        found.append(step // stride * far.strides[axis])
    if near.start or any(last[axis] >= copy.extents[axis] for axis in last):
        return None
    return _Place(far.start, tuple(found))


def _times(stores: tuple[Store, ...], factor: Value) -> tuple[Store, ...]:
    """The stores of an epilogue, whose results are multiplied by a number first."""
    values = [s.value for s in stores]
    new = {id(v): ir.apply("mul", v, ir.const(factor.data, v.dtype)) for v in ir.walk(values) if v.op == "acc"}
    return tuple(replace(s, value=v) for s, v in zip(stores, calls.replaced(values, new), strict=True))


def _joined(first: Launch, second: Launch, kernel: CallKernel, storages: list[Storage]) -> Launch:
    """The product's launch, which does what both do."""
    label = f"{first.label}+{second.label}"
    product = second if isinstance(second.kernel, CallKernel) else first
    return replace(product, label=label, kernel=replace(kernel, name=label), storages=storages,
                   origin=first.origin | second.origin)
