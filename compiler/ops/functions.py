"""Functions that the running program adds to the expression language, by name: what its own operators compute.

Such a function is either a formula, lines of the expression language that every reading evaluates in its place, or
native: compiled from its Python text by Numba where it is called.
"""
from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.system import syntax

if TYPE_CHECKING:
    from mxc.compiler.functions.source import FunctionSource


@dataclass(frozen=True, eq=False)
class ScalarFunction:
    """One function of numbers that gives a number.

    name: unique to what it computes: no two programs have different functions under one name. count: how many arguments
    it has; its lines call them a0, a1, ... lines, result: the text of a formula; empty for a native function. source:
    the Python function of a native one. part: (i, n) where that returns a tuple of n numbers and this function is the
    i-th of them; None where it returns one number. kinds: float, int or bool, what each argument is to the Python
    function; all come as numbers of the compute dtype. derivatives: an expression for each argument, where the program
    gave them; without them a formula is differentiated. missing: what the error says where a derivative is asked for
    that there is not.
    """

    name: str
    count: int
    lines: tuple[tuple[str, str], ...] = ()
    result: str = ""
    source: FunctionSource | None = None
    part: tuple[int, int] | None = None
    kinds: tuple[type, ...] = ()
    derivatives: tuple[str, ...] = ()
    missing: str = ""
    made: dict[int, str] = field(default_factory=dict)  # argument -> derivative of a formula, once it was asked for

    @property
    def is_native(self) -> bool:
        return not self.result

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments' names in lines and derivatives."""
        return tuple(f"a{i}" for i in range(self.count))


_known: dict[str, ScalarFunction] = {}


def add(function: ScalarFunction) -> ScalarFunction:
    """Make a function known by its name, and return the known one: if there is one already, it computes the same."""
    return _known.setdefault(function.name, function)


def find(name: str) -> ScalarFunction | None:
    """The function of that name."""
    return _known.get(name)


def in_text(text: str) -> Iterator[ScalarFunction]:
    """The functions of the program that an expression calls, each once."""
    if not _known:
        return
    for name in _called(text):
        if name in _known:
            yield _known[name]


@functools.cache
def _called(text: str) -> tuple[str, ...]:
    nodes = ast.walk(syntax.parse(text.strip(), "eval"))
    found = (n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    return tuple(dict.fromkeys(found))


def written_out(text: str) -> list[str]:
    """An expression, followed by the expressions of the formulas that it calls."""
    return [text, *(line for function in in_text(text) for _, line in (*function.lines, ("", function.result)) if line)]


def calls_native(text: str) -> bool:
    """Whether an expression calls a function that Numba compiles."""
    return any(function.is_native for function in in_text(text))


@functools.cache
def numpy_function(function: ScalarFunction, dtype: str) -> np.ufunc:
    """A native function on arrays of a dtype, called for each element: slow, and the reference."""
    from mxc.compiler.functions import reference  # Most programs have no functions and never come here.

    assert function.source is not None
    plain = reference.numpy_function(function.source, function.kinds, function.part, dtype)
    return np.frompyfunc(plain, function.count, 1)
