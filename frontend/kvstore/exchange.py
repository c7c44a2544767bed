"""What a worker sends to servers and gets from them, beside the program: two threads and a queue.

A push is an `Item` in the queue. The thread that sends takes those of the highest priority whose arrays are computed,
also while the rest of a backward run still computes, and puts small arrays into one message. The other thread takes the
answers, and writes pulled values when it is their turn in the program's order (`runtime/outside.py`). Of one key, items
are sent in the order in which they came.
"""
from __future__ import annotations

import functools
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from itertools import islice, takewhile
from math import prod
from typing import Any, NamedTuple

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.storage import DEFAULT, Rows
from mxc.kvstore.cluster import translated
from mxc.kvstore.compression import TwoBit
from mxc.kvstore.parts import INLINE, LEAST, MOST, Key, Layout, Part, messages
from mxc.kvstore.rows import Value, joined, nbytes_of, piece
from mxc.runtime import engine, outside
from mxc.runtime.array import Array
from mxc.runtime.engine_work import failure_of
from mxc.runtime.sparse_array import SparseArray

MOMENT = 0.0003  # seconds in which a program that submits one item after the other submits at least one more


class Item:
    """A push or pull of a key, or both.

    source: what is pushed, or None. outs: where the value goes. push: the round of what is pushed. pull: the round that
    the value must have; -1 where none is pulled. rows: the numbers of those that are pulled, which ascend; None: all.
    """

    # many parameters: all that one message needs to know, written down once
    def __init__(self, store: int, key: Key, layout: Layout, source: Array | None, outs: Sequence[Array], push: int,
                 pull: int, priority: int, compression: TwoBit | None, settings: dict[str, Any] | None,
                 rows: np.ndarray | None = None):
        self.store, self.key, self.layout, self.source, self.outs = store, key, layout, source, outs
        self.push, self.pull, self.priority = push, pull, priority
        self.compression, self.settings, self.rows = compression, settings, rows
        self.parts = layout.parts if rows is None else [part for part in layout.parts if len(self.asked(part))]
        self.writer = None if source is None else outside.writer(source.variable)
        self.piece = outside.reserve([] if source is None else [source.variable],
                                     list({array.variable: None for array in outs}), f"kvstore {key}")
        self.left = 0  # messages without an answer
        self.answers: list[tuple[Part, Value]] = []

    def asked(self, part: Part) -> np.ndarray:
        """The rows that are pulled of a part, counted from its first."""
        assert self.rows is not None
        first, last = np.searchsorted(self.rows, (part.begin, part.end))
        return self.rows[first:last] - part.begin

    @property
    def nbytes(self) -> int:
        """The bytes of a message with it, when it is ready."""
        if self.rows is not None:
            return len(self.rows) * self.layout.row_bytes()
        if isinstance(self.source, SparseArray) and not self.outs:
            return nbytes_of(self.source.holder.parts)  # type: ignore[arg-type]
        return self._dense_bytes

    @functools.cached_property
    def _dense_bytes(self) -> int:
        return self.layout.parts[-1].end * self.layout.row_bytes()

    def is_ready(self) -> bool:
        """Whether it can be sent. For `outside.watch`."""
        return self.source is None or outside.has_written(self.writer, self.source.variable)

    def is_coming(self) -> bool:
        """Whether it is not ready, and what computes it runs, so that it waits for no item in the queue."""
        return not self.is_ready() and self.writer is not None and self.writer.missing == 0

    def check(self) -> None:
        """Raises MXNetError where what should be pushed was never computed."""
        failure = None if self.source is None else failure_of((self.source.variable,))
        if failure is not None:
            raise failure.made()

    def values(self, part: Part) -> Any:
        """A part of what is pushed."""
        assert self.source is not None
        values = piece(self.source.given(), self.layout, part)  # type: ignore[arg-type]
        if self.compression is None or isinstance(values, Rows):
            return values
        return self.compression.packed(part.name, values)

    def write(self) -> None:
        """Write the answers to the arrays."""
        arrays = [(part, values) for part, values in self.answers if isinstance(values, np.ndarray)]
        is_dense = self.rows is None and len(arrays) == len(self.answers)
        inner = prod(self.layout.shape[1:])
        for out in self.outs:
            if not is_dense or out.stype != DEFAULT:
                out.have(joined(self.answers, self.layout, self.rows))
                continue
            for part, values in arrays:
                dtypes.write(out.memory.reshape(-1)[part.begin * inner:part.end * inner], values.reshape(-1))
        self.answers = []


