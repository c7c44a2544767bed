"""Where the rules of operators are: which file of a family has those of a role, and finding one by its name.

A rule is a function of its family's folder in compiler/operators/, in the file and with the parameter names that HOMES
has, named in the operator's entry. A function with other parameter names is a helper, not a rule.
"""
from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from mxc.compiler.error import MXNetError, nearest

Role = str  # what a named rule is for: "shape", "dtype", "reference", "grad", ...; HOMES has them all


@dataclass(frozen=True)
class Home:
    """Which file of a family has the rules of a role, and the names of a rule's parameters."""

    file: str
    parameters: tuple[str, ...]


_SHAPE = ("params", "ins", "outs")
HOMES: dict[str, Home] = {
    "shape": Home("shape", _SHAPE),
    "dtype": Home("shape", _SHAPE),
    "values": Home("shape", ("values",)),
    "flops": Home("shape", _SHAPE),
    "reference": Home("reference", ("params", "inputs", "is_train", "rng")),
    "changes": Home("reference", ("params", "arrays")),
    "decompose": Home("graph", ("builder", "node", "inputs", "options")),
    "grad": Home("graph", ("g",)),
    "aux_update": Home("graph", ("g",)),
    "rows": Home("graph", ("site",)),
    "subgraph": Home("shape", ("params", "subgraphs")),
    "sparse": Home("sparse", ("op", "params", "stypes")),
    "index": Home("kernel", ("c", "params", "index")),
    "window": Home("kernel", ("c", "params")),
    "call": Home("kernel", ("c", "params")),
    "routine": Home("kernel", ("c", "params")),
}
OPERATORS = "mxc.compiler.operators"  # the package of all families
SHARED = "basic"  # the family whose rules operators of every family may name


@functools.cache
def families() -> tuple[str, ...]:
    """The names of all families, sorted."""
    root = importlib.import_module(OPERATORS)
    return tuple(sorted(info.name for info in pkgutil.iter_modules(root.__path__)))


def file_of(family: str, file: str) -> ModuleType | None:
    """A file of a family, imported; None where it has none."""
    name = f"{OPERATORS}.{family}.{file}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):  # The file exists, but not what it imports.
            raise
        return None


@functools.cache
def rules_of(role: str, family: str) -> Mapping[str, Callable]:
    """The rules of a role in its file of a family, by name: the functions with the role's parameter names."""
    module = file_of(family, HOMES[role].file)
    return {name: function for name, function in vars(module).items() if inspect.isfunction(function)
            and function.__module__ == module.__name__ and not name.startswith("_")
            and tuple(inspect.signature(function).parameters) == HOMES[role].parameters} if module else {}


@functools.cache
def find_rule(role: str, family: str, name: str) -> Callable:
    """The rule of that name, of the family or shared.

    Raises MXNetError with the nearest known name, or with what a function of that name takes that is no such rule.
    """
    for place in (family, SHARED):
        if name in rules_of(role, place):
            return rules_of(role, place)[name]
    home, known = HOMES[role], [*rules_of(role, family), *rules_of(role, SHARED)]
    for place in (family, SHARED):
        helper = getattr(file_of(place, home.file), name, None)
        taken = tuple(inspect.signature(helper).parameters) if inspect.isfunction(helper) else home.parameters
        if taken != home.parameters:
            raise MXNetError(f"{name} in compiler/operators/{place}/{home.file}.py takes ({', '.join(taken)}), and a "
                             f"{role} rule takes ({', '.join(home.parameters)})")
    raise MXNetError(f"there is no {role} rule {name!r} in compiler/operators/{family}/{home.file}.py"
                     f"{nearest(name, known)}; expected def {name}({', '.join(home.parameters)})")
