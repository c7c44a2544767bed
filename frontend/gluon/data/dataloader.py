"""Batches of a dataset, made by the program, by threads or by processes."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import AssertedError
from mxc.context import cpu_pinned
from mxc.gluon.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from mxc.gluon.data.workers import Processes, Threads, WorkerEnded
from mxc.ndarray import NDArray
from mxc.runtime.elsewhere import elsewhere

__getattr__, _ = elsewhere(__name__, {}, {
    "": "_sampler=mxc.gluon.data.sampler context=mxc.context io multiprocessing nd=mxc.ndarray pickle signal "
        "sys threading",
    "multiprocessing.pool": "ThreadPool", "multiprocessing.reduction": "ForkingPickler",
    "mxc.gluon.data.pool_batches": "_MultiWorkerIter",
    "mxc.util": "is_np_array is_np_shape set_np"})
__all__ = ["DataLoader"]


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """The examples as one array with a new first axis; examples of several parts as a list of such arrays."""
    if isinstance(data[0], NDArray):
        return ndarray.stack(*data)
    if isinstance(data[0], tuple):
        return [default_batchify_fn(part) for part in zip(*data, strict=True)]
    values = np.asarray(data)
    return ndarray.array(values, dtype=values.dtype)


default_mp_batchify_fn = default_batchify_fn


class DataLoader:
    """Goes through a dataset in batches, once for each `for`.

    batch_size, shuffle, sampler, last_batch: see BatchSampler; or batch_sampler in their place. batchify_fn: makes a
    batch of a list of examples. num_workers: processes, or with thread_pool threads, that make batches ahead; 0: none.
    prefetch: batches ahead, twice the workers by default. timeout: seconds that a batch may take. pin_memory: batches
    are in `cpu_pinned`, from where a GPU copies directly. Workers are started at once, and see the dataset as it is
    then; `refresh` shows them what it is now, and auto_reload does so before each pass.

    A worker's error is raised by the loop, caused by the worker's traceback; a worker that dies, and a batch that takes
    too long, raise MXNetError. Raises ValueError for arguments that do not go together, AssertionError for a timeout
    that is not positive.
    """

    # MXNet's signature
    def __init__(self, dataset: Any, batch_size: int | None = None, shuffle: bool = False,
                 sampler: Sampler | None = None, last_batch: str | None = None,
                 batch_sampler: Sampler | None = None, batchify_fn: Callable[[list[Any]], Any] | None = None,
                 num_workers: int = 0, pin_memory: bool = False, pin_device_id: int = 0, prefetch: int | None = None,
                 thread_pool: bool = False, timeout: float = 120, auto_reload: bool = False):
        self._workers: Threads | None = None
        if timeout <= 0:
            raise AssertedError(f"timeout is a positive number of seconds, got {timeout}")
        self._dataset, self._timeout, self._thread_pool = dataset, timeout, thread_pool
        self._pin_memory, self._pin_device_id = pin_memory, pin_device_id
        self._batch_sampler = _batch_sampler(dataset, batch_size, shuffle, sampler, last_batch, batch_sampler)
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._num_workers = max(0, num_workers)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else prefetch)
        self._auto_reload = auto_reload
        self.refresh()

    def refresh(self) -> None:
        """Start the workers anew, with the dataset as it is now."""
        self.clean()
        if not self._num_workers:
            return
        if self._thread_pool:
            dataset, batchify = self._dataset, self._batchify_fn
            self._workers = Threads([lambda indices: batchify([dataset[i] for i in indices])] * self._num_workers)
        else:
            self._workers = Processes(self._num_workers, self._dataset, self._batchify_fn)

    def clean(self) -> None:
        """End the workers."""
        workers, self._workers = self._workers, None
        if workers is not None and workers.are_here:
            workers.close()

    def __del__(self) -> None:
        if getattr(self, "_workers", None) is not None:
            self.clean()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if not self._num_workers:
            made: Iterator[Any] = (self._batchify_fn([self._dataset[i] for i in indices])
                                   for indices in self._batch_sampler)
        else:
            if self._auto_reload or self._workers is None or not self._workers.are_here:
                self.refresh()
            assert self._workers is not None
            made = self._ahead(self._workers)
        if not self._pin_memory:
            return made
        device = cpu_pinned(self._pin_device_id)
        return (_as_in_context(batch, device) for batch in made)

    def _ahead(self, workers: Threads) -> Iterator[Any]:
        """The batches in their order, some ahead in the making."""
        batches, pending = iter(self._batch_sampler), deque[Future]()
        try:
            for indices in batches:
                pending.append(workers.submit(indices))
                if len(pending) > max(1, self._prefetch):
                    yield self._received(workers, pending)
            while pending:
                yield self._received(workers, pending)
        finally:
            for future in pending:
                workers.discard(future)

    def _received(self, workers: Threads, pending: deque[Future]) -> Any:
        """The first of the batches in the making."""
        if not workers.are_here:
            raise WorkerEnded("this process was forked in the middle of a pass over the DataLoader, whose batches come "
                              "to the process that began it; begin another pass here")
        try:
            if not wait((pending[0],), self._timeout).done:
                raise WorkerEnded(f"a batch was not made in {self._timeout} seconds: a worker hangs, or the batches "
                                  "take longer than the DataLoader's timeout")
            return workers.received(pending.popleft())
        except WorkerEnded:
            workers.close()
            if self._workers is workers:
                self._workers = None
            raise


def _as_in_context(batch: Any, device: Any) -> Any:
    """A batch, its arrays copied to a device. Loaders of packages use it too."""
    if isinstance(batch, NDArray):
        return batch.as_in_context(device)
    return [_as_in_context(each, device) for each in batch] if isinstance(batch, (list, tuple)) else batch


def _batch_sampler(dataset: Any, batch_size: int | None, shuffle: bool, sampler: Sampler | None,
                   last_batch: str | None, batch_sampler: Sampler | None) -> Sampler:
    """The sampler of batches that a DataLoader's arguments ask for."""
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError("a DataLoader with a batch_sampler takes no batch_size, shuffle, sampler and last_batch")
        return batch_sampler
    if batch_size is None:
        raise ValueError("a DataLoader takes a batch_size, or a batch_sampler")
    if sampler is not None and shuffle:
        raise ValueError("a DataLoader with a sampler takes no shuffle: the sampler says the order")
    if sampler is None:
        sampler = RandomSampler(len(dataset)) if shuffle else SequentialSampler(len(dataset))
    return BatchSampler(sampler, batch_size, last_batch or "keep")
