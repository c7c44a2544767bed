"""The expression language of the operator table: checked Python expressions with several readings.

An expression is arithmetic (`+ - * / ** %`, unary `-`) and comparisons over names (inputs and parameters), numbers and
the functions of scalar_functions/records.py. `evaluate` walks it and calls a reading's methods; the NumPy reading is
here, the typed kernel reading in kernel/scalar.py, the derivative in derive.py.

Types. A whole expression is computed in `compute_dtype(text, dtype)` of the operator's output dtype: itself, but
float32 for float16 and bfloat16, and float64 for integers where a function like `exp`, a constant like `pi` or a number
with a fraction is used; the result is then cast to the output dtype. Inputs and parameters are cast to the compute
dtype where an operation takes them (a parameter to the output's dtype before that, see `number_as`: 2.5 is 2 beside
integers); only the test of `where` and the arguments of the logical functions keep their own: any number but 0 is true.
Comparisons give truth values, which count as 0 and 1 in arithmetic.
"""
from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.ops import functions
from mxc.compiler.ops.dtypes import BFLOAT16, NARROW, narrowed, numpy_dtype, widened
from mxc.compiler.scalar_functions.records import BUILTINS
from mxc.compiler.system import syntax

T = TypeVar("T")

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Mod: "mod", ast.Pow: "pow",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}
CONSTANTS = {"pi": float(np.pi), "e": float(np.e), "inf": float("inf"), "nan": float("nan")}
# What to say in place of functions that NumPy and MXNet have and the language does not.
INSTEAD = {"clip": "min(max(x, a), b)", "maximum": "max(a, b)", "minimum": "min(a, b)", "power": "a ** b",
           "relu": "max(x, 0)", "square": "x * x"}


class Reading(Protocol[T]):
    """What an expression means. Methods get and give values of the reading's own type."""

    def const(self, number: int | float) -> T:
        """A number of the expression's text."""

    def apply(self, op: str, *args: T) -> T:
        """The value of the function `op` of these arguments.

        op: a native function of the running program (functions.py), or a name of kernel/ir.py: add sub mul div mod pow
        neg min max abs where lt le gt ge eq ne and or not sqrt floor ceil trunc rint, or one of its FUNCTIONS. The
        first argument of where, and those of and, or, not, may be numbers: any number but 0 is true. Truth values may
        come where numbers are needed: they are 0 and 1.
        """

    def cast(self, value: T, dtype: str) -> T:
        """`value` rounded to `dtype`."""

    def line(self, value: T) -> T:
        """The value of a line of a formula (functions.py), which several others may use."""


@functools.cache
def parse(text: str) -> ast.expr:
    """The checked syntax tree of an expression. Raises MXNetError at what the language does not have."""
    try:
        tree = syntax.parse(text.strip(), "eval").body
    except SyntaxError as error:
        raise MXNetError(f"expression {text!r}: {error.msg}") from None
    for node in ast.walk(tree):
        _check(node, text)
    return tree


def _check(node: ast.AST, text: str) -> None:
    plain = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.USub, *OPERATORS)
    if isinstance(node, plain):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
        return
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name, count = node.func.id, len(node.args)
        if name == "cast" and count == 2 and isinstance(node.args[1], ast.Constant):
            return
        builtin = BUILTINS.get(name)
        if builtin is not None and builtin.arity == count:
            return
        added = functions.find(name)
        if added is not None and added.count == count:
            return
        known = _not_there(name) if builtin is None else f"takes {builtin.arity} arguments"
        raise MXNetError(f"expression {text!r}: {name} with {count} arguments: {name} {known}")
    raise MXNetError(f"expression {text!r}: {type(node).__name__} is not part of the language")


def _not_there(name: str) -> str:
    """What an error says of a function that the language does not have."""
    instead = f"; say {INSTEAD[name]}" if name in INSTEAD else nearest(name, BUILTINS)
    return f"is not a function of the language{instead}; docs/adding-an-operator.md lists its functions"


@functools.cache
def names_of(text: str) -> frozenset[str]:
    """The inputs and parameters that an expression uses (functions and CONSTANTS left out)."""
    return frozenset(names_in(parse(text)))


def names_in(tree: ast.AST) -> set[str]:
    """Like `names_of`, but for a syntax tree."""
    functions = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in functions}
    return names - set(CONSTANTS)


@functools.cache
def compute_dtype(text: str, dtype: str) -> str:
    """The dtype in which an expression is computed whose operator gives `dtype` (see the module's text)."""
    if dtype in NARROW:
        return "float32"
    if dtype.startswith("float"):
        return dtype
    if _is_real(text):
        return "float64"
    return "int32" if dtype == "bool" else dtype


@functools.cache
def _is_real(text: str) -> bool:
    """Whether an expression leaves the integers, by a function like exp, a constant like pi or a number with a
    fraction."""
    nodes = list(ast.walk(parse(text)))
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    leaving = CONSTANTS.keys() | {name for name, f in BUILTINS.items() if not f.of_integers}
    return bool(names & leaving) or any(isinstance(n, ast.Constant) and isinstance(n.value, float)
                                                    for n in nodes)


