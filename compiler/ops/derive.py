"""Derivatives of expressions of the operator table, as expression text again."""
from __future__ import annotations

import ast
import functools

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import functions
from mxc.compiler.ops.expr import names_in, parse
from mxc.compiler.ops.functions import ScalarFunction
from mxc.compiler.scalar_functions.records import BUILTINS
from mxc.compiler.system import syntax

ZERO, ONE = ast.Constant(0), ast.Constant(1)


@functools.cache
def gradient(text: str, name: str) -> str:
    """og times the derivative of an expression by `name`: what flows back to that input. "0" when nothing does.

    Raises MXNetError for a function whose derivative is not known.
    """
    return ast.unparse(_multiply(ast.Name("og"), derivative(parse(text), name)))


def derivative(node: ast.expr, name: str) -> ast.expr:
    """The derivative of a syntax tree by `name`, lightly simplified."""
    if name not in names_in(node) or isinstance(node, ast.Compare):
        return ZERO
    if isinstance(node, ast.Name):
        return ONE
    if isinstance(node, ast.UnaryOp):
        return _negate(derivative(node.operand, name))
    if isinstance(node, ast.BinOp):
        return _binary(node, derivative(node.left, name), derivative(node.right, name))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    function = node.func.id
    if function == "cast":
        return derivative(node.args[0], name)
    if function == "where":
        return _where(node.args[0], derivative(node.args[1], name), derivative(node.args[2], name))
    added = functions.find(function)
    if added is not None:
        return _of_function(added, node, name)
    by_each = BUILTINS[function].derivatives
    if not by_each:
        raise MXNetError(f"the derivative of {function} is not known (in {ast.unparse(node)!r})")
    total: ast.expr = ZERO
    arguments = dict(zip("ab", node.args, strict=False))
    for argument, outer in zip(node.args, by_each, strict=True):
        inner = derivative(argument, name)
        total = _add(total, _multiply(inner, _substitute(parse(outer), arguments)))
    return total


def _of_function(function: ScalarFunction, node: ast.Call, name: str) -> ast.expr:
    """The derivative of a call of a function of the running program."""
    total: ast.expr = ZERO
    arguments = dict(zip(function.arguments, node.args, strict=True))
    for i, argument in enumerate(node.args):
        inner = derivative(argument, name)
        if not _is(inner, 0):
            total = _add(total, _multiply(inner, _substitute(parse(by_argument(function, i)), arguments)))
    return total


def by_argument(function: ScalarFunction, i: int) -> str:
    """The derivative of a function of the running program by its i-th argument, an expression over its arguments.

    Raises MXNetError for a native function whose derivatives were not given.
    """
    if function.derivatives:
        return function.derivatives[i]
    if function.is_native:
        raise MXNetError(function.missing)
    if i not in function.made:
        function.made[i] = _made_of_lines(function, i)
    return function.made[i]


def _made_of_lines(function: ScalarFunction, i: int) -> str:
    """The derivative as a call of a new formula, which has the function's lines, each followed by its derivative."""
    lines: list[tuple[str, str]] = []
    by_name = {f"a{i}": "1"}  # name -> its derivative; names that do not depend on the argument are left out
    taken = {name for name, _ in function.lines}
    for name, text in (*function.lines, ("", function.result)):
        slope = _slope(parse(text), by_name)
        if name:
            lines.append((name, text))
        if isinstance(slope, (ast.Constant, ast.Name)) or not name:  # So short a derivative needs no line of its own.
            by_name[name] = ast.unparse(slope)
        else:
            by_name[name] = made_name = _unused(f"d{name}", taken)
            lines.append((made_name, ast.unparse(slope)))
        if by_name[name] == "0":
            del by_name[name]
    result = by_name.get("", "0")
    if result in ("0", "1"):
        return result
    from mxc.compiler.functions.formula import used_lines  # Most programs have no functions and never come here.

    made = ScalarFunction(f"{function.name}_d{i}", function.count, tuple(used_lines(lines, [result])), result)
    return f"{functions.add(made).name}({', '.join(made.arguments)})"


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"d{name}"
    taken.add(name)
    return name


def _slope(tree: ast.expr, by_name: dict[str, str]) -> ast.expr:
    """The derivative of a line, where those of the names in it are known by name."""
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "where":
        test, yes, no = tree.args
        return _where(test, _slope(yes, by_name), _slope(no, by_name))
    total: ast.expr = ZERO
    for name in sorted(names_in(tree) & by_name.keys()):
        total = _add(total, _multiply(parse(by_name[name]), derivative(tree, name)))
    return total


