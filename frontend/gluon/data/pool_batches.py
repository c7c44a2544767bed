"""Batches that a pool of workers makes, for loaders of packages; mxc's own DataLoader does otherwise (workers.py)."""
from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError
from mxc.context import cpu_pinned
from mxc.gluon.data.dataloader import _as_in_context


def _worker_fn(samples: Sequence[int], batchify_fn: Callable[[list[Any]], Any], dataset: Any = None) -> Any:
    """The batch of these examples of the dataset."""
    return batchify_fn([dataset[i] for i in samples])


class _MultiWorkerIter:
    """The batches of a sampler, each made by `worker_fn(indices, batchify_fn, dataset)` in the pool, in their order.

    prefetch: how many are asked for ahead. Without a dataset worker_fn has one, and gives pickled batches. timeout:
    seconds that a batch may take. A class that derives from this says in `_push_next` what else workers are to do: it
    takes the next indices of `_iter`, and puts the pool's answer into `_data_buffer` under `_sent_idx`, which it counts
    up. Raises ValueError where neither a dataset nor a worker_fn is given.
    """

    # MXNet's signature
    def __init__(self, worker_pool: Any, batchify_fn: Callable[[list[Any]], Any], batch_sampler: Any,
                 pin_memory: bool = False, pin_device_id: int = 0, worker_fn: Callable[..., Any] = _worker_fn,
                 prefetch: int = 0, dataset: Any = None, data_loader: Any = None, timeout: float = 120):
        if dataset is None and worker_fn is _worker_fn:
            raise ArgumentError("workers need a dataset, or a worker_fn that has one")
        self._worker_pool, self._batchify_fn, self._batch_sampler = worker_pool, batchify_fn, batch_sampler
        self._worker_fn, self._dataset, self._timeout = worker_fn, dataset, timeout
        self._pin = cpu_pinned(pin_device_id) if pin_memory else None
        self._data_loader = data_loader  # so that its pool stays
        self._data_buffer: dict[int, Any] = {}
        self._rcvd_idx = self._sent_idx = 0
        self._iter: Iterator[Any] = iter(batch_sampler)
        for _ in range(prefetch):
            self._push_next()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> _MultiWorkerIter:
        return self

    def _push_next(self) -> None:
        """Ask the pool for the batch after those that it was asked for."""
        indices = next(self._iter, None)
        if indices is not None:
            self._data_buffer[self._sent_idx] = self._worker_pool.apply_async(
                self._worker_fn, (indices, self._batchify_fn, self._dataset))
            self._sent_idx += 1

    def __next__(self) -> Any:
        self._push_next()
        if self._rcvd_idx == self._sent_idx:
            raise StopIteration
        batch = self._data_buffer.pop(self._rcvd_idx).get(self._timeout)
        self._rcvd_idx += 1
        if self._dataset is None:
            batch = pickle.loads(batch)
        return batch if self._pin is None else _as_in_context(batch, self._pin)

    next = __next__
