"""The gradient pass: what grad_req asks for, as more nodes of the same graph.

The joint graph has the user's outputs first, then a sink "grad" per argument whose grad_req is write or add (in the
order of the arguments), then, in training mode, a sink "aux" per auxiliary state that training changes. As in MXNet, a
state changes in backward, and only where gradients of its node lead to a wanted argument: what lies below frozen
arguments alone, or above wanted ones behind BlockGrad, keeps its moving statistics. Whether anything but zeros flows
into the node does not matter: behind it there may be a BlockGrad. Nodes that only a gradient needs are the backward
part.

Head gradients. The gradient that flows into output i is the variable `_head_grad_<i>`, of the output's shape and dtype,
with more underscores in front where the graph has a variable of that name. It is made only where a gradient reads it:
loss operators (SoftmaxOutput, MakeLoss, ...) begin a gradient of their own and ignore what flows into them, even where
nothing does. As in MXNet, whoever runs backward without a value for a head gradient that exists must be refused ("head
gradient is required: the output is not a loss"); values for those that do not exist are accepted and ignored.

What flows into an operator's inputs is found in the first of three ways that there is: a rule in operators/*/graph.py;
the formulas of the table, by generated `_backward_<op>` operators; the gradients of what the operator is made of, its
decomposition. Contributions to one entry are added up; where nothing flows the gradient is zeros. Gradients have their
argument's dtype. No gradient flows through arrays without elements.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.building import as_dtype
from mxc.compiler.graph.gradient_rule import Gradient, leading, zeros
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Sink
from mxc.compiler.graph.options import Options
from mxc.compiler.passes.decompose import draws
from mxc.compiler.passes.loop_gradient import Backward, begins_gradient, loop_gradient, with_stacks
from mxc.compiler.passes.registry import graph_pass

HEAD = "_head_grad_"


@graph_pass(needs=("shape", "dtype"), gives=("gradient",))
def gradient(graph: Graph, options: Options) -> Graph:
    """Adds what `grad_req` asks for: gradients, and new auxiliary values in training mode.

    Raises MXNetError for an operator in a gradient's way that has none.
    """
    return differentiate(graph, options.grad_req, options.is_train)


def differentiate(graph: Graph, grad_req: Mapping[str, str], is_train: bool,
                  inferring: frozenset[Node] = frozenset(), again: bool = False,
                  told: list[tuple[str, Entry]] | None = None) -> Graph:
    """The joint graph for these requests, as the pass makes it.

    inferring: nodes that ran in inference mode whatever `is_train` says, as an imperative program may run some. again:
    whether the gradients are to be differentiated themselves. told: gets the gradients as MXNet's monitors see them, by
    name and in the order in which they flow: what each node adds to the gradients of its inputs
    (NODE_backward_output<i>, without the number where there is one input), and sums of several (sum_grad_output).
    """
    wanted = [node for node in graph.variables if grad_req.get(node.name, "null") != "null"]
    graph, loops = with_stacks(graph, leading(graph, wanted),
                               lambda body, asked: differentiate(body, asked, is_train, again=again))
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.copy(node)
    outputs, sinks = list(graph.outputs), list(graph.sinks)
    leads = leading(graph, wanted)
    notes: list[tuple[str, Entry]] = [] if told is None else told
    flows = _flow_back(graph, builder, leads, loops, is_train, inferring, again, notes)
    for node in wanted:
        builder.at(node)
        outputs.append(_total(builder, Entry(node), flows, notes))
        sinks.append(Sink("grad", node.name, grad_req[node.name]))
    if is_train:
        changed = [node for node in reversed(graph.nodes) if node in leads and node not in inferring]
        for name, entry in _new_aux(builder, changed).items():
            outputs.append(entry)
            sinks.append(Sink("aux", name))
    return builder.finish(outputs, sinks)


def _flow_back(graph: Graph, builder: GraphBuilder, leads: set[Node], loops: Mapping[Node, Backward], is_train: bool,
               inferring: frozenset[Node], again: bool, told: list[tuple[str, Entry]]) -> dict[Entry, list[Entry]]:
    """The contributions to the gradient of every entry of the nodes `leads`; told: see `differentiate`."""
    flows: dict[Entry, list[Entry]] = {}
    names, prefix = {node.name for node in graph.variables}, HEAD
    while any(f"{prefix}{i}" in names for i in range(len(graph.outputs))):
        prefix = f"_{prefix}"
    for i, entry in enumerate(graph.outputs):
        if 0 in graph.shape(entry):
            continue
        head = builder.variable(f"{prefix}{i}", graph.shape(entry), graph.dtype(entry))
        flows.setdefault(entry, []).append(head)

    def gradient_of(node: Node, asked: list[bool]) -> Gradient:
        builder.at(node)
        return Gradient(builder, node, [], asked, is_train and node not in inferring, again)

    _flow_through(graph.nodes, leads, flows, gradient_of, told, loops)
    return flows


def _flow_through(nodes: Sequence[Node], leads: set[Node], flows: dict[Entry, list[Entry]],
                  gradient_of: Callable[[Node, list[bool]], Gradient], told: list[tuple[str, Entry]],
                  loops: Mapping[Node, Backward] = MappingProxyType({})) -> None:
    """Add to `flows`, the contributions to the gradient of every entry, what flows back through the nodes `leads`.

    gradient_of: a function of a node, and of whether the gradient of each of its inputs is needed; it gives the
    `Gradient` that the node's rule works with, in which nothing flows into the outputs yet. told: see `differentiate`.
    loops: what the gradients of loops are made of.
    """
    for node in reversed(nodes):
        if node.op is None or node not in leads:
            continue
        outs = [Entry(node, i) for i in range(node.num_outputs)]
        if not (begins_gradient(node) or any(flows.get(e) for e in outs)):
            continue
        g = gradient_of(node, [e.node in leads for e in node.inputs])
        g.out_grads = [_sum(g.builder, e, flows.get(e, []), told) for e in outs]
        for i, (entry, back) in enumerate(zip(node.inputs, _differentiate(g, loops), strict=False)):
            if back is not None and entry.node in leads:
                flows.setdefault(entry, []).append(back)
                if back not in g.out_grads:  # An operator that passes its gradient on unchanged adds nothing to tell.
                    told.append((f"{node.name}_backward_output{i if len(g.inputs) > 1 else ''}", back))


def _differentiate(g: Gradient, loops: Mapping[Node, Backward]) -> list[Entry | None]:
    """What flows into each input of a node, in the input's shape and dtype (None: nothing)."""
    node = g.node
    assert node.op is not None
    if node.op.grad == "none":
        return [None] * len(node.inputs)
    rule = node.op.rule("grad")
    backs = (loop_gradient(g, loops[node]) if node in loops else rule(g) if rule
             else _by_parts(g) if node.op.is_made_of_others else g.by_formula())
    checked: list[Entry | None] = []
    for entry, back in zip(g.inputs, backs, strict=True):
        if back is not None:
            if g.shape(back) != g.shape(entry):
                raise MXNetError(f"the gradient rule of {node!r} gives shape {g.shape(back)} for its input "
                                 f"{entry.node.name!r} of shape {g.shape(entry)}")
            back = as_dtype(g.builder, back, g.dtype(entry))
        checked.append(back)
    return checked


