"""The vocabulary of formulas: Python's operators, and functions of `math` and `numpy` by name, as expressions over a
and b in the language of the operator table."""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mxc.compiler.scalar_functions.records import BUILTINS

ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", lambda a, b: a + b), ast.Sub: ("-", lambda a, b: a - b), ast.Mult: ("*", lambda a, b: a * b),
    ast.Div: ("/", lambda a, b: a / b), ast.FloorDiv: ("//", lambda a, b: a // b), ast.Mod: ("%", lambda a, b: a % b),
    ast.Pow: ("**", lambda a, b: a**b)}
COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", lambda a, b: a < b), ast.LtE: ("<=", lambda a, b: a <= b), ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b), ast.Eq: ("==", lambda a, b: a == b), ast.NotEq: ("!=", lambda a, b: a != b)}
OF_KNOWN: dict[str, Callable[..., Any]] = {  # Python's own functions, called where all arguments are known
    f.__name__: f for f in (abs, bool, divmod, enumerate, float, int, len, max, min, pow, range, reversed, round, sum,
                            tuple, zip)}

# Functions whose results are numbers of the dtype.
FUNCTIONS = {
    **{name: f"{f.name}({', '.join('ab'[:f.arity])})" for f in BUILTINS.values() if f.c and not f.of_integers
       for name in (f.name, f.math)},
    "fabs": "abs(a)", "absolute": "abs(a)", "rint": "rint(a)", "square": "a * a", "reciprocal": "1 / a",
    "negative": "-a", "pow": "a ** b", "power": "a ** b",
    "maximum": "max(a, b)", "minimum": "min(a, b)", "add": "a + b", "subtract": "a - b",
    "multiply": "a * b", "divide": "a / b", "exp2": "2 ** a", "radians": "a * 0.017453292519943295",
    "degrees": "a * 57.29577951308232", "deg2rad": "a * 0.017453292519943295", "rad2deg": "a * 57.29577951308232",
    "sign": "where(a > 0, 1, where(a < 0, -1, where(a == a, 0, a)))",
    # The reciprocal of a zero, an infinity, shows the zero's sign.
    "copysign": "where(logical_or(b < 0, 1 / b < 0), -abs(a), abs(a))",
}
ROUNDING = ("floor", "ceil", "trunc")  # whole numbers of `math`, floats of `numpy`
TESTS = {"isnan": "a != a", "isinf": "abs(a) == inf", "isfinite": "abs(a) < inf",
         "logical_and": "logical_and(a, b)", "logical_or": "logical_or(a, b)", "logical_not": "logical_not(a)",
         "less": "a < b", "less_equal": "a <= b", "greater": "a > b", "greater_equal": "a >= b", "equal": "a == b",
         "not_equal": "a != b"}
