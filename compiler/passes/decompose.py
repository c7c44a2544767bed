"""Composite operators become primitives, which fuse: what the operator's `decompose` rule in ops.yaml makes of it."""
from __future__ import annotations

from collections.abc import Sequence, Set

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape, Sink, rewrite
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import RANDOM
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.passes.registry import graph_pass

# How deep operators may be made of each other: none is more than two deep, and what makes itself ends soon.
ROUNDS = 10


@graph_pass(needs=("shape", "dtype"), gives=("primitive",))
def decompose(graph: Graph, options: Options) -> Graph:
    """Makes composite operators primitive ones, which fuse, by the rules of `operators/*/graph.py`.

    A rule that gives None keeps the node. What a rule makes is decomposed too. Raises MXNetError for operators that
    are made of each other without an end.
    """
    return _decomposed(graph, options)


def _decomposed(graph: Graph, options: Options) -> Graph:
    """What the pass `decompose` gives, without its checks and prints."""
    streams = 0  # All rounds so far drew from this many streams; a builder by itself would begin with the first again.

    def primitive(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        nonlocal streams
        assert node.op is not None
        rule = node.op.rule("decompose")
        if rule is None or node in settled:
            return None
        builder.streams = streams
        made = rule(builder, node, [builder.map[e] for e in node.inputs], options)
        streams = builder.streams
        return made

    settled: Set[Node] = frozenset()
    for _ in range(ROUNDS):
        before, graph = graph, rewrite(graph, primitive)
        settled = before.ids.keys()
        left = [node for node in graph.nodes if node not in settled and node.op and node.op.rule("decompose")]
        if not left:
            return graph
    raise MXNetError(f"{left[0]!r} is still not primitive after {ROUNDS} rounds: the decompose rules of "
                     f"{', '.join(sorted({node.op.name for node in left if node.op}))} make each other, or themselves, "
                     "without an end; a rule gives None for a node that it keeps")


def draws(op: Operator, params: Params, shapes: Sequence[Shape], dtypes: Sequence[str], is_train: bool) -> bool:
    """Whether an operator, on inputs of these shapes and dtypes, may draw random numbers: its decomposition draws some,
    or the rule gives no decomposition for such inputs, so that nobody knows."""
    if "decompose" not in op.rules:
        return op.name in RANDOM
    made = GraphBuilder()
    inputs = [made.variable(f"i{k}", *facts) for k, facts in enumerate(zip(shapes, dtypes, strict=True))]
    outputs = made.add(Node(op, op.name, None, params, inputs))
    graph = made.finish(outputs, [Sink("output", "")] * len(outputs))
    try:
        # Without a target: whether a decomposition draws numbers does not depend on one.
        parts = _decomposed(graph, Options(None, is_train))  # type: ignore[arg-type]
    except MXNetError:
        return True
    return any(node.op is not None and node.op.name in RANDOM for node in parts.nodes)
