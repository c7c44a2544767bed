"""Which part of the plan a node belongs to: prepare, forward or backward."""
from __future__ import annotations

from collections.abc import Set

from mxc.compiler.graph.graph import Entry, Graph, Node, topological
from mxc.compiler.graph.purity import random_nodes
from mxc.compiler.ops.operator import Kind

PREPARE, FORWARD, BACKWARD = ORDER = "prepare", "forward", "backward"


def phases(graph: Graph, static: frozenset[str]) -> dict[Node, str]:
    """The phase of every operator node.

    prepare: what depends on the `static` arguments alone, not on random numbers, and is not itself an output; forward:
    what the outputs need; backward: the rest. What depends on no variable at all (constants, random numbers) belongs
    to the earliest phase that uses it.
    """
    sinks = {e.node for e in graph.outputs}
    forward = set(topological([e for e, s in zip(graph.outputs, graph.sinks, strict=True) if s.kind == "output"]))
    free = free_nodes(graph, sinks)  # what is made of an output comes after it, so it is in no earlier phase
    never = free | sinks | random_nodes(graph)
    phase: dict[Node, str] = {}

    def is_static(entry: Entry) -> bool:
        node = entry.node
        if node.is_variable:
            return node.name in static
        return node in free or phase[node] == PREPARE

    for node in graph.nodes:
        if node.is_variable:
            continue
        if node not in never and all(map(is_static, node.inputs)):
            phase[node] = PREPARE
        else:
            phase[node] = FORWARD if node in forward else BACKWARD
    users: dict[Node, str] = {}  # free node -> the earliest phase of its users seen so far
    for node in reversed(graph.nodes):
        if node in users:
            phase[node] = users[node]
        for entry in node.inputs:
            if entry.node in free:
                users[entry.node] = min(users.get(entry.node, BACKWARD), phase[node], key=ORDER.index)
    return phase


def free_nodes(graph: Graph, outputs: Set[Node] = frozenset()) -> set[Node]:
    """Elementwise and rearranging nodes that depend on no variable, and on none of `outputs` nor are one."""
    free: set[Node] = set()
    for node in graph.nodes:
        if (node.op is not None and node.op.kind <= Kind.INJECTIVE and node not in outputs
                and all(e.node in free for e in node.inputs)):
            free.add(node)
    return free
