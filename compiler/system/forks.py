"""Locks that a forked child can take, whoever held them in the parent when it forked.

A module that registers something that a fork must wait for imports this module first. `os` calls the function that was
registered last before all others, and the locks taken here must come after all work that may still need them.
"""
from __future__ import annotations

import _thread
import os
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager


class Lock(_thread.RLock):  # type: ignore[misc]  # typeshed calls it final; CPython lets it be a base
    """A reentrant lock for `with`. In a forked child it is free unless the forking thread itself holds it: the child
    has no other threads, so nobody there would ever free it."""

    __slots__ = ()

    def __init__(self) -> None:
        _locks.add(self)

    def renew(self) -> None:
        """In a forked child, free the lock if a thread holds it that the child does not have."""
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined]  # Python's own modules do this with their locks too.


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


_taken: list[AbstractContextManager] = []


def take(lock: AbstractContextManager, first: bool = False) -> None:
    """From now on the forking thread holds `lock` while it forks, so that no other thread is in the middle of what the
    lock protects. This is for reentrant locks of libraries: a child would wait forever for one that another thread of
    its parent held.

    first: whether to take it before the others, because a thread that holds it may take them.
    """
    _taken.insert(0 if first else len(_taken), lock)


_calls: list[Callable[[], None]] = []


def before(call: Callable[[], None]) -> None:
    """From now on the forking thread calls this before it forks, when the engine has done all work, and before it takes
    locks."""
    _calls.append(call)


def _take_all() -> None:
    for call in _calls:
        call()
    for lock in _taken:
        lock.__enter__()


def _release_all() -> None:
    for lock in reversed(_taken):
        lock.__exit__(None, None, None)


def _in_child() -> None:
    _renew_all()
    _release_all()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_in_child)