def _by_parts(g: Gradient) -> list[Entry | None]:
    """What flows into each input of a node through the operators that its decomposition is made of.

    The parts are made once more, beside the node, where a gradient reads their values; what is equal to a part of the
    node's own decomposition becomes one with it later. Raises MXNetError for a node that is not decomposed, and for one
    that draws random numbers: the second decomposition would draw other numbers than the first.
    """
    graph, parts, count = _decomposed(g)
    given, made = parts[:count], parts[count:]
    place = dict(zip(given, g.node.inputs, strict=True))  # entry of the decomposition -> of the graph
    for part, out in zip(made, g.outputs, strict=True):
        place.setdefault(part, out)
    copies: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op is not None:
            inputs = [place[e] for e in node.inputs]
            copies[node] = Node(node.op, f"{g.node.name}_part{len(copies) + 1}", node.attrs, node.params, inputs,
                                node.subgraphs)
            for i, entry in enumerate(g.builder.add(copies[node])):
                place.setdefault(Entry(node, i), entry)

    def gradient_of(node: Node, asked: list[bool]) -> Gradient:
        return g.of_part(copies[node], [place[Entry(node, i)] for i in range(node.num_outputs)], asked)

    flows: dict[Entry, list[Entry]] = {}
    for part, back in zip(made, g.out_grads, strict=True):
        if back is not None:
            flows.setdefault(part, []).append(back)
    wanted = [e.node for e, asked in zip(given, g.asked, strict=False) if asked]
    inside: list[tuple[str, Entry]] = []  # Nobody reads it: monitors are told of the whole node, not of its parts.
    _flow_through(graph.nodes, leading(graph, wanted), flows, gradient_of, inside)
    return [_sum(g.builder, e, flows.get(e, []), inside) if asked else None
            for e, asked in zip(given, g.asked, strict=False)]


