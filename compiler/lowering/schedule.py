"""The order of the launches: within each phase, the one that keeps least memory alive goes first."""
from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from mxc.compiler.graph.phases import BACKWARD, FORWARD, PREPARE
from mxc.compiler.lowering.launches import Launch, Storage
from mxc.compiler.lowering.stage import lowering_stage


@lowering_stage(needs=("launches",))
def schedule(launches: Sequence[Launch]) -> list[Launch]:
    """Orders the launches of each phase so that less memory is alive at once.

    A greedy order always takes the ready launch that adds least memory. It is used where its peak is smaller than that
    of the given order. launches: sorted by phase.
    """
    greedy = _Greedy(launches).run()
    return greedy if peak(greedy) < peak(launches) else list(launches)


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


class _Greedy:
    """The order in which the next launch is always a ready one that adds least memory.

    A leaf, a launch that reads no other launch's result (packing of a weight, a constant), runs when the first launch
    that needs it does: its result should not wait in memory. So does one whose result is larger than what it reads, and
    read by one launch alone, as the transformed tiles of an array: that one needs what the leaf reads, too.
    """

    def __init__(self, launches: Sequence[Launch]):
        self.launches = launches
        self.needs = _dependencies(launches)
        needed = set().union(*self.needs)
        self.leaves = {i for i, needs in enumerate(self.needs) if not needs and i in needed}
        for leaf, user in _swelling(launches, self.needs):
            self.leaves.add(leaf)
            self.needs[user] |= self.needs[leaf]
        self.order: list[int] = []
        self.done: set[int] = set()
        self.alive: set[Storage] = set()
        self.readers: dict[Storage, int] = {}  # how many launches are still to read a storage
        self.users: list[list[int]] = [[] for _ in launches]  # for each launch, the launches that need it
        self.touching: dict[Storage, list[int]] = {}  # the launches that read or write a storage
        self.missing = [len(needs - self.leaves) for needs in self.needs]  # for each, how many still have to run before
        self.ready: list[tuple[int, int]] = []  # a heap of (growth, position); a launch is in it again when growth fell
        self.phase = ""
        for i, launch in enumerate(launches):
            for storage in set(launch.reads):
                self.readers[storage] = self.readers.get(storage, 0) + 1
            for storage in {*launch.reads, *launch.writes}:
                self.touching.setdefault(storage, []).append(i)
            for each in self.needs[i]:
                self.users[each].append(i)

    def run(self) -> list[Launch]:
        for self.phase in (PREPARE, FORWARD, BACKWARD):
            here = [i for i, launch in enumerate(self.launches) if launch.phase == self.phase]
            for position in here:
                self.offer(position)
            while self.ready:
                _, best = heapq.heappop(self.ready)
                if best not in self.done:
                    for position in (*sorted(self.needs[best] - self.done), best):
                        self.take(position)
            for position in here:  # What is left are leaves that only a later phase needs.
                if position not in self.done:
                    self.take(position)
        return [self.launches[i] for i in self.order]

    def offer(self, position: int) -> None:
        """Put a launch on the heap, if it is ready. It is offered again when its growth has changed: growth only falls,
        so the newest element of a launch comes off the heap before its older ones."""
        if self.launches[position].phase == self.phase and not self.missing[position] and \
                position not in self.done and position not in self.leaves:
            heapq.heappush(self.ready, (self.growth(position), position))

    def growth(self, position: int) -> int:
        """By how many bytes the arena memory alive grows when a launch, and the leaves that it needs, have run."""
        total, once = 0, self.needs[position] - self.done
        for each in (*once, position):
            launch = self.launches[each]
            made = {s for s in launch.writes if s.pool == "arena" and s not in self.alive}
            total += sum(s.nbytes for s in made if self.readers.get(s, 0))
        for storage in set(self.launches[position].reads):
            if storage.pool == "arena" and self.readers[storage] == 1:
                total -= storage.nbytes
        return total

    def take(self, position: int) -> None:
        launch = self.launches[position]
        self.order.append(position)
        self.done.add(position)
        changed = set(self.users[position])
        if position not in self.leaves:
            for user in changed:
                self.missing[user] -= 1
        for storage in launch.writes:
            if storage.pool == "arena" and storage not in self.alive:
                self.alive.add(storage)
                changed.update(self.touching[storage])
        for storage in set(launch.reads):
            self.readers[storage] -= 1
            if self.readers[storage] < 2:
                changed.update(self.touching[storage])
            if not self.readers[storage]:
                self.alive.discard(storage)
        for each in changed:
            self.offer(each)


def _swelling(launches: Sequence[Launch], needs: Sequence[set[int]]) -> Iterator[tuple[int, int]]:
    """Launches that make more than they read, each with the only one that needs it, of the same phase."""
    users: dict[int, list[int]] = {}
    for position, before in enumerate(needs):
        for each in before:
            users.setdefault(each, []).append(position)
    for leaf, (user, *others) in sorted(users.items()):
        launch = launches[leaf]
        made, read = (sum(s.nbytes for s in set(storages)) for storages in (launch.writes, launch.reads))
        if needs[leaf] and not others and made > read and launch.phase == launches[user].phase:
            yield leaf, user


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