class _Message(NamedTuple):
    """What is sent to a server. items: of the message. pulled: what is to come back. block: the object that has what is
    pushed, which the answer may name, and how many arrays that are; None where they are in the message itself."""

    items: list[Item]
    pulled: list[tuple[Item, Part]]
    block: tuple[Any, int] | None

    def values(self, ray: Any, answers: Sequence[Value | int], refs: Sequence[Any]) -> list[Value]:
        """What an answer has (`Server.exchange`): a number is the place of an array in the objects."""
        first = self.block[1] if self.block is not None else 0
        places = [place for place in answers if isinstance(place, int)]
        if not places:
            return list(answers)  # type: ignore[arg-type]
        is_own = self.block is not None and min(places) < first
        objects = ray.get([self.block[0], *refs] if is_own else list(refs))  # type: ignore[index]
        arrays = [array for each in objects for array in each]
        return [arrays[each if is_own else each - first] if isinstance(each, int) else each for each in answers]


class Exchange:
    """servers: the actors. rank: of this worker. is_ordered: send all items in the order in which they came. ray: for
    objects that answers can name; without it what is pushed is in the messages."""

    def __init__(self, servers: Sequence[Any], rank: int, is_ordered: bool = False, ray: Any = None):
        self.servers, self.rank, self.is_ordered, self.ray = servers, rank, is_ordered, ray
        self.error: MXNetError | None = None
        self._queues: dict[tuple[int, Key] | None, deque[Item]] = {}
        self._answers: queue.SimpleQueue = queue.SimpleQueue()
        self._waiting = self._open = 0  # items in the queue, and all that are not done
        self._ready_bytes = 0  # of the items that can be sent, when the thread that sends last looked
        self._closed = self._is_watching = False  # _is_watching: whether the thread that sends waits for something
        self._sent = [0] * len(servers)  # messages to each server
        self.rounds: dict[tuple[int, Key], int] = {}  # a store and a key -> the last round that was submitted
        outside.listeners += 1
        for name, work in (("send", self._send), ("answer", self._take)):
            threading.Thread(target=work, name=f"mxc-kvstore-{name}", daemon=True).start()

    def submit(self, items: Sequence[Item]) -> None:
        """Send these when they are ready. Raises MXNetError, nothing being sent, after an earlier item failed."""
        def change() -> bool:
            for item in items:
                self._queues.setdefault(self._queue(item), deque()).append(item)
                if item.push:
                    self.rounds[item.store, item.key] = item.push
            self._waiting += len(items)
            self._open += len(items)
            was_watching, self._is_watching = self._is_watching, False
            return was_watching

        outside.tell(change)
        if engine._engine.naive:
            self.settle()

    def check(self) -> None:
        """Raises MXNetError where an earlier item failed."""
        if self.error is not None:
            raise type(self.error)(*self.error.args)  # a new one, for its traceback is of this call

    def settle(self) -> None:
        """Return when all that was submitted is done. Raises MXNetError where some of it failed."""
        engine.waitall()
        outside.watch(lambda: self._open == 0)
        self.check()

    def close(self) -> None:
        """Send what was submitted, and end the threads."""
        outside.watch(lambda: self._open == 0)
        outside.listeners -= 1
        outside.tell(lambda: setattr(self, "_closed", True))
        self._answers.put(None)

    # -- the thread that sends

    def _queue(self, item: Item) -> tuple[int, Key] | None:
        return None if self.is_ordered else (item.store, item.key)

    def _heads(self) -> list[Item]:
        """Those that nothing has to be sent before, and with is_ordered the ready ones behind the first."""
        if not self.is_ordered:
            return [items[0] for items in self._queues.values() if items]
        items = self._queues.get(None, ())
        return list(islice(items, 1 + sum(1 for _ in takewhile(Item.is_ready, items))))

    def _may_send(self) -> bool:
        self._is_watching = not (self._closed or (bool(self._waiting) and self._has_enough()))
        return not self._is_watching

    def _has_enough(self) -> bool:
        if self.error is not None:
            return True
        heads = self._heads()
        ready = [item for item in heads if item.is_ready()]
        if not ready:
            return False
        self._ready_bytes = sum(item.nbytes for item in ready)
        return self._ready_bytes >= LEAST or not any(item.is_coming() for item in heads)

    def _gather(self) -> None:
        """Wait a moment while the program submits more, if there is little to send."""
        seen = -1
        while self._ready_bytes < LEAST and self._waiting != seen and not self._closed:
            seen = self._waiting
            time.sleep(MOMENT)
            outside.watch(self._may_send)

    def _send(self) -> None:
        while True:
            outside.watch(self._may_send)
            self._gather()
            if self._closed:
                return
            for batch in self._next():
                try:
                    self._send_batch(batch)
                except Exception as error:
                    self._fail(error, batch)

    def _next(self) -> list[list[Item]]:
        """The items to send now, taken out of the queue, as messages."""
        found: list[list[Item]] = []

        def change() -> None:
            ready = sorted((item for item in self._heads() if item.is_ready() or self.error is not None),
                           key=lambda item: -item.priority)
            chosen: list[Item] = []
            for item in ready:
                if chosen and (sum(each.nbytes for each in chosen) + item.nbytes > MOST
                               or item.store != chosen[0].store):
                    break
                chosen.append(item)
            for item in list(chosen):
                waiting = self._queues[self._queue(item)]
                waiting.popleft()
                while waiting and waiting[0].source is None:  # a pull behind a push goes with it
                    chosen.append(waiting.popleft())
            self._waiting -= len(chosen)
            found.append(chosen)

        outside.tell(change)
        return found

    def _send_batch(self, batch: Sequence[Item]) -> None:
        self.check()
        started = time.perf_counter_ns()
        for item in batch:  # a round that is left out would be waited for: nothing can go on
            item.check()
        by_server: dict[int, list[tuple[Item, Part]]] = {}
        for item in batch:
            found = messages(item.parts)
            item.left = len(found)
            if not found:  # no row is asked for
                self._answers.put((item, None))
            for server, parts in found.items():
                by_server.setdefault(server, []).extend((item, part) for part in parts)
        for server, pairs in by_server.items():
            pushed = [(item, part) for item, part in pairs if item.source is not None]
            pulled = [(item, part) for item, part in pairs if item.pull >= 0]
            values = [item.values(part) for item, part in pushed]
            is_kept = self.ray is not None and bool(pulled) and sum(item.nbytes for item, _ in pushed) > INLINE
            block = self.ray.put(values) if is_kept else None
            message = _Message(list(dict.fromkeys(item for item, _ in pairs)), pulled,
                               (block, len(values)) if is_kept else None)
            future = self.servers[server].exchange.remote(
                batch[0].store, self.rank, self._sent[server], [(part.name, item.push) for item, part in pushed],
                block if is_kept else values,
                [(part.name, item.pull, None if item.rows is None else item.asked(part)) for item, part in pulled],
                [item.settings for item, _ in pushed], is_kept).future()
            self._sent[server] += 1
            future.add_done_callback(lambda done, message=message: self._answers.put((message, done)))
        if engine.observer is not None and batch:
            engine.observer(f"kvstore send {sum(item.nbytes for item in batch)} bytes", started, time.perf_counter_ns())

    # -- the thread that takes answers

    def _take(self) -> None:
        while (found := self._answers.get()) is not None:
            self._take_answer(*found)
            del found  # what it holds is memory that others wait for

    def _take_answer(self, message: _Message | Item, answer: Any) -> None:
        """answer: a future; None for an item that needs none."""
        if isinstance(message, Item):
            self._end([message])
            return
        try:
            values = message.values(self.ray, *answer.result())
            for (item, part), value in zip(message.pulled, values, strict=True):
                item.answers.append((part, value))
        except Exception as error:
            self._fail(error, message.items)
            return
        for item in message.items:
            item.left -= 1
        self._end([item for item in message.items if item.left == 0])

    def _fail(self, error: Exception, items: Sequence[Item]) -> None:
        if self.error is None:
            self.error = translated(error)
        self._end([item for item in items if not item.piece.is_done])

    def _end(self, items: Sequence[Item]) -> None:
        """Do what is left of these items. Who waits is told once, for many may have to look."""
        done = 0
        for item in items:
            if item.piece.missing:  # it may wait for an item whose answers come later, so this thread must go on
                threading.Thread(target=self._end_alone, args=(item,), daemon=True).start()
            else:
                self._fulfil(item)
                done += 1
        outside.tell(lambda: setattr(self, "_open", self._open - done))

    def _end_alone(self, item: Item) -> None:
        self._fulfil(item)
        outside.tell(lambda: setattr(self, "_open", self._open - 1))

    def _fulfil(self, item: Item) -> None:
        def work() -> None:
            self.check()
            item.write()

        outside.fulfil(item.piece, work, tells=False)
