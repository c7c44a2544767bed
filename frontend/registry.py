"""MXNet's `mx.registry`: classes by name, and objects from such names, for programs that make things by text."""
from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError, nearest
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"mxc.base": "string_types"})
__all__ = ["get_alias_func", "get_create_func", "get_register_func", "get_registry", "json", "warnings", *_names]

_REGISTRY: dict[type, dict[str, type]] = {}  # by base class: classes by name in lower case


def get_registry(base_class: type) -> dict[str, type]:
    """A copy of what is registered for a base class: classes by name in lower case."""
    return dict(_REGISTRY.get(base_class, {}))


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that registers a class derived from `base_class`, and gives it back: a decorator.

    It takes the class, and a name, by default the class's own; upper and lower case are the same. nickname: what
    messages call such a class. It raises ArgumentTypeError, a TypeError, for anything but such a class, and warns when
    another class had the name.
    """
    known = _REGISTRY.setdefault(base_class, {})

    def register(klass: type, name: str | None = None) -> type:
        if not isinstance(klass, type) or not issubclass(klass, base_class):
            raise ArgumentTypeError(f"a {nickname} must be a class derived from {base_class.__name__}, got {klass!r}")
        key = (klass.__name__ if name is None else name).lower()
        if known.get(key, klass) is not klass:
            warnings.warn(f"the {nickname} {klass.__module__}.{klass.__name__} takes the name {key!r} of "
                          f"{known[key].__module__}.{known[key].__name__}", UserWarning, stacklevel=2)
        known[key] = klass
        return klass

    register.__doc__ = f"Register a class derived from {base_class.__name__} as a {nickname}; the class."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that takes names, and gives a decorator that registers a class by each of them."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[type], type]:
        def decorate(klass: type) -> type:
            for name in aliases:
                register(klass, name)
            return klass

        return decorate

    alias.__doc__ = f"A decorator that registers a class as a {nickname} by each of these names."
    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that makes an object of a registered class, as `create(name, *args, **kwargs)`.

    In place of the name it takes an object of such a class, which it gives back, or name and arguments in one: a
    dictionary with the name under `nickname`, or JSON, `["name", {arguments}]` or such a dictionary. It raises
    ArgumentError, a ValueError, for a name that is not registered, for arguments beside an object or text that has
    them, and for JSON that is none; KeyError where no name is given; ArgumentTypeError for anything else.
    """
    known = _REGISTRY.setdefault(base_class, {})

    def create(*args: Any, **kwargs: Any) -> Any:
        name, args = (args[0], args[1:]) if args else (kwargs.pop(nickname), ())
        has_arguments = bool(args or kwargs)
        if isinstance(name, base_class):
            if has_arguments:
                raise ArgumentError(f"the {nickname} {name!r} is made already and takes no arguments")
            return name
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"a {nickname} is given by its name, got {name!r}")
        if name.startswith(("[", "{")):
            if has_arguments:
                raise ArgumentError(f"the {nickname} {name} has its arguments in it and takes no others")
            found = json.loads(name)  # its error is a ValueError
            return create(**found) if isinstance(found, dict) else create(found[0], **found[1])
        if name.lower() not in known:
            raise ArgumentError(f"no {nickname} is registered as {name!r}; there are {', '.join(known) or 'none'}"
                                f"{nearest(name.lower(), known)}")
        return known[name.lower()](*args, **kwargs)

    create.__doc__ = (f"A {nickname} by its name, with arguments for its constructor; see "
                      "`mx.registry.get_create_func`.")
    return create
