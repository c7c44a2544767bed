"""The gradient of a loop, which is a loop in the other direction.

Before the gradient pass begins, a loop in a gradient's way is made one that also stacks what its gradient reads: values
of the body that the body's gradient needs and that are neither data nor read whole, and, where there is a test, which
steps were taken. The gradient's loop has the stacked values and what flows into the stacked outputs as data; what flows
into the states is its state, and so is the sum of what flows into each input that the loop reads whole.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from mxc.compiler.graph.building import as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient, is_loss, leading, zeros
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape, Sink, rewrite, topological
from mxc.compiler.graph.loop import LoopForm, LoopOperator, add_loop
from mxc.compiler.graph.names import head_position
from mxc.compiler.graph.phases import free_nodes

# The joint graph of a body, for what is asked for, in training mode or not.
Differentiate = Callable[[Graph, Mapping[str, str]], Graph]


@dataclass(frozen=True)
class Backward:
    """What the gradient of a loop is made of. joint: the body with its gradients. wanted: the variables whose gradients
    it has, in the order of these. sources: of each value of the body that the gradient reads, the position of its
    stack among the loop's outputs, or the variable that it is. taken: the position of the output that tells which steps
    were taken, -1 without a test."""

    joint: Graph
    wanted: Sequence[Node]
    sources: Mapping[Entry, int | Node]
    taken: int


def with_stacks(graph: Graph, leads: Set[Node], differentiate: Differentiate) -> tuple[Graph, dict[Node, Backward]]:
    """The graph whose loops among `leads` stack what their gradients read; what the gradients are made of."""
    if not any(isinstance(node.op, LoopOperator) for node in leads):
        return graph, {}
    found: dict[Node, Backward] = {}

    def rule(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        if not isinstance(node.op, LoopOperator) or node not in leads:
            return None
        form = node.op.form
        asked = {form.variables[i] for i, e in enumerate(node.inputs) if e.node in leads}
        form, backward = _stacking(form, asked, differentiate)
        made = add_loop(builder, form, [builder.map[e] for e in node.inputs], node.name)
        found[made[0].node] = backward
        old = node.op.form.stacks
        return [*made[:old], *made[form.stacks:]]

    return rewrite(graph, rule), found


def _stacking(form: LoopForm, asked: set[Node], differentiate: Differentiate) -> tuple[LoopForm, Backward]:
    """The loop that also stacks what its gradient reads, and what that is made of."""
    joint, wanted = _joint(form, asked, differentiate)
    outputs = [e for e, s in zip(joint.outputs, joint.sinks, strict=True) if s.kind == "output"]
    grads = [e for e, s in zip(joint.outputs, joint.sinks, strict=True) if s.kind == "grad"]
    forward = set(topological(outputs))
    constant = free_nodes(joint)
    read = [e for node in topological(grads) if node not in forward for e in node.inputs] + grads
    stacked = list(outputs[:form.stacks])
    again = dict(zip(form.variables, range(len(form.variables)), strict=True))
    sources: dict[Entry, int | Node] = {}
    for entry in read:
        if entry.node not in forward or entry.node in constant or entry in sources:
            continue
        place = again.get(entry.node, -1)
        if 0 <= place < form.data or place >= form.data + form.states:
            sources[entry] = entry.node
        else:
            if entry not in stacked:
                stacked.append(entry)
            sources[entry] = stacked.index(entry)
    builder = _keeping(joint)
    taken = -1
    if form.test is not None:
        taken = len(stacked)
        stacked.append(filled(builder, (1,), 1.0, "int32"))
    body = _finished(builder, [*stacked, *outputs[form.stacks:]])
    return replace(form, body=body), Backward(joint, wanted, sources, taken)


def _joint(form: LoopForm, asked: set[Node], differentiate: Differentiate) -> tuple[Graph, list[Node]]:
    """The body with the gradients of what is asked for, and of the states through which they flow."""
    states = form.variables[form.data:form.data + form.states]
    changed = form.body.outputs[form.stacks:]
    while True:
        leads = leading(form.body, [node for node in form.body.variables if node in asked])
        more = {state for state, new in zip(states, changed, strict=True) if new.node in leads | asked} - asked
        if not more:
            break
        asked |= more
    wanted = [node for node in form.variables if node in asked]
    read = {node.name for node in form.body.variables}
    return differentiate(form.body, {node.name: "write" for node in wanted if node.name in read}), wanted


def loop_gradient(g: Gradient, backward: Backward) -> list[Entry | None]:
    """What flows into each input of a loop, by another loop."""
    return _GradientLoop(g, backward).run()


class _GradientLoop:
    """The loop that is the gradient of a loop. inputs: of each kind, the variables of its body, and the entries of the
    graph that feed them. new: what entries of the joint graph are in the body."""

    def __init__(self, g: Gradient, backward: Backward):
        assert isinstance(g.node.op, LoopOperator)
        self.g, self.form, self.backward, self.joint = g, g.node.op.form, backward, backward.joint
        self.fed = dict(zip(self.form.variables, g.inputs, strict=True))
        first = self.form.data + self.form.states
        wanted = set(backward.wanted)
        data, states, whole = (self.form.variables[a:b] for a, b in
                               ((0, self.form.data), (self.form.data, first), (first, None)))
        self.data, self.states = data, states
        self.slices, self.flowing, self.sums = ([node for node in part if node in wanted]
                                                for part in (data, states, whole))
        self.builder = _keeping(self.joint)
        self.inputs: dict[str, list[tuple[Node, Entry]]] = {"slice": [], "state": [], "whole": []}
        self.new: dict[Entry, Entry] = {}

    def run(self) -> list[Entry | None]:
        g, form = self.g, self.form
        self._feed_heads()
        for entry, source in self.backward.sources.items():
            kind = "slice" if isinstance(source, int) or source in self.data else "whole"
            outer = g.outputs[source] if isinstance(source, int) else self.fed[source]
            self.new[entry] = self._given(kind, outer, self.joint.shape(entry))
        found = _remade(self.builder, self.joint, self.new)
        self.slices = [node for node in self.slices if node.name in found]  # the body reads them
        outputs = [found[node.name] for node in self.slices]
        outputs += [found[node.name] if node.name in found else self._zeros(self.fed[node]) for node in self.flowing]
        outputs += [self._sum(node, found.get(node.name)) for node in self.sums]
        test = self._test()
        fed = [pair for kind in self.inputs.values() for pair in kind]
        made = LoopForm(_finished(self.builder, outputs), [node for node, _ in fed], len(self.inputs["slice"]),
                        len(self.inputs["state"]), form.length, test, not form.is_reversed, stops=False)
        entries = add_loop(g.builder, made, [entry for _, entry in fed], f"{g.node.name}_backward")
        results = {node: as_shape(g.builder, entry, g.shape(self.fed[node]))  # that of data with one axis is (n, 1)
                   for node, entry in zip([*self.slices, *self.flowing, *self.sums], entries, strict=True)}
        return [results.get(node) for node in form.variables]

    def _given(self, kind: str, outer: Entry, shape: Shape) -> Entry:
        """A variable of the body that an entry of the graph feeds; of each entry one, but for states."""
        for node, known in self.inputs[kind] if kind != "state" else ():
            if known == outer:
                return Entry(node)
        entry = self.builder.variable(f"{kind}{len(self.inputs[kind])}", shape, self.g.dtype(outer))
        self.inputs[kind].append((entry.node, outer))
        return entry

    def _zeros(self, like: Entry) -> Entry:
        return filled(self.builder, self.g.shape(like), 0.0, self.g.dtype(like))

    def _feed_heads(self) -> None:
        """What flows into the outputs of the body: into new states what the round before gave for the old ones, into
        stacked outputs a slice of what flows into the stack."""
        g, form, joint = self.g, self.form, self.joint
        heads = {head_position(n.name): Entry(n) for n in joint.variables if n not in self.fed}
        # The joint graph was made of the body before it stacked more: its outputs are the user's, then the states.
        users = sum(sink.kind == "output" for sink in joint.sinks) - form.states
        for number, state in enumerate(self.states):
            if state in self.flowing:
                entry = self._given("state", g.grad(form.stacks + number), g.shape(self.fed[state]))
                if users + number in heads:
                    self.new[heads[users + number]] = entry
        for position, head in heads.items():
            if head in self.new:
                continue
            if position < users and g.out_grads[position] is not None:
                self.new[head] = self._given("slice", g.grad(position), joint.shape(head))
            else:
                self.new[head] = filled(self.builder, joint.shape(head), 0.0, joint.dtype(head))

    def _sum(self, node: Node, back: Entry | None) -> Entry:
        """The new sum of what flows into an input that is read whole."""
        outer = self.fed[node]
        start = zeros(self.g.builder, outer, f"{self.g.node.name}_backward_{node.name}")
        before = self._given("state", start, self.g.shape(outer))
        return before if back is None else self.builder.make("elemwise_add", before, back)

    def _test(self) -> Graph | None:
        """Whether the loop has taken a step."""
        if self.backward.taken < 0:
            return None
        flag, tested = self._given("slice", self.g.outputs[self.backward.taken], (1,)), GraphBuilder()
        tested.record(flag, (1,), "int32")
        return _finished(tested, [tested.make("_not_equal_scalar", flag, scalar=0.0)])


def _keeping(graph: Graph) -> GraphBuilder:
    """A builder that knows the facts of a graph's entries."""
    builder = GraphBuilder()
    for node in graph.nodes:
        for i in range(node.num_outputs):
            builder.record(Entry(node, i), graph.shape(Entry(node, i)), graph.dtype(Entry(node, i)))
    return builder


