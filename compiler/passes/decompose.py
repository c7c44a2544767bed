"""Composite operators become primitives, which fuse: what the operator's `decompose` rule in ops.yaml makes of it."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, rewrite
from mxc.compiler.passes.registry import Options, graph_pass


@graph_pass(needs=("shape", "dtype"), gives=("primitive",))
def decompose(graph: Graph, options: Options) -> Graph:
    """Every node whose operator has a decomposition, replaced by it; a rule that gives None keeps the node."""

    def primitive(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        assert node.op is not None
        rule = node.op.rule("decompose")
        return None if rule is None else rule(builder, node, [builder.map[e] for e in node.inputs], options)

    return rewrite(graph, primitive)
