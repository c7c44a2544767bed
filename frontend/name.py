"""Automatic names of symbols: `convolution0`, `convolution1`, ... and scopes that change how they are made."""
from __future__ import annotations

import threading

_active = threading.local()


class _Current(type):
    """Gives the classes of this module the attribute `current`: what is in force in this thread."""

    @property
    def current(cls) -> NameManager:
        if not hasattr(_active, "manager"):
            _active.manager = NameManager()
        return _active.manager


class NameManager(metaclass=_Current):
    """Counts the names it gives out; as a `with` block it is the one in force within.

    >>> with NameManager() as manager:
    ...     manager.get(None, "relu"), manager.get(None, "relu"), manager.get("mine", "relu")
    ('relu0', 'relu1', 'mine')
    """

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._outer: list[NameManager] = []

    def get(self, name: str | None, hint: str) -> str:
        """`name` itself when there is one, else `hint` with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        self._outer.append(NameManager.current)
        _active.manager = self
        return self

    def __exit__(self, ptype: object, value: object, trace: object) -> None:
        _active.manager = self._outer.pop()


class Prefix(NameManager):
    """Puts `prefix` before every name, given ones too."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)