def _finished(builder: GraphBuilder, outputs: Sequence[Entry]) -> Graph:
    return builder.finish(outputs, [Sink("output", "")] * len(outputs))


def _remade(builder: GraphBuilder, joint: Graph, new: dict[Entry, Entry]) -> dict[str, Entry]:
    """The gradients of a joint graph over other entries, by the name of the variable."""
    grads = {s.name: e for e, s in zip(joint.outputs, joint.sinks, strict=True) if s.kind == "grad"}
    found = dict(new)
    for node in topological(grads.values()):
        if Entry(node) in found or (not node.is_variable and any(e not in found for e in node.inputs)):
            continue  # it is given, or behind what is given
        if node.is_variable:
            continue
        inputs = [found[e] for e in node.inputs]
        made = Node(node.op, node.name, node.attrs, node.params, inputs, node.subgraphs)
        for i in range(node.num_outputs):
            entry = Entry(node, i)
            found.setdefault(entry, Entry(made, i))
            builder.record(Entry(made, i), joint.shape(entry), joint.dtype(entry))
    return {name: found[e] for name, e in grads.items()}


def begins_gradient(node: Node) -> bool:
    """Whether a gradient begins in a node, whatever flows into its outputs: it is a loss, or a loop over one."""
    op = node.op
    if isinstance(op, LoopOperator):
        return any(begins_gradient(inner) for inner in op.form.body.nodes)
    return op is not None and is_loss(op)
