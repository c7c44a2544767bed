"""How many floating-point operations a node takes: additions and multiplications count one each, so a multiply-add two.

A rule is `def NAME(params, ins, outs) -> int` over complete shapes. An operator without a rule is counted by its kind:

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
from mxc.compiler.ops.table import Kind, Operator, Params

Shape = tuple[int, ...]
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


def convolution(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 channels/groups prod(kernel) for each element of the output, and 1 for a bias."""
    _, weight, *bias = ins
    return prod(outs[0]) * (2 * prod(weight[1:]) + len(bias))


def deconvolution(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 filters/groups prod(kernel) for each element of the data, and 1 for each of the output for a bias."""
    data, weight, *bias = ins
    return 2 * prod(data) * prod(weight[1:]) + prod(outs[0]) * len(bias)


def fully_connected(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 K for each element of the output, with K the columns of the weight, and 1 for a bias."""
    _, weight, *bias = ins
    return prod(outs[0]) * (2 * weight[1] + len(bias))


def dot(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 K for each element of the output, with K the axis that is summed: the first or last of the left side."""
    return 2 * prod(outs[0]) * ins[0][0 if params.transpose_a else -1]


def batch_dot(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 K for each element of the output, with K the axis that is summed: one of the left side's last two."""
    return 2 * prod(outs[0]) * ins[0][-2 if params.transpose_a else -1]


def pooling(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """One for each element of each window; all of the input for global pooling."""
    if params.global_pool:
        return prod(ins[0])
    kernel = params["kernel"]
    assert isinstance(kernel, tuple)
    return prod(outs[0]) * prod(kernel)


def rnn(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 for each element of the matrices and 1 for each of the biases, for each step of each sequence.

    The vector of parameters holds the matrices of all layers and directions and, for each, two biases of gates x size.
    """
    (steps, batch, _), (parameters,) = ins[0], ins[1]
    layers, size = params["num_layers"], params["state_size"]
    assert isinstance(layers, int) and isinstance(size, int)
    gates = {"gru": 3, "lstm": 4}.get(str(params.mode), 1)
    biases = 2 * gates * size * layers * (2 if params.bidirectional else 1)
    return steps * batch * (2 * (parameters - biases) + biases)
