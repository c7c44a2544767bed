"""Memory planning: which storages share memory, at which offsets, in one arena as small as can be."""
from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mxc.compiler.kernel import calls
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, FunctionKernel, RoutineKernel
from mxc.compiler.lowering.launches import Launch, Storage, can_share, last_uses
from mxc.compiler.lowering.stage import Program, lowering_stage
from mxc.compiler.plan import Buffer, Faults, Plan, Refusals, Step

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget

MOST_COMPARED = 2048  # intervals: up to here each is compared with all others, which takes a second or two
ALIGNMENT = 64  # bytes: a cache line, and the widest vector


@dataclass
class Interval:
    """Storages that share one place, alive from launch `first` to launch `last`."""

    storages: list[Storage]
    first: int
    last: int
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return align(max(s.nbytes for s in self.storages))


def align(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def intervals(launches: Sequence[Launch], in_place: bool = True) -> list[Interval]:
    """The lifetimes of the arena's storages; a result that may overwrite a dying input joins the input's interval."""
    last = last_uses(launches)
    found: dict[Storage, Interval] = {}
    for position, launch in enumerate(launches):
        for storage in launch.writes:
            if storage.pool != "arena" or storage in found:
                continue
            dying = [s for s in dict.fromkeys(launch.reads)
                     if s in found and found[s].last == position and in_place and can_share(launch, s, storage)]
            if dying:
                home = found[dying[0]]
                home.storages.append(storage)
                home.last = last[storage]
                found[storage] = home
            else:
                found[storage] = Interval([storage], position, last[storage])
    return list({id(i): i for i in found.values()}.values())


def place(lifetimes: Sequence[Interval]) -> int:
    """Set every interval's offset; returns the bytes of an arena that holds them all.

    Each interval, in several orders, goes to the smallest gap that fits between those alive at the same time; the best
    order wins. More than MOST_COMPARED intervals are placed once, in the order in which they begin: each goes to the
    smallest gap that is free then.
    """
    if len(lifetimes) > MOST_COMPARED:
        return _place_in_time(lifetimes)
    sizes = {id(i): i.nbytes for i in lifetimes}
    orders: list[Callable[[Interval], tuple]] = [
        lambda i: (-i.nbytes, i.first), lambda i: (-(i.last - i.first), -i.nbytes), lambda i: (i.first, -i.nbytes),
        lambda i: (-i.nbytes * (i.last - i.first + 1), i.first), lambda i: (-i.last, -i.nbytes)]
    best: tuple[int, list[int]] | None = None
    for key in orders:
        top = _place_in_order(sorted(lifetimes, key=key), sizes)
        if best is None or top < best[0]:
            best = top, [i.offset for i in lifetimes]
    if best is None:
        return 0
    for interval, offset in zip(lifetimes, best[1], strict=True):
        interval.offset = offset
    return best[0]


def _place_in_time(lifetimes: Sequence[Interval]) -> int:
    """Like `place`, for very many intervals: goes through them in the order in which they begin."""
    free: list[tuple[int, int]] = []  # gaps (offset, bytes), sorted by offset; gaps that touch are joined to one
    ending: list[tuple[int, int, int]] = []  # a heap of the intervals alive: (last launch, offset, bytes)
    top = 0
    for interval in sorted(lifetimes, key=lambda i: i.first):
        while ending and ending[0][0] < interval.first:
            _, offset, size = heapq.heappop(ending)
            place = bisect.bisect(free, (offset, size))
            if place < len(free) and free[place][0] == offset + size:
                size += free.pop(place)[1]
            if place and sum(free[place - 1]) == offset:
                place -= 1
                offset, size = free[place][0], size + free.pop(place)[1]
            free.insert(place, (offset, size))
        size = interval.nbytes
        fitting = min((gap for gap in free if gap[1] >= size), key=lambda gap: gap[1], default=None)
        if fitting is not None:
            place = bisect.bisect_left(free, fitting)
            interval.offset, rest = fitting[0], fitting[1] - size
            free[place:place + 1] = [(fitting[0] + size, rest)] if rest else []
        else:
            last = free.pop() if free and sum(free[-1]) == top else (top, 0)  # A gap at the arena's end may grow.
            interval.offset, top = last[0], last[0] + size
        heapq.heappush(ending, (interval.last, interval.offset, size))
    return top


def _place_in_order(order: Sequence[Interval], sizes: Mapping[int, int]) -> int:
    """Like `place`, for one order of the intervals. sizes: bytes, by id() of the interval."""
    placed: list[Interval] = []
    top = 0
    for interval in order:
        size = sizes[id(interval)]
        first, last = interval.first, interval.last
        beside = sorted((p.offset, sizes[id(p)]) for p in placed if p.first <= last and first <= p.last)
        interval.offset = _gap(beside, size)
        placed.append(interval)
        top = max(top, interval.offset + size)
    return top


def _gap(beside: Sequence[tuple[int, int]], nbytes: int) -> int:
    """The offset of the smallest gap of `nbytes` or more between the pieces `beside`; if there is none, their end.

    beside: (offset, bytes) of each piece, sorted by offset.
    """
    best, best_size, end = -1, 0, 0
    for offset, taken in beside:
        size = offset - end
        if size >= nbytes and (best < 0 or size < best_size):
            best, best_size = end, size
        end = max(end, offset + taken)
    return end if best < 0 else best


def largest_live_set(lifetimes: Sequence[Interval]) -> int:
    """The most bytes alive at one time: no placement can need less."""
    change: dict[int, int] = {}
    for interval in lifetimes:
        change[interval.first] = change.get(interval.first, 0) + interval.nbytes
        change[interval.last + 1] = change.get(interval.last + 1, 0) - interval.nbytes
    alive = most = 0
    for position in sorted(change):
        alive += change[position]
        most = max(most, alive)
    return most


def _plan_text(program: Program) -> str:
    return program.plan.text([node.name for node in program.graph.nodes], program.names)


@lowering_stage(needs=("launches", "outputs", "target"), gives=("plan",), also="plan", text=_plan_text)
def plan_memory(launches: Sequence[Launch], outputs: Sequence[Storage], target: KernelTarget,
                in_place: bool = True) -> Plan:
    """Plans memory: lifetimes of arrays, results in place of their inputs, offsets in one arena.

    launches: in the order in which they run. outputs: the storages of the graph's outputs, in order.
    """
    plan = Plan()
    lifetimes = intervals(launches, in_place)
    plan.arena_bytes = place(lifetimes)
    plan.live_bytes = largest_live_set(lifetimes)
    offsets = {s: i.offset for i in lifetimes for s in i.storages}
    plan.unplanned_bytes = sum(align(s.nbytes) for s in offsets)
    positions: dict[Storage, int] = {}

    def position(storage: Storage) -> int:
        if storage in positions:
            return positions[storage]
        offset = offsets.get(storage, 0)
        if storage.pool == "prepared":
            offset = plan.prepared_bytes
            plan.prepared_bytes += align(storage.nbytes)
        elif storage.pool == "status":
            offset = plan.status_bytes
        positions[storage] = len(plan.buffers)
        plan.buffers.append(Buffer(storage.pool, storage.dtype, storage.shape, storage.nbytes, storage.name, offset,
                                   storage.node))
        return positions[storage]

    for launch in launches:
        key, units, flops, values, addresses = "", 1, 0, tuple[int, ...](), tuple[tuple[int, str], ...]()
        faults: Faults | Refusals | None = None
        if launch.kernel is not None:
            code = target.launch(launch.kernel)
            key, values, units, addresses = code.key, code.values, code.units, code.calls
            flops = calls.flops(launch.kernel) if isinstance(launch.kernel, CallKernel | ChainKernel) else 0
            if isinstance(launch.kernel, FunctionKernel):
                faults = launch.kernel.function.faults(launch.kernel.arrays)
            elif isinstance(launch.kernel, RoutineKernel) and launch.kernel.refusals:
                faults = Refusals(launch.kernel.refusals)
            plan.scratch_bytes = max(plan.scratch_bytes, align(code.scratch_bytes))
        if launch.loop is not None:
            flops = launch.loop.length * sum(step.flops for step in launch.loop.plan.steps)
            plan.scratch_bytes = max(plan.scratch_bytes, launch.loop.plan.scratch_bytes)
        plan.steps.append(Step(launch.phase, key, tuple(map(position, launch.storages)), values, units,
                               tuple(map(position, launch.reads)), tuple(map(position, launch.writes)),
                               launch.label, launch.host, flops, addresses, faults, launch.loop,
                               tuple(sorted(launch.origin))))
    plan.outputs = [position(s) for s in outputs]
    return plan
