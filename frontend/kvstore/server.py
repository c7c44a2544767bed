"""A server of stores that span machines: parts of values, sums of what workers push, and an optimizer.

`Server` is made an actor of Ray's (`group.py`), whose methods workers call. They run in one thread, in turns: a method
that waits for other workers lets others run. Rounds tell which pushes belong together: a worker's n-th push of a part
is its round n. Ray may start calls of one worker in another order than they were made in, so messages are numbered.
"""
from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.kvstore.compression import unpacked
from mxc.kvstore.optimizer_data import Data, made
from mxc.kvstore.parts import Layout, Name, Round
from mxc.ndarray import NDArray, array
from mxc.optimizer import Updater, saved_states
from mxc.runtime.array import Array

Settings = dict[str, Any] | None  # numbers of the optimizer that worker 0 has changed since


class _Part:
    """A part's value, and what was pushed. done: rounds that are in the value (sync). rounds: what workers pushed in
    the rounds to come, by rank. pulls: who waits for the value that has a round in it, and no later one."""

    def __init__(self, value: np.ndarray):
        self.value: np.ndarray | NDArray = value
        self.done = 0
        self.rounds: dict[int, dict[int, Any]] = defaultdict(dict)
        self.pulls: dict[int, list[asyncio.Future]] = defaultdict(list)

    def memory(self) -> np.ndarray:
        return self.value._array.data if isinstance(self.value, NDArray) else self.value

    def sent(self) -> np.ndarray:
        """The value, which does not change while it is sent."""
        return self.memory().copy() if isinstance(self.value, NDArray) else self.value


class _Store:
    """One kvstore of the workers' programs. layouts: of its keys, in the order in which worker 0 gave them."""

    def __init__(self, is_sync: bool):
        self.is_sync = is_sync
        self.parts: dict[Name, _Part] = {}
        self.layouts: list[Layout] = []
        self.updater: Updater | None = None
        self.data: Data | None = None


