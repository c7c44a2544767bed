"""Fusion: which nodes share one kernel.

Every operator node starts as a group of its own, and groups are merged along the graph's edges, producers into
consumers, in topological order. A merge is allowed when the united nodes fit one of three forms (`levels`), stay in one
phase, and no path leaves the group and comes back.

The forms, over an iteration space S (a shape):
  map      every stored value has shape S
  reduce   S is split into reduced axes R and the rest, the domain; values live at level "space" (one for each point of
           S: before the reductions, or after them with the results spread back) or "domain" (one for each point of
           the domain: the reductions' results and what follows from them)
  anchor   S is the shape of a library kernel's output; the other nodes are its epilogue
In each, a value that no later group needs may also be "inline": computed again wherever it is read, at whatever index
(what a transpose, a slice or a broadcast reads). It never depends on a reduction or an anchor of the group.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mxc.compiler.graph.graph import Entry, Graph, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.phases import phases
from mxc.compiler.lowering.fuse_forms import Form, NotFusable, form_of, is_view, is_window, united
from mxc.compiler.lowering.stage import Program, lowering_stage
from mxc.compiler.ops.operator import Kind

MAX_NODES = 48  # the most nodes of a group: it keeps the length of a kernel's code and its compile time bounded
MAX_BUFFERS = 24  # the most arrays that a group reads and writes
EIGHT_BITS = ("int8", "uint8")
COPY = "copy"  # what a kernel is called that changes no values


@dataclass
class Group:
    """Nodes that become one kernel, in topological order, and their form. stored: the entries that go to memory."""

    nodes: list[Node]
    form: Form
    phase: str
    stored: list[Entry] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The operators in order, for people: `Convolution+broadcast_add+relu`; `copy` for views alone."""
        words = [node.op.name for node in self.nodes if node.op is not None and not is_view(node)]
        return "+".join(words) or COPY


