"""One record for each function of numbers that expressions of the operator table may call (docs/adding-a-function.md).

Every table of them is made from these records: the expression language (ops/expr.py) and its derivatives
(ops/derive.py), the kernel IR's functions, the names that the printers and interpreters of kernels use, what NumPy
computes quickly for small arrays, and what operators of a program's own may call. How a function that is more than one
step of a machine is computed, where the C library has it not or not well enough, is written in kernel/math.py under the
same name. Functions that the running program adds are in ops/functions.py.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np


class Builtin(NamedTuple):
    """One function of numbers that gives a number.

    name: its name in expressions. numpy: computes it for arrays of one dtype, and is the reference. derivatives: for
    each argument, the derivative by it as an expression over the arguments a and b; "0" says that it is flat almost
    everywhere; () says that there is no derivative, and to ask for one is an error. arity: the number of arguments. c:
    the name of the C library's function of doubles (that of floats ends in f); "" if it has none. step: the operation
    of the kernel IR that computes it in one step of a machine; "" if it is a function there too, of its own name.
    of_integers: whether it gives integers for integers; if not, expressions over integers are computed in float64.
    quick: whether NumPy computes it for small arrays as fast as compiled code would; None: it does if `numpy` is one
    function of NumPy's own.
    """

    name: str
    numpy: Callable[..., np.ndarray]
    derivatives: tuple[str, ...] = ()
    arity: int = 1
    c: str = ""
    step: str = ""
    of_integers: bool = False
    quick: bool | None = None

    @property
    def math(self) -> str:
        """Its name in Python's module `math`; "" if the C library does not have it."""
        return {"tgamma": "gamma"}.get(self.c, self.c)

    def of_doubles(self, *args: float) -> float:
        """Its value as the C library computes it: Python's function of `math`, and NumPy's value where that raises, at
        poles, beyond the range of doubles and outside of the domain."""
        try:
            return float(getattr(math, self.math)(*args))
        except (ValueError, OverflowError):
            with np.errstate(all="ignore"):
                return float(self.numpy(*map(np.float64, args)))

    @property
    def is_quick(self) -> bool:
        return isinstance(self.numpy, np.ufunc) if self.quick is None else self.quick


def _special(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """A function of special.py, which is imported by the first call: most programs need none."""
    def function(x: np.ndarray) -> np.ndarray:
        from mxc.compiler.scalar_functions import special

        return getattr(special, name)(x)

    return function


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _softrelu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))  # logaddexp takes 5 to 10 times as long


def _steps() -> Iterable[Builtin]:
    """Functions that are one step of a machine. At ties max and min have the derivative of their first argument."""
    yield Builtin("min", np.minimum, ("a <= b", "a > b"), 2, step="min", of_integers=True)
    yield Builtin("max", np.maximum, ("a >= b", "a < b"), 2, step="max", of_integers=True)
    yield Builtin("abs", np.abs, ("where(a > 0, 1, where(a < 0, -1, 0))",), c="fabs", step="abs", of_integers=True)
    yield Builtin("where", np.where, arity=3, step="where", of_integers=True)  # ops/derive.py knows its derivative
    yield Builtin("logical_and", np.logical_and, ("0", "0"), 2, step="and", of_integers=True)
    yield Builtin("logical_or", np.logical_or, ("0", "0"), 2, step="or", of_integers=True)
    yield Builtin("logical_not", np.logical_not, ("0",), step="not", of_integers=True)
    yield Builtin("floor", np.floor, ("0",), c="floor", step="floor", of_integers=True)
    yield Builtin("ceil", np.ceil, ("0",), c="ceil", step="ceil", of_integers=True)
    yield Builtin("trunc", np.trunc, ("0",), c="trunc", step="trunc", of_integers=True)
    yield Builtin("rint", np.rint, ("0",), c="rint", step="rint", of_integers=True)
    yield Builtin("sqrt", np.sqrt, ("0.5 / sqrt(a)",), c="sqrt", step="sqrt")


