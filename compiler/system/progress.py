"""Tells watchers how far the compilation of kernels is; a command line, for example, shows it."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[int, int, str], None]
_watchers: list[Watcher] = []


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """While the block runs, `watcher(done, total, name)` is called, in the thread that compiles, before the first of
    `total` kernels (done 0, no name) and after each; name: the operators in the kernel that is done."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def report(done: int, total: int, name: str = "") -> None:
    """Tell all watchers."""
    for watcher in list(_watchers):
        watcher(done, total, name)
