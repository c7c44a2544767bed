"""Attributes that a scope gives to every symbol made within it."""
from __future__ import annotations

import threading
from collections.abc import Mapping

from mxc.compiler.error import ArgumentError

_active = threading.local()


class _Current(type):
    """Gives AttrScope the attribute `current`: the scope in force in this thread."""

    @property
    def current(cls) -> AttrScope:
        if not hasattr(_active, "scope"):
            _active.scope = AttrScope()
        return _active.scope


class AttrScope(metaclass=_Current):
    """Every variable and operator made in the `with` block gets these attributes; inner scopes win over outer ones.

    Values must be strings (ValueError otherwise).

    >>> with AttrScope(ctx_group="stage1"):
    ...     weight = mx.sym.Variable("weight")
    """

    def __init__(self, **kwargs: str) -> None:
        if not all(isinstance(value, str) for value in kwargs.values()):
            raise ArgumentError("Attributes need to be string")
        self._given = kwargs
        self._attr = dict(kwargs)
        self._outer: list[tuple[AttrScope, dict[str, str]]] = []  # what each entering replaced

    def get(self, attr: Mapping[str, str] | None) -> dict[str, str]:
        """The scope's attributes with those of `attr` over them."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> AttrScope:
        outer = AttrScope.current
        self._outer.append((outer, self._attr))
        self._attr = {**outer._attr, **self._given}
        _active.scope = self
        return self

    def __exit__(self, ptype: object, value: object, trace: object) -> None:
        _active.scope, self._attr = self._outer.pop()
