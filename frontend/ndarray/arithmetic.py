"""Arithmetic and comparisons of arrays: the operators of NDArray and the functions of the same meaning.

Two arrays go to a `broadcast_` operator, an array and a number to a `_scalar` one; dtypes follow the operators' rules
(two arrays must have the same dtype; a number is cast to the array's).
"""
from __future__ import annotations

import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class Arithmetic:
    """Python's operators for arrays.

    A subclass has the method `_apply(op, *others, out=None, **params)`: the first output of an operator on this array
    and others, written into `out` when it is given.
    """

    __slots__ = ()
    _apply: Callable[..., Any]

    def __add__(self, other):
        return add(self, other)

    __radd__ = __add__

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return divide(self, other)

    def __rtruediv__(self, other):
        return divide(other, self)

    def __mod__(self, other):
        return modulo(self, other)

    def __rmod__(self, other):
        return modulo(other, self)

    # Python 2's names, which programs call as they are.
    __div__, __rdiv__ = __truediv__, __rtruediv__

    def __pow__(self, other):
        return power(self, other)

    def __rpow__(self, other):
        return power(other, self)

    def __neg__(self):
        return self._apply("negative")

    def __abs__(self):
        return self._apply("abs")

    def __iadd__(self, other):
        return add(self, other, out=self)

    def __isub__(self, other):
        return subtract(self, other, out=self)

    def __imul__(self, other):
        return multiply(self, other, out=self)

    def __itruediv__(self, other):
        return divide(self, other, out=self)

    __idiv__ = __itruediv__

    def __imod__(self, other):
        return modulo(self, other, out=self)

    def __eq__(self, other):
        return equal(self, other)

    def __ne__(self, other):
        return not_equal(self, other)

    def __lt__(self, other):
        return lesser(self, other)

    def __le__(self, other):
        return lesser_equal(self, other)

    def __gt__(self, other):
        return greater(self, other)

    def __ge__(self, other):
        return greater_equal(self, other)

    def __hash__(self) -> int:
        return id(self) >> 4


def _is_number(value: object) -> bool:
    return isinstance(value, (float, int, numbers.Number, np.number, np.bool_))  # The usual types are checked first.


def _binary(lhs: Any, rhs: Any, broadcast: str, scalar: str, reverse: str, plain: Callable[[Any, Any], Any],
            out: Any = None) -> Any:
    """Call the operator that fits the operands: `broadcast` for two arrays, `scalar` for (array, number), `reverse` for
    (number, array); `plain` is for two numbers."""
    if isinstance(lhs, Arithmetic):
        if isinstance(rhs, Arithmetic):
            return lhs._apply(broadcast, rhs, out=out)
        if _is_number(rhs):
            return lhs._apply(scalar, out=out, scalar=float(rhs))
    elif _is_number(lhs):
        if isinstance(rhs, Arithmetic):
            return rhs._apply(reverse, out=out, scalar=float(lhs))
        if _is_number(rhs):
            return plain(lhs, rhs)
    wrong = rhs if isinstance(lhs, Arithmetic) or _is_number(lhs) else lhs
    raise TypeError(f"type {type(wrong)} is not supported: an operand is an NDArray or a number; make an array with "
                    "mx.nd.array")


def add(lhs, rhs, out=None):
    """lhs + rhs, broadcast."""
    return _binary(lhs, rhs, "broadcast_add", "_plus_scalar", "_plus_scalar", operator.add, out)


def subtract(lhs, rhs, out=None):
    """lhs - rhs, broadcast."""
    return _binary(lhs, rhs, "broadcast_sub", "_minus_scalar", "_rminus_scalar", operator.sub, out)


def multiply(lhs, rhs, out=None):
    """lhs * rhs, broadcast."""
    return _binary(lhs, rhs, "broadcast_mul", "_mul_scalar", "_mul_scalar", operator.mul, out)


def divide(lhs, rhs, out=None):
    """lhs / rhs, broadcast; integers truncate, and a zero divisor gives 0."""
    return _binary(lhs, rhs, "broadcast_div", "_div_scalar", "_rdiv_scalar", operator.truediv, out)


true_divide = divide


def modulo(lhs, rhs, out=None):
    """lhs % rhs with the divisor's sign, broadcast; a zero divisor gives 0."""
    return _binary(lhs, rhs, "broadcast_mod", "_mod_scalar", "_rmod_scalar", operator.mod, out)


def power(base, exp, out=None):
    """base ** exp, broadcast."""
    return _binary(base, exp, "broadcast_power", "_power_scalar", "_rpower_scalar", operator.pow, out)


def maximum(lhs, rhs, out=None):
    """The larger one of each pair of elements, broadcast."""
    return _binary(lhs, rhs, "broadcast_maximum", "_maximum_scalar", "_maximum_scalar", max, out)


def minimum(lhs, rhs, out=None):
    """The smaller one of each pair of elements, broadcast."""
    return _binary(lhs, rhs, "broadcast_minimum", "_minimum_scalar", "_minimum_scalar", min, out)


def equal(lhs, rhs):
    """1 where lhs == rhs, else 0, in the arrays' dtype."""
    return _binary(lhs, rhs, "broadcast_equal", "_equal_scalar", "_equal_scalar", lambda a, b: 1 if a == b else 0)


def not_equal(lhs, rhs):
    """1 where lhs != rhs, else 0."""
    return _binary(lhs, rhs, "broadcast_not_equal", "_not_equal_scalar", "_not_equal_scalar",
                   lambda a, b: 1 if a != b else 0)


def greater(lhs, rhs):
    """1 where lhs > rhs, else 0."""
    return _binary(lhs, rhs, "broadcast_greater", "_greater_scalar", "_lesser_scalar", lambda a, b: 1 if a > b else 0)


def greater_equal(lhs, rhs):
    """1 where lhs >= rhs, else 0."""
    return _binary(lhs, rhs, "broadcast_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar",
                   lambda a, b: 1 if a >= b else 0)


def lesser(lhs, rhs):
    """1 where lhs < rhs, else 0."""
    return _binary(lhs, rhs, "broadcast_lesser", "_lesser_scalar", "_greater_scalar", lambda a, b: 1 if a < b else 0)


def lesser_equal(lhs, rhs):
    """1 where lhs <= rhs, else 0."""
    return _binary(lhs, rhs, "broadcast_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar",
                   lambda a, b: 1 if a <= b else 0)


def logical_and(lhs, rhs):
    """1 where both are not 0, else 0."""
    return _binary(lhs, rhs, "broadcast_logical_and", "_logical_and_scalar", "_logical_and_scalar",
                   lambda a, b: 1 if a and b else 0)


def logical_or(lhs, rhs):
    """1 where either is not 0, else 0."""
    return _binary(lhs, rhs, "broadcast_logical_or", "_logical_or_scalar", "_logical_or_scalar",
                   lambda a, b: 1 if a or b else 0)


def logical_xor(lhs, rhs):
    """1 where exactly one is not 0, else 0."""
    return _binary(lhs, rhs, "broadcast_logical_xor", "_logical_xor_scalar", "_logical_xor_scalar",
                   lambda a, b: 1 if bool(a) != bool(b) else 0)
