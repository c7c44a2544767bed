"""Hooks of blocks: functions that are called around forward."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from mxc.compiler.error import AssertedError

Hook = Callable[..., Any]


class HookHandle:
    """A hook of a block, until `detach`; in a `with` block, until its end."""

    _numbers: Iterator[int] = itertools.count()

    def __init__(self) -> None:
        self._hooks: dict[int, Hook] | None = None
        self._number = -1

    def attach(self, hooks_dict: dict[int, Hook], hook: Hook) -> None:
        """Put a hook into a block's dict of hooks. Raises AssertionError for a handle that has one already."""
        if self._hooks is not None:
            raise AssertedError("a handle of a hook is attached once; take another one for another hook")
        self._hooks, self._number = hooks_dict, next(HookHandle._numbers)
        hooks_dict[self._number] = hook

    def detach(self) -> None:
        """End the hook."""
        if self._hooks is not None:
            self._hooks.pop(self._number, None)

    def __getstate__(self) -> tuple[dict[int, Hook] | None, int]:
        return self._hooks, self._number

    def __setstate__(self, state: tuple[dict[int, Hook] | None, int]) -> None:
        self._hooks, self._number = state

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, ptype: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.detach()


def attached(hooks: dict[int, Hook], hook: Hook) -> HookHandle:
    """The handle of a hook that is put among a block's."""
    handle = HookHandle()
    handle.attach(hooks, hook)
    return handle