def _decomposed(g: Gradient) -> tuple[Graph, list[Entry], int]:
    """The decomposition of a node as a graph of its own, that graph's entries, and how many variables it has.

    The entries are first the variables, which stand for the node's inputs (auxiliary states last), then what the
    decomposition gives for each output.
    """
    node, alone = g.node, GraphBuilder()
    assert node.op is not None
    names = [f"{node.name}_{name}" for name in node.op.all_names(node.params)]
    inputs = [alone.variable(name, g.shape(e), g.dtype(e)) for name, e in zip(names, node.inputs, strict=True)]
    outputs = alone.add(Node(node.op, node.name, node.attrs, node.params, inputs, node.subgraphs))
    both = [*inputs, *outputs]
    builder = GraphBuilder(alone.finish(both, [Sink("output", "")] * len(both)))
    for entry in inputs:
        builder.copy(entry.node)
    rule = node.op.rule("decompose")
    made = rule(builder, outputs[0].node, inputs, Options(None, g.is_train)) if rule else None  # type: ignore[arg-type]
    why = "" if made is not None else "with these parameters it is not made of other operators; "
    parts = [*inputs, *(made or [])]
    graph = builder.finish(parts, [Sink("output", "")] * len(parts))
    if builder.streams or any(_draws(part, graph, g.is_train) for part in graph.nodes):
        why = "it draws random numbers, and its gradient would draw other ones; "
    if any(part.op is node.op for part in graph.nodes):
        why = f"it is made of {node.op.name} again; "
    if why:
        raise MXNetError(f"{node!r} has no gradient, and one was asked for: {why}{node.op.no_gradient}")
    return graph, parts, len(inputs)


def _draws(part: Node, graph: Graph, is_train: bool) -> bool:
    """Whether a part of a decomposition is itself made of what draws random numbers."""
    shapes, dtypes = [graph.shape(e) for e in part.inputs], [graph.dtype(e) for e in part.inputs]
    return part.op is not None and draws(part.op, part.params, shapes, dtypes, is_train)


def _sum(builder: GraphBuilder, entry: Entry, parts: list[Entry], told: list[tuple[str, Entry]]) -> Entry | None:
    """The sum of the contributions to the gradient of `entry`; None when there is none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    name = f"{entry.node.name}_grad{entry.index or ''}"
    if len(parts) == 2:
        total = builder.make("elemwise_add", *parts, name=name)
    else:
        total = builder.make("add_n", *parts, name=name, num_args=len(parts))
    told.append(("sum_grad_output", total))
    return total


def _total(builder: GraphBuilder, entry: Entry, flows: dict[Entry, list[Entry]], told: list[tuple[str, Entry]],
           ) -> Entry:
    """The gradient of a variable: the sum of its contributions, or zeros."""
    total = _sum(builder, entry, flows.get(entry, []), told)
    return zeros(builder, entry, f"{entry.node.name}_grad") if total is None else total


def _new_aux(builder: GraphBuilder, nodes: list[Node]) -> dict[str, Entry]:
    """New values of the auxiliary states that the nodes change, by name; a state that several nodes share takes their
    updates one after the other."""
    values: dict[str, Entry] = {}
    for node in nodes:
        rule = node.op.rule("aux_update") if node.op is not None else None
        if rule is None:
            continue
        builder.at(node)
        g = Gradient(builder, node, [None] * node.num_outputs, [], True)
        g.label, states = "update", list(g.aux)
        g.aux = [values.get(e.node.name, e) for e in states]
        for state, new in zip(states, rule(g), strict=True):
            if new is not None:
                values[state.node.name] = as_dtype(builder, new, builder.dtype(state))
    return values
