"""Routines (operators/*/kernel.py) as typed source (see translate.py): arguments, then the function's lines."""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Mapping

import numpy as np

from mxc.compiler.kernel.ir import RoutineKernel, computing_dtype
from mxc.compiler.kernel.routines import spec
from mxc.compiler.system import syntax

ALIGNMENT = 64  # elements: the size of each scratch array is rounded up to a multiple of so many


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


def routine_source(kernel: RoutineKernel) -> str:
    """Typed source: constants, then `def kernel(args, first, last, scratch)`."""
    declared = spec.find(kernel.routine)
    lines = [f"{name} = {computing_dtype(str(value)) if value in spec.DTYPES else repr(value)}"
             for name, value in kernel.constants]
    lines += ["", "def kernel(args, first, last, scratch):"]
    arrays = (*declared.inputs, *declared.outputs)
    lines += [f"    {name} = buffer{i}(args, {i})" for i, name in enumerate(arrays)]
    lines += [f"    {name} = integer(args, {len(arrays) + i})" for i, name in enumerate(declared.integers)]
    for i, ((name, _, _), offset) in enumerate(zip(declared.scratch, _offsets(kernel), strict=False)):
        lines.append(f"    {name} = scratch{i}(scratch, {offset})")
    return "\n".join([*lines, body(declared.function, dict(kernel.constants)), ""])


def _offsets(kernel: RoutineKernel) -> list[str]:
    """Expressions of the byte offset of each scratch array, and of where they end."""
    found, counts = ["0"], [count for _, _, count in spec.find(kernel.routine).scratch]
    for (_, dtype, _), count in zip(spec.scratch(kernel), counts, strict=True):
        size = ALIGNMENT * np.dtype(dtype).itemsize
        found.append(f"{found[-1]} + ({count} + {ALIGNMENT - 1}) // {ALIGNMENT} * {size}")
    return found


def scratch_bytes(kernel: RoutineKernel) -> int:
    """Private memory of a thread, by the expressions that the source has."""
    return spec.evaluate(_offsets(kernel)[-1], spec.numbers(kernel))
