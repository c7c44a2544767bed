"""How many floating-point operations a node takes: additions and multiplications count one each, so a multiply-add two.

A rule is `def NAME(params, ins, outs) -> int` over complete shapes (operators/*/shape.py). An operator without a rule
is counted by its kind:

- elementwise and broadcast: the operations of its expression, for each element of the output (a copy or a cast: none);
- reduction: one to combine and those of its body for each element of the input, those of `final` for each of the
  output;
- injective: none, it only moves elements;
- others (normalisations, losses, sorting): one for each element of the first output, the right order of magnitude.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence
from math import prod

from mxc.compiler.ops.expr import parse
from mxc.compiler.ops.functions import written_out
from mxc.compiler.ops.operator import Kind, Operator, Params
from mxc.compiler.ops.shapes import Shape

_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare)


def flops(op: Operator, params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """Operations of one node of `op`. ins, outs: complete shapes, auxiliary states and hidden outputs too."""
    rule = op.rule("flops")
    if rule is not None:
        return rule(params, ins, outs)
    if op.kind == Kind.INJECTIVE:
        return 0
    if op.sums:
        return prod(outs[0]) * (len(ins) - 1)
    expression = op.expression(params)
    if expression is not None:
        return prod(outs[0]) * sum(map(operations, written_out(expression)))
    if op.reduce is not None:
        return prod(ins[0]) * (1 + operations(op.reduce.body)) + prod(outs[0]) * operations(op.reduce.final)
    return prod(outs[0])


def operations(expression: str) -> int:
    """How many operators and functions an expression of the table applies; casts are none."""
    count = 0
    for node in ast.walk(parse(expression)):
        is_cast = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast"
        is_number = isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
        count += isinstance(node, (*_OPERATIONS, ast.Call)) and not is_cast and not is_number
    return count
