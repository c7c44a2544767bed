"""The gradient of a loop, which is a loop in the other direction.

Before the gradient pass begins, a loop in a gradient's way is made one that also stacks what its gradient reads: values
of the body that the body's gradient needs and that are neither data nor read whole, and, where there is a test, which
steps were taken. The gradient's loop has the stacked values and what flows into the stacked outputs as data; what flows
into the states is its state, and so is the sum of what flows into each input that the loop reads whole.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from mxc.compiler.graph.building import as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient, is_loss, leading
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Sink, rewrite, topological
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
    made = LoopForm(body, form.variables, form.data, form.states, form.length, form.test, form.is_reversed, form.stops)
    return made, Backward(joint, wanted, sources, taken)


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
    op = g.node.op
    assert isinstance(op, LoopOperator)
    form, wanted, joint = op.form, backward.wanted, backward.joint
    data, states = form.variables[:form.data], form.variables[form.data:form.data + form.states]
    whole = form.variables[form.data + form.states:]
    builder = _keeping(joint)
    inputs: dict[str, list[tuple[Node, Entry]]] = {"slice": [], "state": [], "whole": []}
    new: dict[Entry, Entry] = {}

    def given(kind: str, outer: Entry, shape: tuple[int, ...]) -> Entry:
        """A variable of the new body, fed by an entry of the graph."""
        for node, known in inputs[kind] if kind != "state" else ():
            if known == outer:
                return Entry(node)
        entry = builder.variable(f"{kind}{len(inputs[kind])}", shape, g.dtype(outer))
        inputs[kind].append((entry.node, outer))
        return entry

    heads = {head_position(n.name): Entry(n) for n in joint.variables if n not in form.variables}
    # The joint graph was made of the body before it stacked more; its outputs are the user's, then the states.
    users = len([s for s in joint.sinks if s.kind == "output"]) - form.states
    own = {node: position for position, node in enumerate(form.variables)}
    flowing = [state for state in states if state in wanted]
    for position, state in enumerate(states):
        if state in flowing:
            entry = given("state", g.grad(form.stacks + position), g.shape(g.inputs[own[state]]))
            head = heads.get(users + position)
            if head is not None:
                new[head] = entry
    for position, head in heads.items():
        if head in new:
            continue
        if position < users and g.out_grads[position] is not None:
            new[head] = given("slice", g.grad(position), joint.shape(head))
        else:
            new[head] = filled(builder, joint.shape(head), 0.0, joint.dtype(head))
    for entry, source in backward.sources.items():
        if isinstance(source, int):
            new[entry] = given("slice", g.outputs[source], joint.shape(entry))
        else:
            new[entry] = given("slice" if source in data else "whole", g.inputs[own[source]], joint.shape(entry))
    found = _remade(builder, joint, new)
    sums = [node for node in whole if node in wanted]
    totals = []
    for node in sums:
        start = g.builder.make("_zeros", shape=g.shape(g.inputs[own[node]]), dtype=g.dtype(g.inputs[own[node]]))
        before = given("state", start, g.shape(start))
        back = found.get(node.name)
        totals.append(before if back is None else builder.make("elemwise_add", before, back))
    nothing = {node: filled(builder, joint.shape(Entry(node)) if node in joint.ids else g.shape(g.inputs[own[node]]),
                            0.0, g.dtype(g.inputs[own[node]]))
               for node in wanted if node.name not in found and node not in whole}
    slices = [node for node in data if node in wanted and node.name in found]
    outputs = [found[node.name] for node in slices]
    outputs += [found[node.name] if node.name in found else nothing[node] for node in flowing]
    test = None
    if backward.taken >= 0:
        flag = given("slice", g.outputs[backward.taken], (1,))
        tested = GraphBuilder()
        tested.record(flag, (1,), "int32")
        test = _finished(tested, [tested.make("_not_equal_scalar", flag, scalar=0.0)])
    made = LoopForm(_finished(builder, [*outputs, *totals]), [n for kind in inputs for n, _ in inputs[kind]],
                    len(inputs["slice"]), len(inputs["state"]), form.length, test, not form.is_reversed, False)
    entries = add_loop(g.builder, made, [e for kind in inputs for _, e in inputs[kind]], f"{g.node.name}_backward")
    results = {node: as_shape(g.builder, entry, g.shape(g.inputs[own[node]]))  # that of data with one axis is (n, 1)
               for node, entry in zip([*slices, *flowing, *sums], entries, strict=True)}
    return [results.get(node) for node in form.variables]


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