def _of_c() -> Iterable[Builtin]:
    """Functions that the C library has. Derivatives have (1 - a) * (1 + a), because 1 - a ** 2 would lose the digits of
    an a near 1, and tell large a apart, whose square overflows."""
    yield Builtin("exp", np.exp, ("exp(a)",), c="exp")
    yield Builtin("expm1", np.expm1, ("exp(a)",), c="expm1")
    yield Builtin("log", np.log, ("1 / a",), c="log")
    yield Builtin("log1p", np.log1p, ("1 / (1 + a)",), c="log1p")
    yield Builtin("log2", np.log2, ("1.4426950408889634 / a",), c="log2")
    yield Builtin("log10", np.log10, ("0.4342944819032518 / a",), c="log10")
    yield Builtin("sin", np.sin, ("cos(a)",), c="sin")
    yield Builtin("cos", np.cos, ("-sin(a)",), c="cos")
    yield Builtin("tan", np.tan, ("1 + tan(a) ** 2",), c="tan")
    yield Builtin("arcsin", np.arcsin, ("1 / sqrt((1 - a) * (1 + a))",), c="asin")
    yield Builtin("arccos", np.arccos, ("-1 / sqrt((1 - a) * (1 + a))",), c="acos")
    yield Builtin("arctan", np.arctan, ("1 / (1 + a ** 2)",), c="atan")
    yield Builtin("arctan2", np.arctan2, ("b / (a ** 2 + b ** 2)", "-a / (a ** 2 + b ** 2)"), 2, c="atan2")
    yield Builtin("sinh", np.sinh, ("cosh(a)",), c="sinh")
    yield Builtin("cosh", np.cosh, ("sinh(a)",), c="cosh")
    yield Builtin("tanh", np.tanh, ("1 - tanh(a) ** 2",), c="tanh")
    yield Builtin("arcsinh", np.arcsinh, ("where(abs(a) > 1e10, 1 / abs(a), 1 / sqrt(a ** 2 + 1))",), c="asinh")
    yield Builtin("arccosh", np.arccosh, ("where(a > 1e10, 1 / a, 1 / sqrt((a - 1) * (a + 1)))",), c="acosh")
    yield Builtin("arctanh", np.arctanh, ("1 / ((1 - a) * (1 + a))",), c="atanh")
    yield Builtin("cbrt", np.cbrt, ("1 / (3 * cbrt(a) ** 2)",), c="cbrt")
    yield Builtin("erf", _special("erf"), ("1.1283791670955126 * exp(-a ** 2)",), c="erf")
    yield Builtin("gamma", _special("gamma"), ("gamma(a) * digamma(a)",), c="tgamma")
    yield Builtin("lgamma", _special("lgamma"), ("digamma(a)",), c="lgamma")


def _of_our_own() -> Iterable[Builtin]:
    """Functions that kernel/math.py alone computes. decay: exp of numbers that are not above 0, and 0 where that is no
    normal number. normal_cdf: the standard normal distribution's function. power_minus_3_4: a ** -0.75.
    polygamma1, ...: derivatives of digamma."""
    yield Builtin("sigmoid", _sigmoid, ("sigmoid(a) * (1 - sigmoid(a))",), quick=True)
    yield Builtin("softrelu", _softrelu, ("sigmoid(a)",), quick=True)
    yield Builtin("decay", _special("decay"), ("decay(a)",))
    yield Builtin("normal_cdf", _special("normal_cdf"), ("0.3989422804014327 * exp(-0.5 * a ** 2)",))
    yield Builtin("power_minus_3_4", lambda x: x ** x.dtype.type(-0.75), ("-0.75 * power_minus_3_4(a) / a",))
    yield Builtin("digamma", _special("digamma"), ("polygamma1(a)",))
    yield Builtin("erfinv", _special("erfinv"), ("0.886226925452758 * exp(erfinv(a) ** 2)",))
    yield Builtin("polygamma1", _special("polygamma1"), ("polygamma2(a)",))
    yield Builtin("polygamma2", _special("polygamma2"), ("polygamma3(a)",))
    yield Builtin("polygamma3", _special("polygamma3"), ("polygamma4(a)",))
    yield Builtin("polygamma4", _special("polygamma4"))


BUILTINS: dict[str, Builtin] = {f.name: f for f in (*_steps(), *_of_c(), *_of_our_own())}
# Those that are functions in the kernel IR too, because they are more than one step of a machine: name -> record.
OF_KERNELS = {name: f for name, f in BUILTINS.items() if not f.step}