def evaluate(text: str, reading: Reading[T], env: Mapping[str, T]) -> T:
    """The value of an expression under `reading`, its names taken from `env`.

    Raises MXNetError when a name is not in `env`.
    """

    def walk(node: ast.expr) -> T:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, (int, float))
            return reading.const(node.value)
        if isinstance(node, ast.Name):
            if node.id in env:
                return env[node.id]
            if node.id in CONSTANTS:
                return reading.const(CONSTANTS[node.id])
            raise MXNetError(f"expression {text!r}: {node.id} is neither an input nor a parameter")
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, (int, float)):
                return reading.const(-node.operand.value)
            return reading.apply("neg", walk(node.operand))
        if isinstance(node, ast.BinOp):
            left = walk(node.left)
            if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
                return reading.apply("mul", left, left)
            return reading.apply(OPERATORS[type(node.op)], left, walk(node.right))
        if isinstance(node, ast.Compare):
            return reading.apply(OPERATORS[type(node.ops[0])], walk(node.left), walk(node.comparators[0]))
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "cast":
            dtype = node.args[1]
            assert isinstance(dtype, ast.Constant)
            return reading.cast(walk(node.args[0]), str(dtype.value))
        values = [walk(a) for a in node.args]
        added = functions.find(node.func.id)
        if added is not None and not added.is_native:
            return _of_formula(added, reading, values)
        builtin = BUILTINS.get(node.func.id)
        return reading.apply(node.func.id if builtin is None else builtin.step or builtin.name, *values)

    return walk(parse(text))


def _of_formula(function: functions.ScalarFunction, reading: Reading[T], values: Sequence[T]) -> T:
    """What a formula gives: its lines under the reading, each once."""
    env = dict(zip(function.arguments, values, strict=True))
    for name, text in function.lines:
        env[name] = reading.line(evaluate(text, reading, env))
    return evaluate(function.result, reading, env)


class NumpyReading:
    """Expressions over arrays of one compute dtype, slow and obvious: the reference."""

    def __init__(self, dtype: str):
        self.dtype = np.dtype(dtype)

    def const(self, number: int | float) -> np.ndarray:
        return np.asarray(number_as(number, self.dtype.name), self.dtype)

    def cast(self, value: np.ndarray, dtype: str) -> np.ndarray:
        return as_dtype(as_dtype(value, numpy_dtype(dtype)), self.dtype)

    def line(self, value: np.ndarray) -> np.ndarray:
        return value

    def apply(self, op: str, *args: np.ndarray) -> np.ndarray:
        if op in ("and", "or", "not"):
            return NUMPY[op](*[a != 0 for a in args])
        if op == "where":
            return np.where(args[0] != 0, as_dtype(args[1], self.dtype), as_dtype(args[2], self.dtype))
        added = functions.find(op)
        function = NUMPY[op] if added is None else functions.numpy_function(added, self.dtype.name)
        with np.errstate(all="ignore"):
            result = np.asarray(function(*[as_dtype(a, self.dtype) for a in args]))
        return result if result.dtype == bool else as_dtype(np.asarray(result), self.dtype)


_WIDE = np.iinfo("int32"), np.iinfo("int64")


def as_dtype(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`array` converted as kernels convert it. Integers wrap. A float is truncated to an int32 (for int64: an int64),
    which then wraps; NaN and numbers that do not fit become the lowest integer."""
    if array.dtype == dtype:
        return array
    array = widened(array)
    if dtype == BFLOAT16:
        return narrowed(array)
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f" and dtype.kind in "iu":
            wide = _WIDE[dtype.itemsize == 8]
            if array.size and array.min() >= wide.min and array.max() < -wide.min:  # the usual, quick case
                return array.astype(wide.dtype).astype(dtype, copy=False)
            number = np.trunc(array.astype("float64"))
            fits = (number >= float(wide.min)) & (number < -float(wide.min))
            return np.where(fits, np.where(fits, number, 0).astype(wide.dtype), wide.min).astype(dtype)
        return array.astype(dtype)


def number_as(number: int | float, dtype: str) -> int | float:
    """A number of an expression, or a parameter, as `dtype` holds it.

    Floats are rounded; integers wrap (-3 is 253 as uint8); a float beside an integer dtype is truncated, and is first
    brought into the range of int32 (int64 for int64), so that clip's bound inf stays a bound.
    """
    if dtype == "bfloat16":
        return widened(narrowed(np.asarray(number))).item()
    kind = np.dtype(dtype)
    if kind.kind in "iub" and isinstance(number, float):
        wide = np.iinfo("int64" if kind.itemsize == 8 else "int32")
        number = 0 if number != number else int(min(max(number, wide.min), wide.max))
    with np.errstate(all="ignore"):
        return np.asarray(number).astype(kind).item()


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Float division; integers truncate, and a zero divisor gives 0."""
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    quotient, rest = a // safe, a % safe
    quotient = quotient + ((rest != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, 0, quotient).astype(a.dtype)


def _modulus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The remainder with the divisor's sign; 0 for a zero divisor, NaN for a NaN."""
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    if a.dtype.kind != "f":
        return np.where(b == 0, 0, np.mod(a, safe)).astype(a.dtype)
    rest = np.fmod(a, safe)  # has a's sign, also as a zero; where the divisor has the other sign a zero becomes +0
    moved = rest + np.where(rest != 0, b, 0)
    return np.where(b == 0, 0, np.where((a < 0) == (b < 0), rest, moved)).astype(a.dtype)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a ** b; of integers by way of float64, truncated."""
    if a.dtype.kind == "f":
        # The exponents are made a whole array: for a single exponent 0.5 NumPy takes the root, which is NaN for -inf.
        return np.power(a, np.array(np.broadcast_to(b, np.broadcast_shapes(a.shape, b.shape))))
    return as_dtype(np.power(a.astype("float64"), b.astype("float64")), a.dtype)


NUMPY: dict[str, Callable[..., np.ndarray]] = {  # name of an operation in kernel/ir.py -> its NumPy function
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "mod": _modulus, "pow": _power,
    "neg": np.negative,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    **{f.step or f.name: f.numpy for f in BUILTINS.values()},
}
