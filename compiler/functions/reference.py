"""Functions of numbers as Python computes them on NumPy's scalars: the definition of what compiled code gives."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.compiler.functions.integers import INTEGER, TYPE
from mxc.compiler.functions.source import FunctionSource
from mxc.compiler.functions.typed import ROUNDERS, build, rewritten
from mxc.compiler.scalar_functions.records import BUILTINS

_OF_C = {f.math: f.of_doubles for f in BUILTINS.values() if f.c and not f.of_integers}


class _Math:
    """`math` with the C library's results where Python raises errors."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(math, name)
        if not callable(value) or name in _OF_C:
            return _OF_C.get(name, value)
        of_numpy = getattr(np, {"pow": "power"}.get(name, name), None)

        def guarded(*numbers: Any) -> Any:
            try:
                return value(*numbers)
            except (OverflowError, ValueError):
                return math.nan if of_numpy is None else float(of_numpy(*map(float, numbers)))

        return guarded


_math = _Math()


def without_errors(value: Any) -> Any:
    """What stands in Python for something that a function takes from around it: `math`, and its functions, that raise
    nothing; all else as it is."""
    if value is math:
        return _math
    name = getattr(value, "__name__", None)
    return getattr(_math, name) if isinstance(name, str) and getattr(math, name, None) is value else value


def numpy_function(source: FunctionSource, kinds: Sequence[type], part: tuple[int, int] | None,
                   dtype: str) -> Callable[..., float]:
    """The function on NumPy's numbers of a dtype; NaN where Python raises an error."""
    number = np.dtype(dtype).type
    text = rewritten(source, kinds, part, "mxc_reference")
    # A function of math gives a float of Python, which takes the dtype of the NumPy number that it meets.
    names = {name: without_errors(value) for name, value in text.names.items()}
    function = build(text, {TYPE: number, INTEGER: _wrapped, **ROUNDERS, **names})

    def guarded(*numbers: Any) -> float:
        try:
            return float(function(*map(number, numbers)))
        except (ArithmeticError, ValueError):
            return math.nan

    return guarded


def _wrapped(number: int) -> int:
    """A whole number wrapped to a signed one of 64 bits."""
    return (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)
