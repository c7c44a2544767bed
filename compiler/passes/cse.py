"""Common subexpressions: of nodes that compute the same, one is kept."""
from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, rewrite
from mxc.compiler.graph.options import Options
from mxc.compiler.ops.expr import parse
from mxc.compiler.ops.operator import Kind, Operator
from mxc.compiler.passes.registry import graph_pass

_COMMUTATIVE = (ast.Add, ast.Mult, ast.Eq, ast.NotEq)
_COMMUTATIVE_CALLS = ("min", "max", "logical_and", "logical_or")


@functools.cache
def commutes(op: Operator) -> bool:
    """True when the operator's expression is one symmetric operation of its two inputs."""
    if not isinstance(op.expr, str) or op.variadic or len(op.inputs) != 2:
        return False
    tree = parse(op.expr)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, _COMMUTATIVE):
        operands: list[ast.expr] = [tree.left, tree.right]
    elif isinstance(tree, ast.Compare) and isinstance(tree.ops[0], _COMMUTATIVE):
        operands = [tree.left, *tree.comparators]
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _COMMUTATIVE_CALLS:
        operands = tree.args
    else:
        return False
    return {o.id for o in operands if isinstance(o, ast.Name)} == {i.name for i in op.inputs}


@graph_pass(needs=("shape", "dtype"))
def cse(graph: Graph, options: Options) -> Graph:
    """Keeps one of equal nodes: of one operator, with equal parameters and inputs.

    The order of the inputs does not matter where the operator commutes. Opaque operators without a routine stay apart:
    they may do anything. Random numbers are equal when their stream is.
    """
    seen: dict[tuple, list[Entry]] = {}

    def merged(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        assert node.op is not None
        if (node.op.kind == Kind.OPAQUE and "routine" not in node.op.rules) or node.subgraphs:
            return None
        inputs = [builder.map[e] for e in node.inputs]
        names = [(id(e.node), e.index) for e in inputs]
        key = (node.op, node.params, *(sorted(names) if commutes(node.op) else names))
        if key not in seen:
            seen[key] = builder.copy(node)
        return seen[key]

    return rewrite(graph, merged)
