"""The operator table: the operators of `ops.yaml` by name and alias, and those that the running program defines."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from mxc.compiler.error import MXNetError, UnsupportedError, nearest
from mxc.compiler.ops.loader import TableText, packaged
from mxc.compiler.ops.operator import Operator


class Table:
    """Operators by name and alias, read from the text of a table when they are asked for; and generated ones."""

    def __init__(self, source: TableText):
        self.source = source
        self.generated: dict[str, Operator] = {}
        self.defined: dict[str, Operator] = {}  # operators that the running program has defined, see `define`
        self.definitions: dict[str, tuple[tuple[str, str], object]] = {}  # name of one -> its owner and its content

    def get(self, name: str) -> Operator:
        """The operator of that name or alias. Raises UnsupportedError with the nearest known name."""
        chunk = self.source.by_name.get(name)
        if chunk is not None:
            return self.source.operator(chunk)
        for group in (self.defined, self.generated):
            if name in group:
                return group[name]
        known = [*self.source.by_name, *self.defined]
        raise UnsupportedError(f"operator {name!r} is not known{nearest(name, known)}")


@functools.cache
def loaded() -> Table:
    """The table of the package's ops.yaml."""
    return Table(TableText(packaged()))


# Name of an operator in files -> the function that makes, of a node's attributes, the operator that a program defines.
made: dict[str, Callable[[Mapping[str, str]], Operator]] = {}


def get(name: str) -> Operator:
    """The operator of that name or alias. Raises UnsupportedError with the nearest known name."""
    return loaded().get(name)


def has(name: str) -> bool:
    """Whether there is an operator of that name or alias."""
    return name in loaded().source.by_name or name in loaded().defined


def names() -> list[str]:
    """Every name and alias, sorted."""
    return sorted([*loaded().source.by_name, *loaded().defined])


def define(operator: Operator, function: Any, content: object) -> None:
    """Make an operator of the running program known by its name.

    function: what it is made of. content: all that its results depend on. A function from the same place as the known
    one replaces it, for example when a notebook's cell runs again or a module is loaded again; where its content
    differs there is a warning. Graphs that have the operator keep the one that they were made with. Raises MXNetError
    where anything else has the name.
    """
    table, name = loaded(), operator.name
    owner, before = _owner(function), table.definitions.get(name)
    if (has(name) or name in made) and (before is None or before[0] != owner):
        raise MXNetError(f"operator {name}: there is an operator of this name already{_place(name)}; expected another "
                         "name")
    if before is not None and before[1] != content:
        warnings.warn(f"operator {name}: another {owner[1]} takes the place of the one that was defined{_place(name)}; "
                      "graphs that were made with that one keep it", stacklevel=4)
    table.defined[name], table.definitions[name] = operator, (owner, content)


def _owner(function: Any) -> tuple[str, str]:
    """The file and the name of a function, by which it is recognized; the name of a lambda has its line. The file is
    left out for functions of the main program, because a notebook's cells are files that change."""
    function = getattr(function, "py_func", function)  # Numba's decorator keeps the Python function there.
    code, name = function.__code__, function.__qualname__
    return ("" if function.__module__ == "__main__" else code.co_filename,
            f"{name} of line {code.co_firstlineno}" if "<lambda>" in name else name)


def _place(name: str) -> str:
    """Where an operator of the running program was defined, for a message."""
    place = getattr(loaded().defined.get(name), "place", "")
    return place and f" ({place})"


def all_operators() -> list[Operator]:
    """Every operator once, in the order of ops.yaml."""
    source = loaded().source
    return [source.operator(chunk) for chunk in source.chunks]
