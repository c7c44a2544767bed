"""The engine: every piece of work on arrays goes through `push`, which names what it reads and what it writes.

Work runs at once, in the caller's thread. Callers state reads and writes so that the engine may order work by them.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable

# What is told of each piece of work: its name, start and end in nanoseconds of time.perf_counter_ns. The profiler's.
observer: Callable[[str, int, int], None] | None = None


class Variable:
    """The engine's view of one allocation: what orders work on it and tells whether it has changed.

    version: counts writes. volatile: the memory was handed out without a copy, so it may change unseen.
    """

    __slots__ = ("version", "volatile")

    def __init__(self, volatile: bool = False):
        self.version, self.volatile = 0, volatile


def push(work: Callable[[], None], reads: Iterable[Variable], writes: Iterable[Variable], name: str = "copy") -> None:
    """Run `work`, which reads and writes the memory of those variables; every written one gets a new version.

    A failing `work` may have written a part: the versions change then too. name: for people.
    """
    told = observer
    start = time.perf_counter_ns() if told is not None else 0
    try:
        work()
    finally:
        if told is not None:
            told(name, start, time.perf_counter_ns())
        for variable in writes:
            variable.version += 1


def wait_to_read(variable: Variable) -> None:
    """Return when all writes pushed so far are done. Inline work is done when `push` returns."""


def waitall() -> None:
    """Return when everything pushed so far is done."""
