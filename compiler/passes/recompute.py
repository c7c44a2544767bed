"""Recompute cheap forward values in the backward part, rather than keep them in memory between the two.

A value is recomputed when it is elementwise or a rearrangement and the forward part would not store it anyway (nothing
but fused kernels reads it); what it is computed from is kept or recomputed likewise. What depends on no variable
(constants, random numbers with a fixed offset) gets a copy for every user, so that each user's kernel makes it in
registers.
"""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node
from mxc.compiler.ops.table import Kind
from mxc.compiler.passes.fuse_forms import is_view, is_window
from mxc.compiler.passes.phases import BACKWARD, FORWARD, free_nodes, phases
from mxc.compiler.passes.registry import Options, graph_pass


def renamed(node: Node, name: str, inputs: list[Entry]) -> Node:
    return Node(node.op, name, node.attrs, node.params, inputs, node.subgraphs)


def _is_cheap(node: Node) -> bool:
    return node.op is not None and node.op.kind <= Kind.INJECTIVE


def _stored_anyway(graph: Graph, phase: dict[Node, str]) -> set[Entry]:
    """Forward entries that some kernel must find in memory: graph outputs and what anchors and opaque nodes read."""
    stored = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.op is None or phase[node] != FORWARD:
            continue
        if node.op.kind >= Kind.ANCHOR or is_window(node) or (is_view(node) and Entry(node) in stored):
            stored.update(node.inputs)
    return stored


@graph_pass(needs=("shape", "dtype"), gives=())
def recompute(graph: Graph, options: Options) -> Graph:
    """Give backward nodes their own copies of cheap forward values, and every node its own constants."""
    phase = phases(graph, options.static)
    stored = _stored_anyway(graph, phase)
    free = free_nodes(graph)
    builder = GraphBuilder(graph)
    again: dict[Entry, Entry] = {}

    copies: dict[Node, int] = {}

    def clone(node: Node, inputs: list[Entry]) -> list[Entry]:
        copies[node] = copies.get(node, 0) + 1
        new = renamed(node, f"{node.name}_again{copies[node]}", inputs)
        entries = [Entry(new, i) for i in range(node.num_outputs)]
        for entry in entries:
            old = Entry(node, entry.index)
            builder.record(entry, graph.shape(old), graph.dtype(old))
        return entries

    def used_by(user_phase: str, entry: Entry) -> Entry:
        """The new entry that a user in `user_phase` reads for the old `entry`."""
        node = entry.node
        if node in free and entry not in stored:
            return clone(node, [used_by(user_phase, e) for e in node.inputs])[entry.index]
        late = user_phase == BACKWARD and not node.is_variable and phase[node] == FORWARD
        if not late or not _is_cheap(node) or entry in stored:
            return builder.map[entry]
        if entry not in again:
            for new in clone(node, [used_by(BACKWARD, e) for e in node.inputs]):
                again[Entry(node, new.index)] = new
        return again[entry]

    for node in graph.nodes:
        if node.is_variable:
            builder.copy(node)
            continue
        inputs = [used_by(phase[node], e) for e in node.inputs]
        new = node if inputs == node.inputs else renamed(node, node.name, inputs)
        for i in range(node.num_outputs):
            builder.map[Entry(node, i)] = Entry(new, i)
            builder.record(Entry(new, i), graph.shape(Entry(node, i)), graph.dtype(Entry(node, i)))
    return builder.finish([builder.map[e] for e in graph.outputs], graph.sinks)
