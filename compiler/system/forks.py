"""Locks that a forked child can take, whoever held them in the parent when it forked.

Whoever registers what a fork must wait for imports this module first: `os` calls what is registered last before all
else, and locks that are taken here belong behind everything that may need them to get done.
"""
from __future__ import annotations

import _thread
import os
import weakref
from contextlib import AbstractContextManager


class Lock(_thread.RLock):  # type: ignore[misc]  # typeshed calls it final; CPython lets it be a base
    """A reentrant lock for `with`. In a forked child it is free, unless the forking thread itself holds it: what other
    threads were doing there does not go on."""

    __slots__ = ()

    def __init__(self) -> None:
        _locks.add(self)

    def renew(self) -> None:
        """Free it from a thread that is not there."""
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()  # type: ignore[attr-defined]  # as Python's own modules do with theirs


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


_taken: list[AbstractContextManager] = []


def take(lock: AbstractContextManager, first: bool = False) -> None:
    """From now on the forking thread has `lock` while it forks, so that no other is in the middle of what it protects.
    For a reentrant lock of a library: its child would wait forever for one that another thread has.

    first: whoever has it may take the others, so it is taken before them.
    """
    _taken.insert(0 if first else len(_taken), lock)


def _take_all() -> None:
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
