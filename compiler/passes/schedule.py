"""The order of the launches: within each phase, the one that keeps least memory alive goes first."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.passes.phases import BACKWARD, FORWARD, PREPARE
from mxc.compiler.passes.program import Launch, Storage


def schedule(launches: Sequence[Launch]) -> list[Launch]:
    """`launches` reordered: prepare, forward, backward; inside a phase the given order or the greedy one (always the
    ready launch that adds least memory), whichever has the smaller peak."""
    given = [launch for phase in (PREPARE, FORWARD, BACKWARD) for launch in launches if launch.phase == phase]
    greedy = _greedy(given)
    return greedy if peak(greedy) < peak(given) else given


def live_bytes(launches: Sequence[Launch]) -> list[int]:
    """Bytes of arena storages alive during each launch."""
    first: dict[Storage, int] = {}
    last: dict[Storage, int] = {}
    for position, launch in enumerate(launches):
        for storage in (*launch.reads, *launch.writes):
            if storage.pool == "arena":
                first.setdefault(storage, position)
                last[storage] = position
    change = [0] * (len(launches) + 1)
    for storage, position in first.items():
        change[position] += storage.nbytes
        change[last[storage] + 1] -= storage.nbytes
    alive, total = [], 0
    for delta in change[:-1]:
        total += delta
        alive.append(total)
    return alive


def peak(launches: Sequence[Launch]) -> int:
    return max(live_bytes(launches), default=0)


def _greedy(launches: Sequence[Launch]) -> list[Launch]:
    needs = _dependencies(launches)
    readers: dict[Storage, int] = {}
    for launch in launches:
        for storage in set(launch.reads):
            readers[storage] = readers.get(storage, 0) + 1
    order: list[Launch] = []
    alive: set[Storage] = set()

    def growth(position: int) -> int:
        launch = launches[position]
        made = sum(s.nbytes for s in set(launch.writes) if s.pool == "arena" and s not in alive and readers.get(s, 0))
        freed = sum(s.nbytes for s in set(launch.reads) if s.pool == "arena" and readers[s] == 1)
        return made - freed

    for phase in (PREPARE, FORWARD, BACKWARD):
        waiting = {i: set(needs[i]) for i, launch in enumerate(launches) if launch.phase == phase}
        done_before = {i for i, launch in enumerate(launches) if launch in order}
        for remaining in waiting.values():
            remaining -= done_before
        while waiting:
            ready = [i for i, remaining in waiting.items() if not remaining]
            best = min(ready, key=lambda i: (growth(i), i))
            launch = launches[best]
            order.append(launch)
            del waiting[best]
            for remaining in waiting.values():
                remaining.discard(best)
            for storage in set(launch.reads):
                readers[storage] -= 1
                if not readers[storage]:
                    alive.discard(storage)
            alive.update(s for s in launch.writes if s.pool == "arena")
    return order


def _dependencies(launches: Sequence[Launch]) -> list[set[int]]:
    """For each launch, the earlier ones that must come first: what it reads, and readers of what it overwrites."""
    needs: list[set[int]] = []
    writer: dict[Storage, int] = {}
    readers: dict[Storage, list[int]] = {}
    for position, launch in enumerate(launches):
        before = {writer[s] for s in (*launch.reads, *launch.writes) if s in writer}
        for storage in launch.writes:
            before.update(readers.get(storage, ()))
        needs.append(before - {position})
        for storage in launch.reads:
            readers.setdefault(storage, []).append(position)
        for storage in launch.writes:
            writer[storage] = position
    return needs
