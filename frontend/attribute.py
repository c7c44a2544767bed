"""Attributes that a scope gives to every symbol made within it."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from mxc.compiler.error import ArgumentError
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.scopes import ClassPropertyType, ThreadValue, deprecated

__getattr__, _names = elsewhere(__name__, {
    "": "threading warnings", "collections": "defaultdict",
    "mxc.base": "_MXClassPropertyMetaClass classproperty string_types with_metaclass"})
__all__ = ["AttrScope", *_names]


class AttrScope(metaclass=ClassPropertyType):
    """Every variable and operator made in the `with` block gets these attributes; inner scopes win over outer ones.

    Values must be strings (ValueError otherwise).

    >>> with AttrScope(ctx_group="stage1"):
    ...     weight = mx.sym.Variable("weight")
    """

    _current: ClassVar[ThreadValue] = ThreadValue(lambda: AttrScope())  # the scope in force
    _subgraph_names: ClassVar[Counter[str]] = Counter()  # how many graphs of control flow were made of each name
    current = deprecated(_current, "AttrScope.current is deprecated: use a `with` scope")

    def __init__(self, **kwargs: str) -> None:
        if not all(isinstance(value, str) for value in kwargs.values()):
            raise ArgumentError("Attributes need to be string")
        self._given = kwargs
        self._attr = dict(kwargs)
        self._before: list[dict[str, str]] = []  # its attributes before each entering

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """The scope's attributes with those of `attr` over them."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        self._before.append(self._attr)
        self._attr = {**self._current.value._attr, **self._given}
        self._current.enter(self)
        return self

    def __exit__(self, ptype: object, value: object, trace: object) -> None:
        self._current.leave()
        self._attr = self._before.pop()
