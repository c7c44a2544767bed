"""A sampler that takes every so many examples."""
from __future__ import annotations

from collections.abc import Iterator

from mxc.compiler.error import AssertedError
from mxc.gluon.data.sampler import Sampler

__all__ = ["IntervalSampler"]


class IntervalSampler(Sampler):
    """0, interval, 2 * interval, ... below `length`; with rollover then 1, 1 + interval, ... until all are taken.

    Its length is `length` also without rollover, as in MXNet. Raises AssertionError for an interval beyond the length.
    """

    def __init__(self, length: int, interval: int, rollover: bool = True):
        if interval > length:
            raise AssertedError(f"interval is {interval}; expected at most the length, {length}")
        self._length, self._interval, self._rollover = length, interval, rollover

    def __iter__(self) -> Iterator[int]:
        for first in range(self._interval if self._rollover else 1):
            yield from range(first, self._length, self._interval)

    def __len__(self) -> int:
        return self._length
