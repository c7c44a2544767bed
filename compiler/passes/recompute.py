"""Recompute cheap forward values in the backward part, rather than keep them in memory between the two.

Cheap are elementwise operators and rearrangements. What the backward part reads of the forward part is

  kept        when it is not cheap, or when the forward part stores it anyway;
  recomputed  when it is cheap and never stored: what it is computed from is kept or recomputed likewise;
  recomputed  also when it is stored, but simple to compute from values that are kept for other readers: an activation
              behind a BatchNorm, whose input the BatchNorm's own gradient needs. It then dies in the forward part.

What depends on no variable (constants, random numbers with a fixed offset) gets a copy for every user, so that each
user's kernel makes it in registers.
"""
from __future__ import annotations

import math

from mxc.compiler.graph.graph import Entry, Facts, Graph, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.phases import BACKWARD, FORWARD, free_nodes, phases
from mxc.compiler.lowering.fuse import fuse
from mxc.compiler.lowering.fuse_forms import is_costly, is_join, is_view, is_window
from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.ops.operator import Kind
from mxc.compiler.passes.registry import graph_pass


def renamed(node: Node, name: str, inputs: list[Entry]) -> Node:
    return Node(node.op, name, node.attrs, node.params, inputs, node.subgraphs)


def _is_cheap(node: Node) -> bool:
    return node.op is not None and node.op.kind <= Kind.INJECTIVE and not is_join(node)


def _stored_by_forward(graph: Graph, options: Options) -> set[Entry]:
    """What the kernels of the outputs alone hand to each other or to the user through memory."""
    pairs = [(e, s) for e, s in zip(graph.outputs, graph.sinks, strict=True) if s.kind == "output"]
    part = Graph([e for e, _ in pairs], [s for _, s in pairs])
    part.facts = Facts([graph.facts.shape[graph.ids[n]] for n in part.nodes],
                       [graph.facts.dtype[graph.ids[n]] for n in part.nodes])
    return {e for group in fuse(part, options) for e in group.stored}


def _read_from_memory(graph: Graph) -> set[Entry]:
    """What anchors, window reductions, wide joins and opaque nodes read: no kernel computes it on the way."""
    found: set[Entry] = set()
    for node in reversed(graph.nodes):
        if node.op is None:
            continue
        if node.op.kind >= Kind.ANCHOR or is_window(node) or is_join(node) or (is_view(node) and Entry(node) in found):
            found.update(node.inputs)
    return found


class _Choice:
    """Which forward values the backward part finds in memory: `kept`."""

    def __init__(self, graph: Graph, options: Options, phase: dict[Node, str], free: set[Node]):
        self.graph, self.phase, self.free = graph, phase, free
        self.kept: set[Entry] = set()
        read = [e for n in graph.nodes if not n.is_variable and phase[n] == BACKWARD for e in n.inputs]
        if not any(map(self._is_forward, read)):
            return
        self.stored = _stored_by_forward(graph, options)
        self.seen: set[Entry] = set()
        for entry in read:
            self._need(entry)
        outputs = set(graph.outputs)
        self.dropped: set[Entry] = set()
        figures = options.prefers.recomputing
        if figures is None:
            return
        for entry in sorted(self.kept - outputs, key=lambda e: (graph.ids[e.node], e.index)):
            if (_is_cheap(entry.node) and self._nbytes(entry) >= figures.worth_bytes
                    and self._is_simple(entry, figures.most_nodes)):
                self.kept.discard(entry)
                self.dropped.add(entry)

    def _is_forward(self, entry: Entry) -> bool:
        node = entry.node
        return not node.is_variable and node not in self.free and self.phase[node] == FORWARD

    def _nbytes(self, entry: Entry) -> int:
        return math.prod(self.graph.shape(entry)) * numpy_dtype(self.graph.dtype(entry)).itemsize

    def _need(self, entry: Entry) -> None:
        """Keep `entry`, or what it is computed from."""
        stack = [entry]
        while stack:
            current = stack.pop()
            if current in self.seen or not self._is_forward(current):
                continue
            self.seen.add(current)
            if _is_cheap(current.node) and (current not in self.stored or self._views_memory(current.node)):
                stack.extend(current.node.inputs)
            else:
                self.kept.add(current)

    def _views_memory(self, node: Node) -> bool:
        return is_view(node) and (node.inputs[0] in self.stored or not self._is_forward(node.inputs[0]))

    def _is_simple(self, entry: Entry, most: int) -> bool:
        """True when at most `most` elementwise operators, none of them costly, give `entry` from kept values and
        variables."""
        size = math.prod(self.graph.shape(entry))
        again: set[Node] = set()
        stack = [entry]
        while stack:
            node = stack.pop().node
            if node in again:
                continue
            again.add(node)
            large = 16 * math.prod(self.graph.shape(Entry(node))) > size
            if len(again) > most or not _is_cheap(node) or (large and is_costly(node)):
                return False
            for source in node.inputs:
                if source in self.dropped:
                    return False  # Else a layer's values would be computed from those of all layers before it.
                if self._is_forward(source) and source not in self.kept:
                    stack.append(source)
        return True


@graph_pass(needs=("shape", "dtype"), gives=())
def recompute(graph: Graph, options: Options) -> Graph:
    """Computes cheap forward values again in the backward part, instead of keeping them.

    Every node has constants of its own afterwards.
    """
    phase = phases(graph, options.static)
    free = free_nodes(graph)
    whole = {*graph.outputs, *_read_from_memory(graph)}
    kept = _Choice(graph, options, phase, free).kept
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
        builder.came_from(new, node)
        return entries

    def used_by(user_phase: str, entry: Entry) -> Entry:
        """The new entry that a user in `user_phase` reads for the old `entry`."""
        node = entry.node
        if node in free and entry not in whole:
            return clone(node, [used_by(user_phase, e) for e in node.inputs])[entry.index]
        late = user_phase == BACKWARD and not node.is_variable and phase[node] == FORWARD
        if not late or not _is_cheap(node) or entry in kept or node in free:
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
        builder.came_from(new, node)
        for i in range(node.num_outputs):
            builder.map[Entry(node, i)] = Entry(new, i)
            builder.record(Entry(new, i), graph.shape(Entry(node, i)), graph.dtype(Entry(node, i)))
    return builder.finish([builder.map[e] for e in graph.outputs], graph.sinks)
