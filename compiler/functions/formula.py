"""Plain Python functions read as formulas: lines of the operator table's expression language (ops/expr.py).

A formula is arithmetic, comparisons and functions over numbers, with branches and loops that the function's text alone
decides the course of. Reading runs the function once on names: both branches of an `if` are read, and what they differ
in is selected; loops over known numbers are unrolled; functions that it calls are read where they are called. Each step
becomes a line `name = expression` over earlier names, and equal steps are one line, so lines are as many as steps.
A function that could not be read exactly is left to Numba: `NotFormula` says why.
"""
from __future__ import annotations

import ast
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mxc.compiler.functions.source import FunctionSource
from mxc.compiler.functions.vocabulary import ARITHMETIC, COMPARISONS, FUNCTIONS, OF_KNOWN, ROUNDING, TESTS
from mxc.compiler.system import syntax

MOST_LINES = 256  # lines of a formula: one with more is a loop that nobody wants unrolled
MOST_STEPS = 20_000  # statements: reading stops after so many, so that a long loop does not hold up the program
REAL, WHOLE, TRUTH = "real", "whole", "truth"  # kinds: any number of the dtype, one without a fraction, 0 or 1
KINDS = {float: REAL, int: WHOLE, bool: TRUTH}


class NotFormula(Exception):
    """The function is no formula, or not one that could be read exactly."""


@dataclass(frozen=True)
class Term:
    """The value of a line or an argument that is not known while the function is read: its name and its kind."""

    name: str
    kind: str


@dataclass(frozen=True)
class Formula:
    """A function as formula. lines: (name, expression) pairs over the arguments a0, a1, ... and the lines before.
    results: an expression for each number that the function gives."""

    lines: tuple[tuple[str, str], ...]
    results: tuple[str, ...]


Operand = Any  # a Term, a number that is known, or a tuple of values
NOTHING = object()  # the value of a name to which only one branch of an `if` has given one


def read_formula(source: FunctionSource, kinds: Sequence[type], outputs: int = 0) -> Formula:
    """The formula of a function. kinds: float, int or bool for each argument, inputs first. outputs: how many numbers
    it has to give in a tuple; 0: one number, by itself.

    Raises NotFormula, and MXNetError where it gives another number of values.
    """
    reader = _Reader(source, outputs)
    names = [*source.inputs, *source.keywords]
    arguments = {name: Term(f"a{i}", KINDS[kind]) for i, (name, kind) in enumerate(zip(names, kinds, strict=True))}
    try:
        result = reader.function(source, arguments)
    except (RecursionError, ArithmeticError, ValueError, TypeError, IndexError) as error:
        raise NotFormula(str(error)) from None
    results = result if outputs else (result,)
    texts = [reader.text(value) for value in results]
    return Formula(tuple(used_lines(reader.lines, texts)), tuple(texts))


def used_lines(lines: Sequence[tuple[str, str]], results: Sequence[str]) -> list[tuple[str, str]]:
    """The lines that results need."""
    needed = {n for text in results for n in _names(text)}
    kept = []
    for name, text in reversed(lines):
        if name in needed:
            needed |= _names(text)
            kept.append((name, text))
    return kept[::-1]


def _names(text: str) -> set[str]:
    return {n.id for n in ast.walk(syntax.parse(text, "eval").body) if isinstance(n, ast.Name)}


class _Bind(NamedTuple):
    """A step of a loop that is being unrolled: the name gets the value."""

    target: ast.expr
    value: Operand


