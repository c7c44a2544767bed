"""A server of stores that span machines: parts of values, sums of what workers push, and an optimizer.

`Server` is made an actor of Ray's (`group.py`), whose methods workers call. They run in one thread, in turns: a method
that waits for other workers lets others run. Rounds tell which pushes belong together: a worker's n-th push of a part
is its round n. Ray may start calls of one worker in another order than they were made in, so messages are numbered.
"""
from __future__ import annotations

import asyncio
import ctypes
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.storage import DEFAULT, Rows, stype_of
from mxc.kvstore import rows
from mxc.kvstore.cluster import package
from mxc.kvstore.compression import unpacked
from mxc.kvstore.optimizer_data import Data, made
from mxc.kvstore.parts import INLINE, Key, Layout, Name, Round
from mxc.kvstore.rows import Value
from mxc.ndarray import NDArray
from mxc.optimizer import Updater, saved_states
from mxc.runtime import updates
from mxc.runtime.sparse_array import SparseArray

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of the C library's mallopt
KEPT, KEPT_ARRAY = 512 << 20, 32 << 20  # bytes: of free memory, and of the largest array that uses it
Answer = tuple[list[Value | int], list[Any]]
Asked = np.ndarray | None  # numbers of rows; None: all
Rounds = dict[tuple[int, Key], int]  # a store and a key, and how often a worker has pushed it
Settings = dict[str, Any] | None  # numbers of the optimizer that worker 0 has when it pushes; None of others


def _keep_memory() -> None:
    """Have this process keep the memory of arrays that it drops, for those of the next round: memory that is new from
    the system costs more than the sum that is written there."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(MMAP_THRESHOLD, KEPT_ARRAY)
        library.mallopt(TRIM_THRESHOLD, KEPT)


class _Held(NamedTuple):
    """A value in an object of Ray's store, which has several: all workers are given the same. size: how many it has."""

    ref: Any
    size: int
    place: int


class _Part:
    """A part's value, and what was pushed. done: rounds that are in the value (sync). rounds: what workers pushed in
    the rounds to come, by rank. pulls: who waits for the value that has a round in it, and no later one. held: where
    workers find the value, if it is in the object store."""

    def __init__(self, value: Value):
        self.value: Value | NDArray = value
        self.shape, self.dtype, self.stype = value.shape, rows.dtype_of(value), stype_of(value)
        self.done = 0
        self.rounds: dict[int, dict[int, Any]] = defaultdict(dict)
        self.pulls: dict[int, list[tuple[asyncio.Future, Asked]]] = defaultdict(list)
        self.held: _Held | None = None

    def memory(self) -> np.ndarray | None:
        """Where the value is now, if it is dense."""
        if isinstance(self.value, np.ndarray):
            return self.value
        return self.value._array.data if isinstance(self.value, NDArray) and self.stype == DEFAULT else None

    def sent(self, asked: Asked) -> Value | _Held:
        """The value, or rows of it, which does not change while it is sent."""
        if asked is None and self.held is not None:
            return self.held
        if not isinstance(self.value, NDArray):
            return self.value if asked is None else rows.chosen(self.value, asked)
        found = self.value._array.parts() if isinstance(self.value._array, SparseArray) else self.value._array.data
        if isinstance(found, Rows) and len(found.rows) == self.shape[0]:
            found = found.values
        return rows.copied(found) if asked is None else rows.chosen(found, asked)  # type: ignore[arg-type]


class _Store:
    """One kvstore of the workers' programs. layouts: of its keys, in the order in which worker 0 gave them."""

    def __init__(self, is_sync: bool):
        self.is_sync = is_sync
        self.parts: dict[Name, _Part] = {}
        self.layouts: list[Layout] = []
        self.updater: Updater | None = None
        self.data: Data | None = None


def _answer(found: Sequence[Value | _Held], values: Sequence[Value]) -> Answer:
    """See `Server.exchange`. values: those of the object that the worker keeps."""
    places = {id(value): place for place, value in enumerate(values)}
    answers: list[Value | int] = []
    starts: dict[Any, int] = {}
    end = len(values)
    for each in found:
        if not isinstance(each, _Held):
            answers.append(places.get(id(each), each))
            continue
        if each.ref not in starts:
            starts[each.ref] = end
            end += each.size
        answers.append(starts[each.ref] + each.place)
    return answers, list(starts)