class Grouping:
    """The groups of a graph, in an order in which they can run."""

    def __init__(self, graph: Graph, options: Options):
        self.graph, self.spreading = graph, options.prefers.spreading
        self.phase = phases(graph, options.static)
        self.position = graph.ids
        self.users = {e: list(dict.fromkeys(user for user, _ in found)) for e, found in graph.consumers().items()}
        self.sinks = set(graph.outputs)
        self.frontier = len(graph.nodes)  # Behind this position every node is still a group of its own.
        self.group_of: dict[Node, Group] = {}
        self.made: dict[Node, list[Entry]] = {}  # the entries of each node
        for node in graph.nodes:
            if not node.is_variable:
                self.group_of[node] = Group([node], form_of(graph, [node]), self.phase[node])
                self.made[node] = [Entry(node, i) for i in range(node.num_outputs)]

    def needed_outside(self, nodes: set[Node], entry: Entry) -> bool:
        """True when `entry` is an output of the graph or read by a node outside of `nodes`."""
        return entry in self.sinks or any(user not in nodes for user in self.readers(entry))

    def readers(self, entry: Entry) -> Sequence[Node]:
        return self.users.get(entry, ())

    def stored_entries(self, nodes: list[Node]) -> list[Entry]:
        inside = set(nodes)
        return [e for node in nodes for e in self.made[node] if self.needed_outside(inside, e)]

    def try_merge(self, producer: Group, consumer: Group) -> bool:
        """Merge the two groups when that is legal; returns whether they are one now. A group that has been merged with
        others since the caller found it counts as what it has become, so that no node gets into two groups."""
        producer, consumer = self.group_of[producer.nodes[0]], self.group_of[consumer.nodes[0]]
        if producer is consumer:
            return True
        group = self.merged(producer, consumer)
        if isinstance(group, str):
            return False
        for node in group.nodes:
            self.group_of[node] = group
        return True

    def merged(self, producer: Group, consumer: Group) -> Group | str:
        """Two groups as one, or why they cannot be one."""
        if producer.phase != consumer.phase:
            return f"one runs in the phase {producer.phase}, the other in {consumer.phase}"
        if not producer.form.may_precede(consumer.form):
            return f"the form {producer.form.kind} shares no kernel with the form {consumer.form.kind} behind it"
        if len(producer.nodes) + len(consumer.nodes) > MAX_NODES:
            return f"together they have more than {MAX_NODES} nodes"
        nodes = sorted([*producer.nodes, *consumer.nodes], key=self.position.__getitem__)
        stored = self.stored_entries(nodes)
        if self.count_inputs(nodes) + len(stored) > MAX_BUFFERS:
            return f"together they read and write more than {MAX_BUFFERS} arrays"
        form = united(producer.form, consumer.form)
        try:
            form = form or form_of(self.graph, nodes, set(stored), self.spreading)
        except NotFusable as error:
            return str(error)
        if self.leaves_and_returns(nodes):
            return "another group lies between them: it reads from one and is read by the other"
        return Group(nodes, form, producer.phase)

    def only_reduced(self, producer: Group, node: Node) -> bool:
        """True when only reductions read `node`, and the anchor's result that it reads is stored anyway. The reductions
        then load that result and compute `node` themselves; with `node` in the anchor's group, it would store both."""
        users = self.readers(Entry(node))
        if producer.form.kind != "anchor" or Entry(node) in self.sinks or not users:
            return False
        if not all(user.op is not None and user.op.kind == Kind.REDUCTION and not is_window(user) for user in users):
            return False
        return all(self.needed_outside({*producer.nodes, node}, e) for e in node.inputs if e.node in producer.nodes)

    def only_widened(self, producer: Group, node: Node) -> bool:
        """True when `node` casts numbers of 8 bits, which an anchor's epilogue makes, to a wider dtype. Who reads them
        then loads a quarter of the bytes, and casts them itself, unless it gets into the anchor's group in the end."""
        if producer.form.kind != "anchor" or node.op is None or node.op.name != "Cast" or Entry(node) in self.sinks:
            return False
        return self.graph.dtype(node.inputs[0]) in EIGHT_BITS and self.graph.dtype(Entry(node)) not in EIGHT_BITS

    @staticmethod
    def count_inputs(nodes: list[Node]) -> int:
        """How many entries `nodes` read that others make."""
        inside = set(nodes)
        return len({e for node in nodes for e in node.inputs if e.node not in inside})

    def leaves_and_returns(self, nodes: list[Node]) -> bool:
        """True when some path goes from `nodes` through another group back to `nodes`."""
        # Every group of several nodes ends at `frontier` or before, so a path that has passed it cannot come back.
        inside = set(nodes)
        seen: set[Node] = set()
        stack = [u for n in nodes for e in self.made[n] for u in self.readers(e) if u not in inside]
        while stack:
            node = stack.pop()
            if node in inside:
                return True
            if node in seen:
                continue
            members = self.group_of[node].nodes
            seen.update(members)
            if min(map(self.position.__getitem__, members)) > self.frontier:
                continue
            stack.extend(u for n in members for e in self.made[n] for u in self.readers(e))
        return False

    def producers(self, node: Node) -> list[Group]:
        """The groups that `node` reads, anchors first, later ones before earlier ones."""
        found = {id(g): g for e in node.inputs if (g := self.group_of.get(e.node)) is not None}
        return sorted(found.values(), key=lambda g: (g.form.kind != "anchor", -self.position[g.nodes[-1]]))

    def groups(self) -> list[Group]:
        """All groups, each once, in topological order, with what each has to store; unused views are left out."""
        unique = list({id(g): g for g in self.group_of.values()}.values())
        for group in unique:
            group.stored = self.stored_entries(group.nodes)
        order: list[Group] = []
        state: dict[int, bool] = {}

        def visit(group: Group) -> None:
            stack = [(group, iter([e.node for n in group.nodes for e in n.inputs]))]
            state[id(group)] = False
            while stack:
                current, below = stack[-1]
                for node in below:
                    lower = self.group_of.get(node)
                    if lower is not None and id(lower) not in state:
                        state[id(lower)] = False
                        stack.append((lower, iter([e.node for n in lower.nodes for e in n.inputs])))
                        break
                else:
                    state[id(current)] = True
                    order.append(current)
                    stack.pop()

        for group in sorted(unique, key=lambda g: self.position[g.nodes[-1]]):
            if id(group) not in state:
                visit(group)
        return order


def alone(graph: Graph, options: Options) -> list[Group]:
    """Each node as a group of its own, in an order in which they can run: the groups where `fuse` is skipped."""
    return Grouping(graph, options).groups()


def _groups_text(program: Program) -> str:
    """The groups, a line each, then pairs of neighbours that did not become one group, with the reason."""
    refused = "\n".join(refusals(program.graph, program.options, program.groups))
    return group_text(program.graph, program.groups) + (f"-- not fused\n{refused}" if refused else "")


@lowering_stage(needs=("graph", "options"), gives=("groups",), instead=alone, text=_groups_text)
def fuse(graph: Graph, options: Options) -> list[Group]:
    """Chooses which nodes share a kernel: groups, in an order in which they can run."""
    grouping = Grouping(graph, options)
    for node in graph.nodes:
        if node.is_variable or (is_view(node) and grouping.phase[node] != "prepare"):
            continue
        grouping.frontier = grouping.position[node]
        for producer in grouping.producers(node):
            united = _through_view(grouping, producer, node)
            if grouping.only_reduced(united, node) or grouping.only_widened(united, node):
                continue
            if not all(map(is_view, united.nodes)):  # Views alone are not united: on its own a view costs nothing.
                grouping.try_merge(united, grouping.group_of[node])
    grouping.frontier = len(graph.nodes)
    _merge_siblings(grouping)
    _merge_rest(grouping)
    return grouping.groups()


