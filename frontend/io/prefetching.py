"""PrefetchingIter: the next batch is made by a thread while a program works with the present one."""
from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError, MXNetError
from mxc.io.io import _NO_BATCH, DataBatch, DataDesc, DataIter, OfBatches

Rename = Sequence[dict[str, str]]


class _Reader:
    """A thread that asks one iterator for the next batch whenever it is told to. It ends when it is told to end, or
    when the reader is dropped. An error of the iterator is raised by the `take` that would have given the batch."""

    def __init__(self, source: DataIter):
        self._asked: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._made: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self.source, self.waiting = source, 0
        threading.Thread(target=_work, args=(self._asked, self._made), name="PrefetchingIter", daemon=True).start()
        self.end = weakref.finalize(self, self._asked.put, None)

    def ask(self) -> None:
        """Have the next batch made."""
        self.waiting += 1
        self._asked.put(self.source.next)

    def take(self) -> DataBatch | None:
        """The batch that was asked for; None behind the last one. Raises what the iterator raised."""
        made, error = self._made.get()
        self.waiting -= 1
        if error is None:
            return made
        if isinstance(error, StopIteration):
            return None
        raise error

    def drop(self) -> None:
        """Forget the batch that was asked for, or the error in its place."""
        while self.waiting:
            self._made.get()
            self.waiting -= 1


def _work(asked: queue.SimpleQueue, made: queue.SimpleQueue) -> None:
    while (call := asked.get()) is not None:
        try:
            made.put((call(), None))
        except BaseException as error:
            made.put((None, error))
        del call  # While the thread waits for the next call it must keep no iterator alive.


class PrefetchingIter(OfBatches):
    """One or several iterators, whose batches become one, read ahead by a thread for each.

    iters: an iterator or a list of them. rename_data, rename_label: for each iterator a dict from its names to others;
    they apply to descriptions that are DataDescs. A batch has the data and labels of all, pad and index of the first.
    What an iterator raises is raised by the call that would have given its batch. The threads end with this object.
    Raises ValueError for no iterator; MXNetError when they give batches of different `pad`, or not as many, and in a
    process that was forked since.
    """

    def __init__(self, iters: DataIter | list[DataIter], rename_data: Rename | None = None,
                 rename_label: Rename | None = None):
        self.iters = iters if isinstance(iters, list) else [iters]
        self.n_iter = len(self.iters)
        if not self.n_iter:
            raise ArgumentError("PrefetchingIter needs at least one iterator")
        self.rename_data, self.rename_label = rename_data, rename_label
        super().__init__(self.provide_data[0][1][0])
        self.current_batch = _NO_BATCH
        self._readers = [_Reader(each) for each in self.iters]
        self._process = os.getpid()
        self._ask()

    def __del__(self) -> None:
        for reader in getattr(self, "_readers", ()):
            reader.end()

    @property
    def provide_data(self) -> list[Any]:
        """The descriptions of a batch's data, of all iterators."""
        return _described([each.provide_data for each in self.iters], self.rename_data)  # type: ignore[attr-defined]

    @property
    def provide_label(self) -> list[Any]:
        """The descriptions of a batch's labels, of all iterators."""
        return _described([each.provide_label for each in self.iters], self.rename_label)  # type: ignore[attr-defined]

    def _ask(self) -> None:
        for reader in self._readers:
            reader.ask()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise MXNetError("a PrefetchingIter was made before this process was forked, which has none of its "
                             "threads; make another one here")

    def reset(self) -> None:
        """Start again; what was read ahead is dropped."""
        self._check_process()
        for reader in self._readers:
            reader.drop()
        for each in self.iters:
            each.reset()
        self._ask()

    def iter_next(self) -> bool:
        self._check_process()
        if not self._readers[0].waiting:  # The iterators have ended, or one has failed.
            return False
        batches: list[Any] = []
        failure: BaseException | None = None
        for reader in self._readers:
            try:
                batches.append(reader.take())
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure
        first = batches[0]
        if any((each is None) != (first is None) for each in batches):
            raise MXNetError("PrefetchingIter: the iterators have different numbers of batches")
        if first is None:
            return False
        if any(each.pad != first.pad for each in batches):
            raise MXNetError("PrefetchingIter: the iterators' batches have different pads, "
                             f"{[each.pad for each in batches]}")
        data = [array for each in batches for array in each.data]
        label = [array for each in batches for array in each.label or ()]
        self.current_batch = DataBatch(data, label, first.pad, first.index, provide_data=self.provide_data,
                                       provide_label=self.provide_label)
        self._ask()
        return True

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration when there is none, until `reset`."""
        if not self.iter_next():
            raise StopIteration
        return self.current_batch


def _described(descriptions: list[list[Any]], rename: Rename | None) -> list[Any]:
    if rename is None:
        return [each for part in descriptions for each in part]
    return [DataDesc(names[each.name], each.shape, each.dtype, each.layout) if isinstance(each, DataDesc)
            else DataDesc(*each) for names, part in zip(rename, descriptions, strict=True) for each in part]
