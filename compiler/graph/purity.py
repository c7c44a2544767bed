"""Which nodes are pure (equal inputs give equal outputs), and which depend on parameters and constants alone; and which
variables are parameters."""
from __future__ import annotations

from collections.abc import Set

from mxc.compiler.graph.graph import Graph, Node
from mxc.compiler.ops.operator import Kind

RANDOM = ("_mxc_rand", "_mxc_key")  # operators that give other numbers in every run; all random ones become these


def is_pure(node: Node) -> bool:
    """True when equal inputs give equal outputs: no random numbers, no code of the user's."""
    return node.op is None or (node.op.kind < Kind.OPAQUE and not node.is_control_flow and node.op.name not in RANDOM)


def random_nodes(graph: Graph) -> set[Node]:
    """The nodes that depend on random numbers."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op is not None and (node.op.name in RANDOM or any(e.node in found for e in node.inputs)):
            found.add(node)
    return found


def static_nodes(graph: Graph, names: Set[str]) -> set[Node]:
    """The nodes that depend on nothing but the variables in `names` and constants."""
    static: set[Node] = set()
    for node in graph.nodes:
        if node.name in names if node.is_variable else is_pure(node) and all(e.node in static for e in node.inputs):
            static.add(node)
    return static


def auxiliary_names(graph: Graph) -> list[str]:
    """Names of the variables that operators take as auxiliary states, in topological order."""
    found: dict[str, None] = {}
    for node in graph.nodes:
        found.update(dict.fromkeys(e.node.name for e in node.states if e.node.is_variable))
    return list(found)


def static_names(graph: Graph) -> frozenset[str]:
    """Arguments that are read as learned parameters only (`parameters:` in ops.yaml), and auxiliary states."""
    learned: set[str] = set()
    other: set[str] = set()
    for node in graph.nodes:
        if node.op is None:
            continue
        kept = {*node.op.parameters, *node.op.aux}
        for name, entry in zip(node.op.all_names(node.params), node.inputs, strict=True):
            if entry.node.is_variable:
                (learned if name in kept else other).add(entry.node.name)
    return frozenset(learned - other - {e.node.name for e in graph.outputs})