class Server:
    """number: of this server. workers: how many there are to be. The server 0 also gives ranks, keeps the layouts of
    values, and is where workers meet."""

    def __init__(self, number: int, workers: int):
        self.number, self.workers = number, workers
        self.stores: dict[int, _Store] = {}
        self.failure = ""  # why nothing goes on
        self.gone: dict[int, str] = {}  # rank -> how that worker ended
        self.ranks: set[int] = set()
        self.messages: dict[int, int] = {}  # how many of each worker were taken
        self.barriers: dict[int, set[int]] = defaultdict(set)
        self.changed = asyncio.Event()
        self.watches: set[asyncio.Task] = set()
        self.counted = {"messages": 0, "bytes": 0}

    # -- workers come and go

    async def ready(self) -> int:
        """The number, once the server runs."""
        return self.number

    async def never(self) -> None:
        """Never returns. What a worker holds of such a call goes with the worker, which Ray tells whoever waits."""
        await asyncio.Event().wait()

    async def join(self, rank: int | None, presence: Sequence[Any]) -> int:
        """A worker's rank: the wanted one, or without one the lowest that is free. presence: a call of `never`, which
        the worker holds. Raises MXNetError where there are enough workers, or that rank is there."""
        self._check()
        if rank is None:
            rank = next((i for i in range(self.workers) if i not in self.ranks), None)
        if rank is None or not 0 <= rank < self.workers:
            raise MXNetError(f"kvstore: there are {self.workers} workers already" if rank is None else
                             f"kvstore: there is no worker {rank}, ranks are 0 to {self.workers - 1}")
        if rank in self.ranks:
            raise MXNetError(f"kvstore: worker {rank} is there already")
        if rank in self.gone:
            if any(store.is_sync for store in self.stores.values()):
                raise MXNetError(f"kvstore: worker {rank} has {self.gone[rank]}, and a store of the type dist_sync "
                                 "cannot go on without it: start all again, from a checkpoint")
            del self.gone[rank]
        self.messages[rank] = 0
        self.ranks.add(rank)
        watch = asyncio.create_task(self._attend(rank, presence[0]))
        self.watches.add(watch)
        watch.add_done_callback(self.watches.discard)
        return rank

    async def _attend(self, rank: int, presence: Any) -> None:
        try:
            await presence
        except Exception:  # whatever Ray says of a call whose owner is gone
            self._lose(rank, "been killed or failed")

    async def leave(self, rank: int) -> None:
        """A worker has done its work."""
        self._lose(rank, "ended")

    def _lose(self, rank: int, how: str) -> None:
        if rank not in self.ranks:
            return
        self.ranks.discard(rank)
        self.gone[rank] = how
        if how != "ended" and (not self.stores or any(store.is_sync for store in self.stores.values())):
            self._fail(f"worker {rank} has {how}")
        self._tell()

    async def lost(self, rank: int, how: str) -> str:
        """What the launcher knows of a worker's end that was not as it should. Why all fail with it; "" where the
        others go on."""
        self.ranks.discard(rank)
        self.gone[rank] = how
        if not self.stores or any(store.is_sync for store in self.stores.values()):
            self._fail(f"worker {rank} has {how}")
        self._tell()
        return self.failure

    async def over(self) -> str:
        """Return when as many workers have ended as there are to be, or all have failed: why."""
        while not self.failure and len(self.gone) < self.workers:
            await self.changed.wait()
        return self.failure

    def _fail(self, why: str) -> None:
        """From now on every call fails."""
        self.failure = self.failure or why
        self._tell()

    def _tell(self) -> None:
        """Have all that wait look again."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def _check(self) -> None:
        if self.failure:
            raise MXNetError(f"kvstore: {self.failure}; the others cannot go on")

    async def _until(self, is_over: Any, needed: Any = None) -> None:
        """Wait until `is_over()`. needed: gives the ranks of those without whom it never comes."""
        while True:
            self._check()
            if is_over():
                return
            missing = next((r for r in (needed() if needed else ()) if r in self.gone), None)
            if missing is not None:
                raise MXNetError(f"kvstore: worker {missing} has {self.gone[missing]}, and the others wait for it")
            await self.changed.wait()

    async def barrier(self, rank: int, number: int) -> None:
        """Return when all workers that there are have come to their barrier of this number."""
        self.barriers[number].add(rank)
        self._tell()
        is_sync = any(store.is_sync for store in self.stores.values())

        def absent() -> list[int]:
            gone = () if is_sync else self.gone
            return [r for r in range(self.workers) if r not in self.barriers[number] and r not in gone]

        await self._until(lambda: not absent(), absent)

    # -- values

    async def open(self, store: int, is_sync: bool) -> None:
        """A worker has made its store of that number. Raises MXNetError where the others' is of another type."""
        found = self.stores.setdefault(store, _Store(is_sync))
        if found.is_sync != is_sync:
            raise MXNetError("kvstore: some workers have a store of the type dist_sync, and some of the type "
                             "dist_async")

    async def declare(self, store: int, rank: int, position: int, wanted: Layout) -> tuple[Layout, bool]:
        """The layout of the key that workers initialize as that of this position, and whether its value is wanted:
        worker 0 says what the layout is, the others wait for it. Raises MXNetError for another key, shape or dtype."""
        layouts = self.stores[store].layouts
        is_new = rank == 0 and position == len(layouts)
        if is_new:
            layouts.append(wanted)
            self._tell()
        await self._until(lambda: position < len(layouts), lambda: [0])
        found = layouts[position]
        key, own = found.parts[0].key, wanted.parts[0].key
        if own != key:
            raise MXNetError(f"kvstore: this worker initializes the key {own!r}, where worker 0 initialized {key!r}: "
                             "all workers must initialize the same keys in the same order")
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise MXNetError(f"kvstore: the key {key!r} is {found.dtype} {found.shape} in worker 0, and {wanted.dtype} "
                             f"{wanted.shape} here")
        return found, is_new

    async def init(self, store: int, values: dict[Name, np.ndarray]) -> None:
        """First values of parts."""
        found = self.stores[store]
        for name, value in values.items():
            found.parts[name] = _Part(np.array(value))
        self._tell()

    async def exchange(self, store: int, rank: int, message: int, pushed: Sequence[Round], values: Sequence[Any],
                       pulled: Sequence[Round], settings: Settings = None) -> list[np.ndarray]:
        """Take values that a worker pushes, and give those that it pulls, which have its pushes of those rounds in
        them; in a synchronous store those of all workers, and no later ones. message: its number, from 0."""
        self._check()
        found = self.stores[store]
        names = {name for name, _ in (*pushed, *pulled)}
        await self._until(lambda: self.messages[rank] == message)
        await self._until(lambda: names <= found.parts.keys(), lambda: [0])
        self.messages[rank] += 1
        self.counted["messages"] += 1
        for (name, number), value in zip(pushed, values, strict=True):
            part, value = found.parts[name], unpacked(value)
            self.counted["bytes"] += value.nbytes
            if value.shape != part.value.shape or value.dtype != part.value.dtype:
                raise MXNetError(f"kvstore: the key {name[0]!r} has {part.value.dtype} {part.value.shape} here; what "
                                 f"worker {rank} pushes is {value.dtype} {value.shape}")
            part.rounds[number][rank] = (value, settings)
        while ready := self._complete(found, [name for name, _ in pushed]):
            self._apply(found, ready)
        self._tell()
        waited = [self._pull(found, found.parts[name], number) for name, number in pulled]
        await self._until(lambda: all(future.done() for future in waited), lambda: {
            r for (name, number), future in zip(pulled, waited, strict=True) if not future.done()
            for r in range(self.workers) if r not in found.parts[name].rounds.get(number, ())})
        return [future.result() for future in waited]

    def _complete(self, store: _Store, names: Sequence[Name]) -> list[tuple[Name, dict[int, Any]]]:
        """The next round of each of these parts, taken out, where all workers have pushed that; any in an asynchronous
        store."""
        found = []
        for name in names:
            part = store.parts[name]
            number = part.done + 1 if store.is_sync else next(iter(part.rounds), 0)
            if number in part.rounds and (not store.is_sync or len(part.rounds[number]) == self.workers):
                found.append((name, part.rounds.pop(number)))
        return found

    def _pull(self, store: _Store, part: _Part, number: int) -> asyncio.Future:
        future = asyncio.get_running_loop().create_future()
        if not store.is_sync or part.done >= number:  # this worker's own pushes are in it: they came before
            future.set_result(part.sent())
        else:
            part.pulls[number].append(future)
        return future

    def _apply(self, store: _Store, ready: Sequence[tuple[Name, dict[int, Any]]]) -> None:
        """Change values by what was pushed: the optimizer does, or the sum takes the value's place."""
        sums = []
        for _, given in ready:
            values = [given[rank][0] for rank in sorted(given)]  # in the same order each time, so the sum is the same
            total = values[0] if len(values) == 1 else values[0] + values[1]
            for value in values[2:]:
                total += value
            sums.append(total)
        if store.updater is None:
            if not store.is_sync:
                raise MXNetError("kvstore: a store of the type dist_async needs an optimizer: call set_optimizer")
            for (name, _), total in zip(ready, sums, strict=True):
                store.parts[name].value = total
            self._done(store, ready)
            return
        for settings in (s for _, given in ready for _, s in given.values() if s):
            store.updater.optimizer.__dict__.update(settings)
        weights = []
        for name, _ in ready:
            part = store.parts[name]
            if not isinstance(part.value, NDArray):
                self._adopt(store, name)
                part.value = array(part.value, dtype=part.value.dtype)
            weights.append(part.value)
        store.updater([name for name, _ in ready], [NDArray(Array.sharing(total)) for total in sums], weights)
        self._done(store, ready)

    @staticmethod
    def _done(store: _Store, ready: Sequence[tuple[Name, dict[int, Any]]]) -> None:
        """Count a round of these parts, and give it to who waits for it."""
        for name, _ in ready:
            part = store.parts[name]
            part.done += 1
            waiting = part.pulls.pop(part.done, ())
            value = part.sent() if waiting else None
            for future in waiting:
                future.set_result(value)

    @staticmethod
    def _adopt(store: _Store, name: Name) -> None:
        """Have the optimizer treat a part as its key."""
        assert store.updater is not None
        optimizer = store.updater.optimizer
        for kind in ("lr_mult", "wd_mult"):
            factors = getattr(optimizer, kind)
            factors[name] = optimizer._factor(name[0], kind, factors)
        if name[0] in optimizer._index_update_count:  # how often it was updated before
            optimizer._index_update_count.setdefault(name, optimizer._index_update_count[name[0]])

    # -- the optimizer

    async def set_optimizer(self, store: int, data: Data) -> None:
        """Update values by this optimizer from now on. The one that is there stays, with its states, where it was
        described in the same way: a worker that was started again says so too."""
        found = self.stores[store]
        if data != found.data:
            found.data, found.updater = data, Updater(made(data))
            for name in found.parts:
                self._adopt(found, name)

    async def states(self, store: int) -> bytes:
        """The states of this server's parts, and the optimizer, as saved states are written."""
        found = self.stores[store]
        if found.updater is None:
            raise MXNetError("Cannot save states: this kvstore has no optimizer; call set_optimizer first")
        return saved_states.write(([[list(name), state] for name, state in found.updater.states.items()],
                                   found.updater.optimizer))

    async def set_states(self, store: int, states: bytes) -> None:
        """Take over states of this server's parts, and the optimizer's counts, from what `states` gave."""
        found = self.stores[store]
        if found.updater is None:
            raise MXNetError("Cannot load states: this kvstore has no optimizer; call set_optimizer first")
        pairs, optimizer = saved_states.read(states)
        if optimizer is not None:
            found.updater.optimizer = optimizer
        found.updater.states = {(name[0], name[1]): state for name, state in pairs}
        found.updater.states_synced = dict.fromkeys(found.updater.states, False)
        for name in found.parts:
            self._adopt(found, name)

    async def counts(self) -> dict[str, int]:
        """Messages and bytes that workers have pushed so far."""
        return dict(self.counted)
