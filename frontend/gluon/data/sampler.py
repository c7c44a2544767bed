"""Samplers: in which order the examples of a dataset are taken."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["BatchSampler", "FilterSampler", "RandomSampler", "Sampler", "SequentialSampler"]

KINDS = ("keep", "discard", "rollover")


class Sampler:
    """Numbers of examples. A subclass has `__iter__` and `__len__`."""

    def __iter__(self) -> Iterator[Any]:
        """The numbers."""
        raise NotImplementedError

    def __len__(self) -> int:
        """How many there are."""
        raise NotImplementedError


class SequentialSampler(Sampler):
    """start, start + 1, ...: `length` numbers."""

    def __init__(self, length: int, start: int = 0):
        self._length, self._start = length, start

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """0 to length - 1 in an order that NumPy's random generator draws anew in each pass."""

    def __init__(self, length: int):
        self._length = length

    def __iter__(self) -> Iterator[int]:
        order = np.arange(self._length)
        np.random.shuffle(order)
        return iter(order.tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """The numbers of the examples for which `fn(example)` is true."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Any):
        self._fn, self._dataset = fn, dataset
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` numbers of another sampler.

    last_batch: what becomes of the numbers that are left at the end: "keep" them as a smaller batch, "discard" them, or
    "rollover": begin the next pass with them. Raises ValueError, when it is iterated, for another word.
    """

    def __init__(self, sampler: Sampler, batch_size: int, last_batch: str = "keep"):
        self._sampler, self._batch_size, self._last_batch = sampler, batch_size, last_batch
        self._left: list[Any] = []

    def _check(self) -> None:
        if self._last_batch not in KINDS:
            raise ValueError(f"last_batch is {self._last_batch!r}; expected one of {', '.join(KINDS)}")

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self._left = self._left, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        self._check()
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._left = batch

    def __len__(self) -> int:
        self._check()
        size = self._batch_size
        if self._last_batch == "keep":
            return -(-len(self._sampler) // size)
        if self._last_batch == "discard":
            return len(self._sampler) // size
        return (len(self._left) + len(self._sampler)) // size