def _through_view(grouping: Grouping, producer: Group, node: Node) -> Group:
    """`producer`, or a lone view united with what it views, if that is legal and worth it.

    It is worth it when the view only adds or drops axes of extent 1, or when `node` rearranges elements anyway.
    """
    if len(producer.nodes) == 1 and is_view(producer.nodes[0]):
        view = producer.nodes[0]
        source = grouping.group_of.get(view.inputs[0].node)
        squeezed = _squeezed(grouping.graph, view.inputs[0]) == _squeezed(grouping.graph, Entry(view))
        rearranges = node.op is not None and node.op.kind == Kind.INJECTIVE
        if source is not None and (squeezed or (rearranges and source.form.kind == "map")):
            grouping.try_merge(source, producer)
        return grouping.group_of[view]
    return producer


def _squeezed(graph: Graph, entry: Entry) -> Shape:
    return tuple(d for d in graph.shape(entry) if d != 1)


def _merge_siblings(grouping: Grouping) -> None:
    """Unite reductions over the same axes that read the same array: one sweep serves both."""
    for entry, users in grouping.users.items():
        reductions = [user for user in users if grouping.group_of[user].form.kind == "reduce"]
        for first, second in itertools.pairwise(reductions):
            a, b = grouping.group_of[first], grouping.group_of[second]
            if a is not b and grouping.group_of.get(entry.node) not in (a, b):
                grouping.try_merge(a, b)


def _merge_rest(grouping: Grouping) -> None:
    """Merge groups that did not fit when they were tried first, but do since the consumer's group has grown: a value
    for each channel fits a group only once the group holds a reduction to channels."""
    # id()s of two groups -> the groups: while these are kept here, no new group gets the same id().
    tried: dict[tuple[int, int], tuple[Group, Group]] = {}
    merged = True
    while merged:
        merged = False
        for node in grouping.graph.nodes:
            for producer in [] if node.is_variable else grouping.producers(node):
                consumer = grouping.group_of[node]
                key = id(producer), id(consumer)
                lone = any(all(map(is_view, g.nodes)) for g in (producer, consumer))
                if producer is consumer or lone or key in tried:
                    continue
                tried[key] = producer, consumer
                merged |= grouping.try_merge(producer, consumer)


def group_text(graph: Graph, groups: list[Group]) -> str:
    """One line a kernel: phase, form, operators, and the shape of each entry that it stores. Views are left out."""
    lines = []
    for group in groups:
        if all(map(is_view, group.nodes)):
            continue
        stored = ", ".join(f"{e.node.name}{f'.{e.index}' if e.index else ''}{list(graph.shape(e))}"
                           for e in group.stored)
        lines.append(f"{group.phase} {group.form.kind} {group.label} -> {stored}")
    return "\n".join(lines) + "\n"


def refusals(graph: Graph, options: Options, groups: Sequence[Group]) -> Iterator[str]:
    """`PRODUCER -> CONSUMER: REASON` for each two nodes of different groups of which one reads the other.

    groups: what `fuse` made. In place of a view that is no kernel stands the node that it views.
    """
    grouping = Grouping(graph, options)
    grouping.group_of = {node: group for group in groups for node in group.nodes}
    seen: set[tuple[int, int]] = set()
    for node in graph.nodes:
        consumer = grouping.group_of.get(node)
        if consumer is None or all(map(is_view, consumer.nodes)):
            continue
        for entry in node.inputs:
            source, views = entry.node, list[Group]()
            while (producer := grouping.group_of.get(source)) is not None and all(map(is_view, producer.nodes)):
                views.append(producer)
                source = producer.nodes[0].inputs[0].node
            if producer is None or producer is consumer or (id(producer), id(consumer)) in seen:
                continue
            seen.add((id(producer), id(consumer)))
            yield f"{source.name} -> {node.name}: {_refusal(grouping, producer, [*reversed(views), consumer])}"


def _refusal(grouping: Grouping, producer: Group, others: Sequence[Group]) -> str:
    """Why `producer` and the last of `others` are not one group. Each group reads the one before it; the first and the
    last are kernels, and those between them are views."""
    for other in others:
        merged = grouping.merged(producer, other)
        if isinstance(merged, str):
            return merged
        producer = merged
    if len(others) > 1:
        return f"the view {others[0].nodes[0].name} lies between them"
    return "nothing stands against it: it was not tried, or only before other groups had grown"
