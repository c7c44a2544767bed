"""The statements of a routine (operators/*/kernel.py), as all targets compile them."""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping

from mxc.compiler.system import syntax


class _Folded(ast.NodeTransformer):
    """What boolean constants decide is decided here: branches that never run need not have types that fit."""

    def __init__(self, constants: Mapping[str, object]):
        self.known = {name: value for name, value in constants.items() if isinstance(value, bool)}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.known[node.id]) if node.id in self.known else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        fixed = isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant)
        return ast.Constant(not node.operand.value) if fixed else node  # type: ignore[attr-defined]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        decisive = isinstance(node.op, ast.Or)
        left = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value is not decisive)]
        if not left or any(isinstance(v, ast.Constant) for v in left):
            return ast.Constant(decisive if left else not decisive)
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return (node.body if node.test.value else node.orelse) if isinstance(node.test, ast.Constant) else node

    def visit_If(self, node: ast.If) -> ast.If | list[ast.stmt]:
        self.generic_visit(node)
        return (node.body if node.test.value else node.orelse) if isinstance(node.test, ast.Constant) else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node


@functools.cache
def _definition(function: Callable[..., None]) -> str:
    return inspect.getsource(function)


def body(function: Callable[..., None], constants: Mapping[str, object]) -> str:
    """The statements of a routine's function behind its docstring, without those that the constants rule out."""
    definition = syntax.parse(_definition(function)).body[0]
    assert isinstance(definition, ast.FunctionDef)
    if ast.get_docstring(definition) is not None:
        del definition.body[0]
    definition.args = ast.arguments([], [], None, [], [], None, [])
    definition.decorator_list = []
    folded = _Folded(constants).visit(definition)
    return "\n".join(ast.unparse(ast.fix_missing_locations(folded)).splitlines()[1:])
