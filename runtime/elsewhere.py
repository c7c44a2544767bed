"""Names that a module has because MXNet's module of that name imports them: programs take them from there too."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

Homes = Mapping[str, str]  # names by the module where they live


def elsewhere(module: str, starred: Homes, others: Homes | None = None) -> tuple[Callable[[str], Any], list[str]]:
    """A module's `__getattr__` for names that live elsewhere, and those of them that `import *` binds: the public ones
    among `starred`.

    Under "" stand modules themselves. "own=theirs": a name that is another one here. What is asked for is imported
    then, so a start does not pay for it.

    >>> __getattr__, names = elsewhere("mxc.engine", {"": "ctypes np=numpy", "mxc.base": "check_call _LIB"})
    >>> names
    ['ctypes', 'np', 'check_call']
    """
    places: dict[str, tuple[str, str]] = {}
    public: list[str] = []
    for homes in (starred, others or {}):
        for home, names in homes.items():
            for name in names.split():
                own, _, theirs = name.partition("=")
                places[own] = home, theirs or own
                if homes is starred and not own.startswith("_"):
                    public.append(own)

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, theirs = places[name]
        value = getattr(importlib.import_module(home), theirs) if home else importlib.import_module(theirs)
        setattr(sys.modules[module], name, value)
        return value

    return find, public
