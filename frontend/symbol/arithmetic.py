"""Arithmetic and comparisons of symbols: Python's operators, and pow, maximum, minimum and hypot.

Two symbols must have the same shape (as MXNet's `elemwise_` operators demand; `broadcast_add` and so on broadcast); a
number goes into a `_scalar` operator and is cast to the symbol's dtype.
"""
from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mxc.base import NotImplementedForSymbol
from mxc.compiler.error import ArgumentTypeError
from mxc.compiler.ops import table
from mxc.symbol import construct


class _Forms(NamedTuple):
    """The operators of one function (for two symbols, symbol and number, number and symbol), and the stems of automatic
    names."""

    both: str
    scalar: str
    reflected: str
    stems: tuple[str, str, str]


_FORMS = {
    "add": _Forms("elemwise_add", "_plus_scalar", "_plus_scalar", ("_plus", "_plusscalar", "_plusscalar")),
    "sub": _Forms("elemwise_sub", "_minus_scalar", "_rminus_scalar", ("_minus", "_minusscalar", "_rminusscalar")),
    "mul": _Forms("elemwise_mul", "_mul_scalar", "_mul_scalar", ("_mul", "_mulscalar", "_mulscalar")),
    "div": _Forms("elemwise_div", "_div_scalar", "_rdiv_scalar", ("_div", "_divscalar", "_rdivscalar")),
    "mod": _Forms("_mod", "_mod_scalar", "_rmod_scalar", ("_mod", "_modscalar", "_rmodscalar")),
    "pow": _Forms("_power", "_power_scalar", "_rpower_scalar", ("_power", "_powerscalar", "_rpowerscalar")),
    "maximum": _Forms("_maximum", "_maximum_scalar", "_maximum_scalar",
                      ("_maximum", "_maximumscalar", "_maximumscalar")),
    "minimum": _Forms("_minimum", "_minimum_scalar", "_minimum_scalar",
                      ("_minimum", "_minimumscalar", "_minimumscalar")),
    "hypot": _Forms("_hypot", "_hypot_scalar", "_hypot_scalar", ("_hypot", "_hypotscalar", "_hypotscalar")),
    **{name: _Forms(f"_{name}", f"_{name}_scalar", f"_{name}_scalar",
                    (f"_{name}", f"_{name}_scalar", f"_{name}_scalar"))
       for name in ("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal")},
}


def _combine(function: str, left: Any, right: Any, compute: Callable[[Any, Any], Any] | None = None) -> Any:
    """`function` of two symbols, or of a symbol and a number; two numbers give what `compute` makes of them.

    Raises TypeError for anything else.
    """
    forms = _FORMS[function]
    symbols = isinstance(left, Arithmetic), isinstance(right, Arithmetic)
    if all(symbols):
        return construct.apply(table.get(forms.both), forms.stems[0], {"lhs": left, "rhs": right}, {})
    if symbols[0] and isinstance(right, numbers.Number):
        return construct.apply(table.get(forms.scalar), forms.stems[1], {"data": left}, {"scalar": right})
    if symbols[1] and isinstance(left, numbers.Number):
        return construct.apply(table.get(forms.reflected), forms.stems[2], {"data": right}, {"scalar": left})
    if compute is not None and isinstance(left, numbers.Number) and isinstance(right, numbers.Number):
        return compute(left, right)
    if any(symbols):
        raise ArgumentTypeError(f"type {type(right if symbols[0] else left)} not supported")
    raise ArgumentTypeError(f"types ({type(left)}, {type(right)}) not supported")


def pow(base: Any, exp: Any) -> Any:
    """`base ** exp`, elementwise; each a symbol or a number (two numbers give a number)."""
    return _combine("pow", base, exp, operator.pow)


def power(base: Any, exp: Any) -> Any:
    """The same as `pow`."""
    return pow(base, exp)


def maximum(left: Any, right: Any) -> Any:
    """The larger of two symbols, or of a symbol and a number, elementwise (two numbers give a number)."""
    return _combine("maximum", left, right, lambda a, b: a if a > b else b)


def minimum(left: Any, right: Any) -> Any:
    """The smaller of two symbols, or of a symbol and a number, elementwise (two numbers give a number)."""
    return _combine("minimum", left, right, lambda a, b: a if a < b else b)


def hypot(left: Any, right: Any) -> Any:
    """`sqrt(left**2 + right**2)`, elementwise; each a symbol or a number (two numbers give a number)."""
    return _combine("hypot", left, right, np.hypot)


class Arithmetic:
    """Python's operators for symbols, and the refusal of those that would need values."""

    __slots__ = ()
    __array_ufunc__ = None  # With this, Python calls our methods for `numpy_number * symbol`, not NumPy's.

    def __add__(self, other: Any) -> Any:
        return _combine("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _combine("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combine("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _combine("mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _combine("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _combine("div", other, self)

    def __mod__(self, other: Any) -> Any:
        return _combine("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _combine("mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return _combine("pow", self, other)

    def __rpow__(self: Any, other: Any) -> Any:
        if isinstance(other, Arithmetic):
            return _combine("pow", other, self)
        if not isinstance(other, numbers.Number):
            raise ArgumentTypeError(f"type {type(other)} not supported")
        return construct.apply(table.get("_rpower_scalar"), "_rpower_scalar", {"data": self}, {"scalar": other})

    def __neg__(self) -> Any:
        return self * -1.0

    def __abs__(self: Any) -> Any:
        return construct.apply(table.get("abs"), "abs", {"data": self}, {})

    def __eq__(self, other: object) -> Any:
        return _combine("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return _combine("not_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _combine("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _combine("greater_equal", self, other)

    def __lt__(self, other: Any) -> Any:
        return _combine("lesser", self, other)

    def __le__(self, other: Any) -> Any:
        return _combine("lesser_equal", self, other)

    __hash__ = None  # type: ignore[assignment]  # == makes a symbol, so a symbol cannot be a key of a dict.

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol("__bool__", "bool")

    # Python 2's names, which programs call as they are.
    __div__, __rdiv__, __nonzero__ = __truediv__, __rtruediv__, __bool__

    def __iadd__(self, other: Any) -> NoReturn:
        raise NotImplementedForSymbol("__iadd__", "+=", other)

    def __isub__(self, other: Any) -> NoReturn:
        raise NotImplementedForSymbol("__isub__", "-=", other)

    def __imul__(self, other: Any) -> NoReturn:
        raise NotImplementedForSymbol("__imul__", "*=", other)

    def __itruediv__(self, other: Any) -> NoReturn:
        raise NotImplementedForSymbol("__itruediv__", "/=", other)

    def __idiv__(self, other: Any) -> NoReturn:
        raise NotImplementedForSymbol("__idiv__", "/=", other)
