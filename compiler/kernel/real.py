"""Kernel values of one float dtype with operators, for formulas that read as such (kernel/math.py)."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value

ESTRIN_FROM = 5  # a polynomial of at least so many coefficients is not computed by Horner's rule alone (`polynomial`)


class Real:
    """A float Value with operators; numbers beside it take its dtype."""

    __slots__ = ("value",)

    def __init__(self, value: Value):
        self.value = value

    @property
    def dtype(self) -> str:
        return self.value.dtype

    def _lift(self, other: Real | float) -> Value:
        return other.value if isinstance(other, Real) else ir.const(float(other), self.dtype)

    def op(self, name: str, *others: Real | float) -> Real:
        return Real(ir.apply(name, self.value, *[self._lift(o) for o in others]))

    def __add__(self, other: Real | float) -> Real:
        return self.op("add", other)

    def __sub__(self, other: Real | float) -> Real:
        return self.op("sub", other)

    def __mul__(self, other: Real | float) -> Real:
        return self.op("mul", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.op("div", other)

    def __radd__(self, other: float) -> Real:
        return Real(self._lift(other)) + self

    def __rsub__(self, other: float) -> Real:
        return Real(self._lift(other)) - self

    def __rmul__(self, other: float) -> Real:
        return Real(self._lift(other)) * self

    def __rtruediv__(self, other: float) -> Real:
        return Real(self._lift(other)) / self

    def __neg__(self) -> Real:
        return self.op("neg")

    def __lt__(self, other: Real | float) -> Value:
        return self.op("lt", other).value

    def __gt__(self, other: Real | float) -> Value:
        return self.op("gt", other).value

    def __ge__(self, other: Real | float) -> Value:
        return self.op("ge", other).value

    def equals(self, other: Real | float) -> Value:
        return self.op("eq", other).value

    def const(self, number: float) -> Real:
        return Real(self._lift(number))

    def bits(self) -> Value:
        return ir.make("bitcast", (self.value,), "int32" if self.dtype == "float32" else "int64")


def fma(a: Real, b: Real | float, c: Real | float) -> Real:
    return a.op("fma", b, c)


def where(condition: Value, yes: Real, no: Real | float) -> Real:
    return Real(ir.apply("where", condition, yes.value, yes._lift(no)))


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """The polynomial with these coefficients, the lowest power first. Where they are few, they join by Horner's rule,
    which is most exact. Where they are many, only the lowest one or two do; those above join in pairs, pairs of pairs
    and so on (Estrin's scheme), whose steps wait less for each other."""
    terms = [x.const(c) for c in coefficients]
    lowest = len(terms) - 1 if len(terms) < ESTRIN_FROM else 2 - len(terms) % 2
    result, power = terms[lowest:], x
    while len(result) > 1:
        pairs = zip(result[::2], result[1::2], strict=False)
        result, power = [fma(high, power, low) for low, high in pairs] + result[len(result) // 2 * 2:], power * power
    for term in reversed(terms[:lowest]):
        result[0] = fma(result[0], x, term)
    return result[0]


def from_bits(bits: Value) -> Real:
    """The float of int32 or int64 bits."""
    return Real(ir.make("bitcast", (bits,), "float32" if bits.dtype == "int32" else "float64"))


def integer(op: str, value: Value, number: int) -> Value:
    """`op` of an integer value and a number of its dtype."""
    return ir.apply(op, value, ir.const(number, value.dtype))
