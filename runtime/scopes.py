"""What is in force in a thread, such as the current device, and properties of classes, by which programs reach it."""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from mxc.compiler.error import MXNetError


class ThreadValue(threading.local):
    """`value` is in force in this thread; `make` gives the first one. Programs read and set it; scopes replace it."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._outer: list[Any] = []  # what scopes replaced, innermost last

    def __getattr__(self, name: str) -> Any:
        if name != "value":
            raise AttributeError(f"there is no {name!r}, only `value`, which is in force in this thread")
        self.value = self._make()
        return self.value

    def enter(self, value: Any) -> None:
        """Put `value` in force until `leave`."""
        self._outer.append(self.value)
        self.value = value

    def leave(self) -> None:
        """Put in force what was so before the last `enter`."""
        self.value = self._outer.pop()


class ClassProperty:
    """A property of a class: `Class.name` and `instance.name` call functions of the class, as assigning does for a
    class whose type is ClassPropertyType. Raises MXNetError where one is assigned that has no setter."""

    def __init__(self, get: Callable[[Any], Any], put: Callable[[Any, Any], None] | None = None):
        self.get, self.put = get, put

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self.get(owner if owner is not None else type(instance))

    def __set__(self, instance: object, value: object) -> None:
        self.assign(type(instance), value)

    def assign(self, owner: type, value: object) -> None:
        if self.put is None:
            raise MXNetError(f"a property of the class {owner.__name__} cannot be set: it can only be read")
        self.put(owner, value)

    def setter(self, put: Callable[[Any, Any], None]) -> ClassProperty:
        """The property with a function that sets it: a decorator, as for Python's properties."""
        return ClassProperty(self.get, put)


def deprecated(holder: ThreadValue, text: str, convert: Callable[[Any], Any] = lambda value: value) -> ClassProperty:
    """A class property that reads and sets what is in force, under a name that MXNet has deprecated: it warns with the
    text. convert: what is assigned goes through it."""
    def get(owner: type) -> Any:
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        return holder.value

    def put(owner: type, value: object) -> None:
        warnings.warn(text, DeprecationWarning, stacklevel=4)
        holder.value = convert(value)

    return ClassProperty(get, put)


class ClassPropertyType(type):
    """The type of classes whose class properties can be assigned: `Class.name = value`."""

    def __setattr__(cls, name: str, value: object) -> None:
        for owner in cls.__mro__:
            found = vars(owner).get(name)
            if isinstance(found, ClassProperty) and not isinstance(value, ClassProperty):
                found.assign(cls, value)
                return
        super().__setattr__(name, value)
