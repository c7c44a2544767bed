"""Composite operators become primitives, which fuse: what the operator's `decompose` rule in ops.yaml makes of it."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape, Sink, rewrite
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import RANDOM
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.passes.registry import graph_pass


@graph_pass(needs=("shape", "dtype"), gives=("primitive",))
def decompose(graph: Graph, options: Options) -> Graph:
    """Makes composite operators primitive ones, which fuse, by the rules of `operators/*/graph.py`.

    A rule that gives None keeps the node.
    """

    def primitive(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        assert node.op is not None
        rule = node.op.rule("decompose")
        return None if rule is None else rule(builder, node, [builder.map[e] for e in node.inputs], options)

    return rewrite(graph, primitive)


def draws(op: Operator, params: Params, shapes: Sequence[Shape], dtypes: Sequence[str], is_train: bool) -> bool:
    """Whether an operator, on inputs of these shapes and dtypes, may draw random numbers: its decomposition draws some,
    or the rule gives no decomposition for such inputs, so that nobody knows."""
    rule = op.rule("decompose")
    if rule is None:
        return op.name in RANDOM
    made = GraphBuilder()
    inputs = [made.variable(f"i{k}", *facts) for k, facts in enumerate(zip(shapes, dtypes, strict=True))]
    outputs = made.add(Node(op, op.name, None, params, inputs))
    builder = GraphBuilder(made.finish([*outputs, *inputs], [Sink("output", "")] * (len(outputs) + len(inputs))))
    for entry in inputs:
        builder.copy(entry.node)
    try:
        # Without a target: whether a decomposition draws numbers does not depend on one.
        rule(builder, outputs[0].node, inputs, Options(None, is_train))  # type: ignore[arg-type]
    except MXNetError:
        return True
    return builder.streams > 0