class Server:
    """number: of this server. workers: how many there are to be. The server 0 also gives ranks, keeps the layouts of
    values, and is where workers meet."""

    def __init__(self, number: int, workers: int):
        self.number, self.workers = number, workers
        _keep_memory()
        self.stores: dict[int, _Store] = {}
        self.failure = ""  # why nothing goes on
        self.gone: dict[int, str] = {}  # rank -> how that worker ended
        # rank -> the last rounds of a worker whose program has ended, none if it is gone; in the order of their ends
        self.ended: dict[int, Rounds] = {}
        self.ranks: set[int] = set()
        self.messages: dict[int, int] = {}  # how many of each worker were taken
        self.starts: dict[int, int] = defaultdict(int)  # how often a worker of each rank has joined
        self.barriers: dict[int, set[int]] = defaultdict(set)
        self.changed = asyncio.Event()
        self.watches: set[asyncio.Task] = set()
        self.counted = {"messages": 0, "bytes": 0}

    # -- workers come and go

    async def ready(self) -> int:
        """The number, once the server runs. From now on what a value becomes does not depend on what else is there."""
        updates.COMPILED = 0
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
            if self._is_sync():
                raise MXNetError(f"kvstore: worker {rank} has {self.gone[rank]}, and a store of the type dist_sync "
                                 "cannot go on without it: start all again, from a checkpoint")
            del self.gone[rank]
        self.ended.pop(rank, None)
        self.messages[rank] = 0
        self.starts[rank] += 1
        self.ranks.add(rank)
        watch = asyncio.create_task(self._attend(rank, presence[0]))
        self.watches.add(watch)
        watch.add_done_callback(self.watches.discard)
        return rank

    async def _attend(self, rank: int, presence: Any) -> None:
        try:
            await presence
        except Exception:  # whatever Ray says of a call whose owner is gone
            if rank in self.ranks:
                self._lose(rank, "been killed or failed")

    async def close(self, rank: int, rounds: Rounds) -> None:
        """A worker's program has ended. Of what it pushed some may be on its way, and nothing follows. rounds: the last
        of each value that it pushed."""
        self.ended[rank] = rounds
        self._tell()

    async def leave(self, rank: int) -> None:
        """A worker has done its work."""
        if rank in self.ranks:
            self._lose(rank, "ended", is_failure=False)

    def _is_sync(self) -> bool:
        """Whether a store needs all workers."""
        return any(store.is_sync for store in self.stores.values())

    def _lose(self, rank: int, how: str, is_failure: bool = True) -> None:
        self.ranks.discard(rank)
        self.gone[rank], self.ended[rank] = how, {}
        if is_failure and (not self.stores or self._is_sync()):
            self._fail(f"worker {rank} has {how}")
        self._tell()

    async def lost(self, rank: int, how: str) -> str:
        """What the launcher knows of a worker's end that was not as it should. Why all fail with it; "" where the
        others go on."""
        self._lose(rank, how)
        return self.failure

    async def ends(self) -> list[int]:
        """The ranks of those that have ended, in the order in which they did."""
        return list(self.ended)

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
            missing = next((r for r in (needed() if needed else ()) if r in self.ended), None)
            if missing is not None:
                how = self.gone.get(missing, "ended")
                raise MXNetError(f"kvstore: worker {missing} has {how}, and the others wait for it")
            await self.changed.wait()

    async def barrier(self, rank: int, number: int) -> None:
        """Return when all workers that there are have come to their barrier of this number."""
        self.barriers[number].add(rank)
        self._tell()
        is_sync = self._is_sync()

        def absent() -> list[int]:
            gone = () if is_sync else self.ended
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

    async def init(self, store: int, values: dict[Name, Value]) -> None:
        """First values of parts."""
        found = self.stores[store]
        for name, value in values.items():
            found.parts[name] = _Part(rows.copied(value))
        self._tell()

    async def exchange(self, store: int, rank: int, message: int, pushed: Sequence[Round], values: Sequence[Any],
                       pulled: Sequence[tuple[Name, int, Asked]], settings: Sequence[Settings],
                       is_kept: bool = False) -> Answer:
        """Take values that a worker pushes, and give those that it pulls, which have its pushes of those rounds in
        them; in a synchronous store those of all workers, and no later ones. Of a part some rows may be pulled, by
        their numbers. message: its number, from 0. settings: for each push. is_kept: the worker keeps the object that
        `values` are in until the answer comes.

        Returns what is pulled, and references to objects, which are lists of arrays. A number is the place of what is
        pulled in all these lists, behind one another; with is_kept `values` come first."""
        self._check()
        found = self.stores[store]
        names = {each[0] for each in (*pushed, *pulled)}
        start = self.starts[rank]
        await self._until(lambda: self.messages[rank] == message or self.starts[rank] != start)
        if self.starts[rank] != start:
            raise MXNetError(f"kvstore: worker {rank} was started again; this message is of the one before")
        await self._until(lambda: names <= found.parts.keys(), lambda: [0])
        self.messages[rank] += 1
        self.counted["messages"] += 1
        for (name, number), value, own in zip(pushed, values, settings, strict=True):
            part, value = found.parts[name], unpacked(value)
            self.counted["bytes"] += rows.nbytes_of(value)
            if value.shape != part.shape or rows.dtype_of(value) != part.dtype:
                raise MXNetError(f"kvstore: the key {name[0]!r} has {part.dtype} {part.shape} here; what worker {rank} "
                                 f"pushes is {rows.dtype_of(value)} {value.shape}")
            part.rounds[number][rank] = (value, own)
        while ready := self._complete(found, [name for name, _ in pushed]):
            try:
                self._apply(found, ready)
            except Exception as error:
                if found.is_sync:  # all workers wait for this round
                    self._fail(f"a server could not update {[name[0] for name, _ in ready]}: {error}")
                raise
        self._tell()
        waited = [self._pull(found, found.parts[name], number, asked) for name, number, asked in pulled]
        await self._until(lambda: all(future.done() for future in waited), lambda: {
            r for (name, number, _), future in zip(pulled, waited, strict=True) if not future.done()
            for r in range(self.workers) if r not in found.parts[name].rounds.get(number, ())
            and self.ended.get(r, {}).get((store, name[0]), 0) < number})
        return _answer([future.result() for future in waited], values if is_kept else ())

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

    def _pull(self, store: _Store, part: _Part, number: int, asked: Asked) -> asyncio.Future:
        future = asyncio.get_running_loop().create_future()
        if not store.is_sync or part.done >= number:  # this worker's own pushes are in it: they came before
            future.set_result(part.sent(asked))
        else:
            part.pulls[number].append((future, asked))
        return future

    def _apply(self, store: _Store, ready: Sequence[tuple[Name, dict[int, Any]]]) -> None:
        """Change values by what was pushed: the optimizer does, or the sum takes the value's place."""
        sums = []
        for _, given in ready:
            values = [given[rank][0] for rank in sorted(given)]  # in the same order each time, so the sum is the same
            sums.append(rows.total(values))
        if store.updater is None:
            if not store.is_sync:
                raise MXNetError("kvstore: a store of the type dist_async needs an optimizer: call set_optimizer")
            for (name, _), total in zip(ready, sums, strict=True):
                store.parts[name].value = total
            self._done(store, ready)
            return
        groups: list[tuple[Settings, list[tuple[Name, Value]]]] = []
        for (name, given), total in zip(ready, sums, strict=True):
            settings = next((own for _, own in given.values() if own), None)
            if not groups or groups[-1][0] != settings:
                groups.append((settings, []))
            groups[-1][1].append((name, total))
        for settings, pairs in groups:
            store.updater.optimizer.__dict__.update(settings or {})
            for name, _ in pairs:
                part = store.parts[name]
                if not isinstance(part.value, NDArray):
                    self._adopt(store, name)
                    part.value = rows.held(part.value, part.stype)
            store.updater([name for name, _ in pairs], [rows.shared(total) for _, total in pairs],
                          [store.parts[name].value for name, _ in pairs])
        self._done(store, ready)

    def _done(self, store: _Store, ready: Sequence[tuple[Name, dict[int, Any]]]) -> None:
        """Count a round of these parts, and give it to who waits for it."""
        parts = [store.parts[name] for name, _ in ready]
        if store.is_sync and (self.workers > 1 or store.updater is not None):
            self._hold(parts)  # else the answer is what was pushed
        for part in parts:
            part.done += 1
            waiting = part.pulls.pop(part.done, ())
            whole = part.sent(None) if any(asked is None for _, asked in waiting) else None
            for future, asked in waiting:
                future.set_result(whole if asked is None else part.sent(asked))

    @staticmethod
    def _hold(parts: Sequence[_Part]) -> None:
        """Put the values of these parts into Ray's store, once for all workers, until they change again."""
        found = []
        for part in parts:
            part.held = None
            if (memory := part.memory()) is not None:
                found.append((part, memory))
        if sum(memory.nbytes for _, memory in found) > INLINE:
            ref = package().put([memory for _, memory in found])
            for place, (part, _) in enumerate(found):
                part.held = _Held(ref, len(found), place)

    @staticmethod
    def _adopt(store: _Store, name: Name) -> None:
        """Have the optimizer treat a part as its key."""
        assert store.updater is not None
        optimizer = store.updater.optimizer
        for kind in ("lr_mult", "wd_mult"):
            factors = getattr(optimizer, kind)
            factors[name] = optimizer._factor(name[0], kind, factors)
        if name[0] in optimizer.idx2name:
            optimizer.idx2name[name] = optimizer.idx2name[name[0]]
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