def _binary(node: ast.BinOp, left: ast.expr, right: ast.expr) -> ast.expr:
    a, b = node.left, node.right
    if isinstance(node.op, ast.Add):
        return _add(left, right)
    if isinstance(node.op, ast.Sub):
        return _add(left, _negate(right))
    if isinstance(node.op, ast.Mult):
        squares = _difference_of_squares(node, left, right)
        return squares if squares is not None else _add(_multiply(left, b), _multiply(a, right))
    if isinstance(node.op, ast.Div):
        second = _negate(_multiply(_divide(a, b), _divide(right, b)))  # b * b would overflow for a large b.
        return _add(_divide(left, b), second)
    if isinstance(node.op, ast.Mod):  # a - b * floor(a / b)
        floor = ast.Call(ast.Name("floor"), [ast.BinOp(a, ast.Div(), b)], [])
        return _add(left, _multiply(right, _negate(floor)))
    assert isinstance(node.op, ast.Pow)
    if isinstance(b, ast.Constant) and isinstance(b.value, (int, float)):
        power: ast.expr = a if b.value == 2 else ast.BinOp(a, ast.Pow(), ast.Constant(b.value - 1))
        by_base: ast.expr = _multiply(b, power)
    else:
        by_base = ast.BinOp(b, ast.Mult(), ast.BinOp(a, ast.Pow(), ast.BinOp(b, ast.Sub(), ONE)))
    by_exponent = ast.BinOp(node, ast.Mult(), ast.Call(ast.Name("log"), [a], []))
    return _add(_multiply(left, by_base), _multiply(right, by_exponent))


def _difference_of_squares(node: ast.BinOp, left: ast.expr, right: ast.expr) -> ast.expr | None:
    """The derivative of (c - x) * (c + x), or of (x - c) * (x + c), as that of c * c - x * x, which keeps its digits
    near 0. None for other products."""
    a, b = node.left, node.right
    if not (isinstance(a, ast.BinOp) and isinstance(a.op, ast.Sub) and isinstance(b, ast.BinOp) and
            isinstance(b.op, ast.Add) and ast.dump(a.left) == ast.dump(b.left) and
            ast.dump(a.right) == ast.dump(b.right)):
        return None
    if isinstance(a.left, ast.Constant):
        return _negate(_multiply(_multiply(ast.Constant(2), a.right), right))
    if isinstance(a.right, ast.Constant):
        return _multiply(_multiply(ast.Constant(2), a.left), left)
    return None


class _Substitution(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


def _substitute(node: ast.expr, names: dict[str, ast.expr]) -> ast.expr:
    copy = syntax.parse(ast.unparse(node), "eval").body  # the parsed tree is shared
    return _Substitution(names).visit(copy)


def rename(text: str, names: dict[str, str]) -> str:
    """An expression with other names for inputs and parameters."""
    return ast.unparse(_substitute(parse(text), {old: ast.Name(new) for old, new in names.items()}))


def _is(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number


def _negate(a: ast.expr) -> ast.expr:
    if _is(a, 0):
        return ZERO
    if isinstance(a, ast.UnaryOp):
        return a.operand
    return ast.UnaryOp(ast.USub(), a)


def _add(a: ast.expr, b: ast.expr) -> ast.expr:
    if _is(a, 0):
        return b
    if _is(b, 0):
        return a
    if isinstance(b, ast.UnaryOp):
        return ast.BinOp(a, ast.Sub(), b.operand)
    return ast.BinOp(a, ast.Add(), b)


def _where(test: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
    if ast.dump(a) == ast.dump(b):
        return a
    return ast.Call(ast.Name("where"), [test, a, b], [])


def _divide(a: ast.expr, b: ast.expr) -> ast.expr:
    if _is(a, 0) or _is(b, 1):
        return a
    return ast.BinOp(a, ast.Div(), b)


def _multiply(a: ast.expr, b: ast.expr) -> ast.expr:
    """a * b; a selection stays outside, so that what is not selected cannot turn into NaN by inf * 0."""
    if _is(a, 0) or _is(b, 0):
        return ZERO
    if _is(a, 1):
        return b
    if _is(b, 1):
        return a
    if isinstance(a, ast.UnaryOp):
        return _negate(_multiply(a.operand, b))
    if isinstance(b, ast.UnaryOp):
        return _negate(_multiply(a, b.operand))
    if isinstance(b, ast.Compare):
        return _where(b, a, ZERO)
    if isinstance(a, ast.Compare):
        return _where(a, b, ZERO)
    for selection, other in ((a, b), (b, a)):
        if isinstance(selection, ast.Call) and isinstance(selection.func, ast.Name) and selection.func.id == "where":
            test, yes, no = selection.args
            return _where(test, _multiply(other, yes), _multiply(other, no))
    if isinstance(b, ast.BinOp) and isinstance(b.op, ast.Div) and _is(b.left, 1):
        return _divide(a, b.right)
    return ast.BinOp(a, ast.Mult(), b)
