"""Whole numbers of 64 bits, which take the place of Python's unbounded ones in rewritten functions (typed.py)."""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

TYPE = "mxc_number"  # the name that the conversion to the dtype has in rewritten text
INTEGER = "mxc_integer"  # the name of the conversion to int64, which wraps

# Compiled code cannot raise errors: an integer divided by 0 gives 0, and one shifted too far loses all its bits.
WORDS: dict[str, ast.FunctionDef] = {n.name: n for n in ast.parse(f"""
def mxc_whole(x):
    if x != x:
        return {INTEGER}(0)
    if x >= {TYPE}(9223372036854775808.0):
        return {INTEGER}(9223372036854775807)
    if x <= {TYPE}(-9223372036854775808.0):
        return {INTEGER}(-9223372036854775807 - 1)
    return {INTEGER}(int(x))

def mxc_quotient(a, b):
    if b == 0:
        return {INTEGER}(0)
    return {INTEGER}(-a) if b == -1 else {INTEGER}(a // b)

def mxc_rest(a, b):
    return {INTEGER}(0) if b == 0 or b == -1 else {INTEGER}(a % b)

def mxc_left(a, b):
    return {INTEGER}(a << b) if 0 <= b and b < 64 else {INTEGER}(0)

def mxc_right(a, b):
    return {INTEGER}(a >> b) if 0 <= b and b < 64 else {INTEGER}(a >> 63)
""").body if isinstance(n, ast.FunctionDef)}
_FOLDED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.Pow: lambda a, b: a**b, ast.LShift: lambda a, b: a << b}
_MOST_BITS = 4096  # bits of a power or shifted constant that is computed while a function is rewritten


def fits(value: Any) -> bool:
    """Whether a constant can stay: a whole number must fit into 64 bits, all others fit."""
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


class Simpler(ast.NodeTransformer):
    """Replaces calls that have an operator (`divmod`, `pow`) by it, and arithmetic of constant integers by its result.
    captured: gives what a node stands for: a function of math or numpy, or the name of one of Python's own."""

    def __init__(self, captured: Callable[[ast.AST], Any]):
        self.captured = captured

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = self.captured(node.func)
        if len(node.args) != 2 or node.keywords:
            return node
        left, right = node.args
        if function == "divmod":
            made: ast.expr = ast.Tuple([ast.BinOp(left, op, right) for op in (ast.FloorDiv(), ast.Mod())], ast.Load())
        elif function == "pow":
            made = ast.BinOp(left, ast.Pow(), right)
        elif function is np.floor_divide:
            made = ast.BinOp(left, ast.FloorDiv(), right)
        else:
            return node
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        number = _integer(node.operand)
        if number is None or not isinstance(node.op, ast.USub):
            return node
        return ast.copy_location(ast.Constant(-number), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        a, b, fold = _integer(node.left), _integer(node.right), _FOLDED.get(type(node.op))
        if a is None or b is None or fold is None:
            return node
        if isinstance(node.op, (ast.Pow, ast.LShift)) and (b < 0 or b * max(a.bit_length(), 1) > _MOST_BITS):
            return node
        return ast.copy_location(ast.Constant(fold(a, b)), node)


def _integer(node: ast.expr) -> int | None:
    """The value of a constant that is a whole number; None for all other nodes."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