class _Reader:
    def __init__(self, source: FunctionSource, outputs: int):
        self.main, self.outputs = source, outputs
        self.lines: list[tuple[str, str]] = []
        self.known: dict[str, Term] = {}
        self.steps = 0
        self.source = source  # the function that is being read now

    # --- values

    def text(self, value: Operand) -> str:
        """The text that a value has in an expression."""
        if isinstance(value, Term):
            return value.name
        if isinstance(value, (bool, int)):
            text = repr(float(value) if abs(value) > 2**53 else int(value))
        elif isinstance(value, float):
            text = repr(value)
        else:
            raise NotFormula("a tuple is no number")
        return f"({text})" if text.startswith("-") else text

    def line(self, text: str, kind: str) -> Term:
        """The line that computes an expression: a new one, or the one that does so already."""
        if text not in self.known:
            if len(self.lines) >= MOST_LINES:
                raise NotFormula(f"it takes more than {MOST_LINES} steps")
            name = f"t{len(self.lines)}"
            self.lines.append((name, text))
            self.known[text] = Term(name, kind)
        return self.known[text]

    def apply(self, pattern: str, kind: str, *values: Operand) -> Term:
        """The line of an expression in which the values take the places of a, b and c."""
        names = dict(zip("abc", map(self.text, values), strict=False))
        tree = syntax.parse(pattern, "eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                node.id = names[node.id]
        return self.line(ast.unparse(tree), kind)

    def select(self, test: Term, yes: Operand, no: Operand) -> Operand:
        """`yes` where `test` is not 0, else `no`."""
        if isinstance(yes, tuple) or isinstance(no, tuple):
            if not (isinstance(yes, tuple) and isinstance(no, tuple) and len(yes) == len(no)):
                raise NotFormula("branches give values of different forms")
            return tuple(self.select(test, y, n) for y, n in zip(yes, no, strict=True))
        if NOTHING in (yes, no):
            return NOTHING
        kinds = {kind_of(yes), kind_of(no)}
        if self.text(yes) == self.text(no) and len(kinds) == 1:
            return yes
        kind = kinds.pop() if len(kinds) == 1 else REAL if REAL in kinds else WHOLE
        return self.line(f"where({test.name}, {self.text(yes)}, {self.text(no)})", kind)

    # --- statements

    def function(self, source: FunctionSource, arguments: dict[str, Operand]) -> Operand:
        """What a function returns for these arguments."""
        before, self.source = self.source, source
        result = self.run(source.statements, dict(arguments))
        if result is None:
            raise NotFormula("a path has no return")
        self.source = before
        return result

    def run(self, statements: Sequence[Any], names: dict[str, Operand]) -> Operand | None:
        """What the statements return; None where they reach their end without a return. names: the variables' values,
        which are changed."""
        for i, node in enumerate(statements):
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise NotFormula("its loops take too many steps")
            rest = statements[i + 1:]
            if isinstance(node, ast.Return):
                return self.returned(node, names)
            if isinstance(node, ast.If):
                test = self.value(node.test, names)
                if not isinstance(test, Term):
                    return self.run([*(node.body if test else node.orelse), *rest], names)
                if _returns(node):
                    yes = self.run([*node.body, *rest], dict(names))
                    no = self.run([*node.orelse, *rest], dict(names))
                    if yes is None or no is None:
                        raise NotFormula("a path has no return")
                    return self.select(test, yes, no)
                self.branch(test, node, names)
            elif isinstance(node, ast.For):
                steps: list[Any] = []
                for item in self.items(node, names):
                    steps += [_Bind(node.target, item), *node.body]
                return self.run([*steps, *node.orelse, *rest], names)
            else:
                self.assign(node, names)
        return None

    def branch(self, test: Term, node: ast.If, names: dict[str, Operand]) -> None:
        """An `if` whose branches only assign: what they differ in is selected."""
        yes, no = dict(names), dict(names)
        self.run(node.body, yes)
        self.run(node.orelse, no)
        for name in {**yes, **no}:
            a, b = yes.get(name, NOTHING), no.get(name, NOTHING)
            names[name] = a if a is b else self.select(test, a, b)

    def returned(self, node: ast.Return, names: dict[str, Operand]) -> Operand:
        if node.value is None:
            raise NotFormula("it returns nothing")
        value = self.value(node.value, names)
        if self.source is self.main:
            count = len(value) if isinstance(value, tuple) else 0
            if count != self.outputs:
                raise self.source.error(wrong_count(count, self.outputs), node)
        return value

    def items(self, node: ast.For, names: dict[str, Operand]) -> Sequence[Operand]:
        """The values that a loop goes over. Raises NotFormula where they are not known."""
        if any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(node)):
            raise NotFormula("a loop ends early")
        value = self.value(node.iter, names)
        if not isinstance(value, (tuple, range)) or len(value) > MOST_STEPS:
            raise NotFormula("a loop goes over what is not known")
        return value

    def assign(self, node: Any, names: dict[str, Operand]) -> None:
        if isinstance(node, _Bind):
            self.bind(node.target, node.value, names)
        elif isinstance(node, ast.Assign):
            value = self.value(node.value, names)
            for target in node.targets:
                self.bind(target, value, names)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.bind(node.target, self.value(node.value, names), names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            old = self.of_name(node.target.id, names)
            names[node.target.id] = self.binary(node.op, old, self.value(node.value, names))
        elif not (isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))):
            raise NotFormula(f"{type(node).__name__} is not part of a formula")

    def bind(self, target: ast.expr, value: Operand, names: dict[str, Operand]) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, tuple) and len(value) == len(target.elts):
            for one, part in zip(target.elts, value, strict=True):
                self.bind(one, part, names)
        else:
            raise NotFormula("it assigns to what is no name")

    # --- expressions

    def value(self, node: ast.expr, names: dict[str, Operand]) -> Operand:
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            return node.value
        if isinstance(node, ast.Name):
            return self.of_name(node.id, names)
        if isinstance(node, ast.Tuple):
            return tuple(self.value(n, names) for n in node.elts)
        if isinstance(node, ast.BinOp):
            return self.binary(node.op, self.value(node.left, names), self.value(node.right, names))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node.op, self.value(node.operand, names))
        if isinstance(node, ast.Compare):
            return self.compare(node, names)
        if isinstance(node, ast.BoolOp):
            return self.joined(node, names)
        if isinstance(node, ast.IfExp):
            test = self.value(node.test, names)
            if not isinstance(test, Term):
                return self.value(node.body if test else node.orelse, names)
            return self.select(test, self.value(node.body, names), self.value(node.orelse, names))
        if isinstance(node, ast.Attribute):
            return self.known_number(self.member(node))
        if isinstance(node, ast.Subscript):
            whole, index = self.value(node.value, names), self.value(node.slice, names)
            if isinstance(whole, tuple) and isinstance(index, int):
                return whole[index]
        if isinstance(node, ast.Call):
            return self.call(node, names)
        raise NotFormula(f"{type(node).__name__} is not part of a formula")

    def of_name(self, name: str, names: Mapping[str, Operand]) -> Operand:
        value = names[name] if name in names else self.known_number(self.source.names.get(name, NOTHING))
        if value is NOTHING:
            raise NotFormula(f"{name} may have no value")
        return value

    def known_number(self, value: Any) -> Operand:
        """A number from outside of the function, or a tuple of them."""
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, (bool, int, float, tuple)):
            raise NotFormula("it is no number")
        return value

    def member(self, node: ast.Attribute) -> Any:
        """A member of a module."""
        module = self.source.names.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if not isinstance(module, types.ModuleType):
            raise NotFormula("an attribute of what is no module")
        if not hasattr(module, node.attr):
            raise self.source.error(f"{module.__name__} has no member {node.attr}", node)
        return getattr(module, node.attr)

    def binary(self, op: ast.operator, a: Operand, b: Operand) -> Operand:
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            if kind_of(a) != TRUTH or kind_of(b) != TRUTH:
                raise NotFormula("it works on bits")
            return self.apply({ast.BitAnd: "logical_and(a, b)", ast.BitOr: "logical_or(a, b)"}.get(
                type(op), "logical_not(a) != logical_not(b)"), TRUTH, a, b)
        if type(op) not in ARITHMETIC:
            raise NotFormula("it works on bits or matrices")
        sign, function = ARITHMETIC[type(op)]
        if not isinstance(a, Term) and not isinstance(b, Term):
            return self.of_numbers(op, function, a, b)
        is_whole = REAL not in (kind_of(a), kind_of(b))
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            if isinstance(b, Term) or not b or not math.isfinite(b):
                raise NotFormula("a remainder by what may be 0")
            rest = self.apply("a % b", WHOLE if is_whole else REAL, a, b)
            if isinstance(op, ast.Mod):
                return rest
            return self.apply("rint((a - b) / c)", rest.kind, a, rest, b)
        if isinstance(op, ast.Pow):
            is_whole = is_whole and not isinstance(b, Term) and b >= 0
        return self.apply(f"a {sign} b", WHOLE if is_whole and not isinstance(op, ast.Div) else REAL, a, b)

    def of_numbers(self, op: ast.operator, function: Callable[[Any, Any], Any], a: Operand, b: Operand) -> Operand:
        """The result of an operator on two numbers that are known."""
        for number in (a, b):
            is_huge = isinstance(op, ast.Pow) and isinstance(number, int) and abs(number) > 1024
            if isinstance(number, tuple) or is_huge:
                raise NotFormula("it computes with what is no number")
        result = function(a, b)
        if isinstance(result, complex):
            raise NotFormula("it has complex numbers")
        return result

    def unary(self, op: ast.unaryop, a: Operand) -> Operand:
        if isinstance(op, ast.Not):
            return self.apply("logical_not(a)", TRUTH, a) if isinstance(a, Term) else not a
        if isinstance(op, ast.Invert) or isinstance(a, tuple):
            raise NotFormula("it works on bits")
        if not isinstance(a, Term):
            return -a if isinstance(op, ast.USub) else +a
        kind = WHOLE if a.kind == TRUTH else a.kind
        return self.apply("-a", kind, a) if isinstance(op, ast.USub) else Term(a.name, kind)

    def compare(self, node: ast.Compare, names: dict[str, Operand]) -> Operand:
        """The truth value of a comparison; a chain such as a < b < c holds where each of its comparisons does."""
        total: Operand = True
        left = self.value(node.left, names)
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each, names)
            if type(op) not in COMPARISONS or isinstance(left, tuple) or isinstance(right, tuple):
                raise NotFormula("it compares what are no numbers")
            sign, function = COMPARISONS[type(op)]
            if isinstance(left, Term) or isinstance(right, Term):
                holds: Operand = self.apply(f"a {sign} b", TRUTH, left, right)
            else:
                holds = function(left, right)
            total, left = self.both(total, holds), right
        return total

    def both(self, a: Operand, b: Operand) -> Operand:
        """Whether both of two truth values hold."""
        if not isinstance(a, Term):
            return b if a else False
        if not isinstance(b, Term):
            return a if b else False
        return self.apply("logical_and(a, b)", TRUTH, a, b)

    def joined(self, node: ast.BoolOp, names: dict[str, Operand]) -> Operand:
        """`a and b` is b where a is true, else a; `a or b` the other way round."""
        is_and = isinstance(node.op, ast.And)
        total = self.value(node.values[0], names)
        for each in node.values[1:]:
            if not isinstance(total, Term):
                if bool(total) != is_and:
                    return total
                total = self.value(each, names)
                continue
            right = self.value(each, names)
            if kind_of(right) == total.kind == TRUTH:
                total = self.apply(f"logical_{'and' if is_and else 'or'}(a, b)", TRUTH, total, right)
            else:
                total = self.select(total, right, total) if is_and else self.select(total, total, right)
        return total

    # --- calls

    def call(self, node: ast.Call, names: dict[str, Operand]) -> Operand:
        function = self.called(node.func, names)
        if isinstance(function, FunctionSource):
            return self.inlined(function, node, names)
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise NotFormula("a call with names")
        values = [self.value(a, names) for a in node.args]
        if not any(map(_has_step, values)):
            return self.of_known(function, values)
        if isinstance(function, str):
            return self.of_python(function, values)
        return self.of_library(function, values)

    def called(self, node: ast.expr, names: Mapping[str, Operand]) -> Any:
        """What a call calls: a FunctionSource, a function of math or numpy, or the name of one of Python's own."""
        if isinstance(node, ast.Attribute):
            return self.member(node)
        if isinstance(node, ast.Name) and node.id not in names:
            return self.source.names.get(node.id, node.id)
        raise NotFormula("it calls what is no name")

    def inlined(self, function: FunctionSource, node: ast.Call, names: dict[str, Operand]) -> Operand:
        if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) != len(function.inputs):
            raise NotFormula("a call with other arguments")
        arguments = {name: self.value(a, names) for name, a in zip(function.inputs, node.args, strict=True)}
        given = {k.arg: self.value(k.value, names) for k in node.keywords}
        for name, default in function.keywords.items():
            arguments[name] = given.pop(name) if name in given else self.known_number(default)
        if given:
            raise NotFormula("a call with other arguments")
        return self.function(function, arguments)

    def of_known(self, function: Any, values: Sequence[Operand]) -> Operand:
        """The result of a call whose arguments are all known."""
        if isinstance(function, str):
            if function not in OF_KNOWN:
                raise NotFormula(f"it calls {function}")
            function = OF_KNOWN[function]
        with np.errstate(all="ignore"):
            result = function(*values)
        if isinstance(result, (enumerate, zip, reversed)) or type(result).__name__ == "range_iterator":
            result = tuple(result)
        return result if isinstance(result, range) else self.known_number(result)

    def of_python(self, name: str, values: Sequence[Operand]) -> Operand:
        """A call of one of Python's own functions (abs, min, max, ...), as Python means it: no comparison with NaN
        holds."""
        if any(isinstance(v, tuple) for v in values):
            raise NotFormula(f"{name} of a tuple")
        if name in ("min", "max") and len(values) > 1:
            best = values[0]
            for other in values[1:]:
                test = self.apply(f"a {'<' if name == 'min' else '>'} b", TRUTH, other, best) if (
                    isinstance(other, Term) or isinstance(best, Term)) else None
                best = OF_KNOWN[name](best, other) if test is None else self.select(test, other, best)
            return best
        if len(values) == 2 and name == "pow":
            return self.binary(ast.Pow(), *values)
        if len(values) != 1:
            raise NotFormula(f"{name} of several")
        value, = values
        if name == "float":
            return Term(value.name, REAL)
        if name == "bool":
            return value if value.kind == TRUTH else self.apply("a != 0", TRUTH, value)
        if name == "abs":
            return self.apply("abs(a)", WHOLE if value.kind == TRUTH else value.kind, value)
        if name in ("int", "round"):
            pattern = "trunc(a)" if name == "int" else "rint(a)"
            return value if value.kind == WHOLE else self.apply(pattern, WHOLE, value)
        raise NotFormula(f"it calls {name}")

    def of_library(self, function: Any, values: Sequence[Operand]) -> Operand:
        """A call of a function of math or numpy."""
        name = getattr(function, "__name__", "")
        is_math = getattr(function, "__module__", None) == "math"
        if any(isinstance(v, tuple) for v in values):
            raise NotFormula(f"{name} of a tuple")
        if function is np.where and len(values) == 3:
            test, yes, no = values
            return self.select(test, yes, no) if isinstance(test, Term) else (yes if test else no)
        if function is np.clip and len(values) == 3:
            return self.apply("min(max(a, b), c)", REAL, *values)
        if function is math.log and len(values) == 2:
            return self.apply("log(a) / log(b)", REAL, *values)
        if name in ROUNDING and len(values) == 1:
            return self.apply(f"{name}(a)", WHOLE if is_math else REAL, *values)
        if name in ("remainder", "mod") and not is_math and len(values) == 2:
            return self.binary(ast.Mod(), *values)
        for table, kind in ((FUNCTIONS, REAL), (TESTS, TRUTH)):
            if name in table and len(values) == (2 if "b" in _names(table[name]) else 1):
                return self.apply(table[name], kind, *values)
        raise NotFormula(f"it calls {name}")


def wrong_count(count: int, outputs: int) -> str:
    """The message about a return of `count` values in a tuple (0: of one by itself) where `outputs` are expected."""
    what = f"{count} values" if count else "one value"
    wanted = f"a tuple of {outputs}, the derivative by each input" if outputs else "one number"
    return f"it returns {what}; expected {wanted}"


def kind_of(value: Operand) -> str:
    return value.kind if isinstance(value, Term) else KINDS.get(type(value), "")


def _has_step(value: Operand) -> bool:
    return any(map(_has_step, value)) if isinstance(value, tuple) else isinstance(value, Term)


def _returns(node: ast.If) -> bool:
    return any(isinstance(n, ast.Return) for n in ast.walk(node))
