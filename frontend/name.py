"""Automatic names of symbols: `convolution0`, `convolution1`, ... and scopes that change how they are made."""
from __future__ import annotations

from typing import ClassVar

from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.scopes import ClassPropertyType, ThreadValue, deprecated

__getattr__, _names = elsewhere(__name__, {
    "": "threading warnings", "mxc.base": "_MXClassPropertyMetaClass classproperty with_metaclass"})
__all__ = ["NameManager", "Prefix", *_names]


class NameManager(metaclass=ClassPropertyType):
    """Counts the names it gives out; as a `with` block it is the one in force within.

    >>> with NameManager() as manager:
    ...     manager.get(None, "relu"), manager.get(None, "relu"), manager.get("mine", "relu")
    ('relu0', 'relu1', 'mine')
    """

    _current: ClassVar[ThreadValue] = ThreadValue(lambda: NameManager())  # the manager in force
    current = deprecated(_current, "NameManager.current is deprecated: use a `with` scope")

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """`name` itself when there is one, else `hint` with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> NameManager:
        self._current.enter(self)
        return self

    def __exit__(self, ptype: object, value: object, trace: object) -> None:
        self._current.leave()


class Prefix(NameManager):
    """Puts `prefix` before every name, given ones too."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)
