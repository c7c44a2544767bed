"""MXNet's operators of control flow become loops over bodies whose shapes and dtypes are known.

A foreach is a loop over its data, a while_loop one of max_iterations steps with a test. A cond is two loops of one step
each, whose tests are opposites: the outputs are states, zeros at first.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.control_flow import COND, FOREACH, ControlFlowOperator, feeds, state_positions
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, rewrite, variable
from mxc.compiler.graph.loop import LoopForm, add_loop, slice_shape, substituted

if TYPE_CHECKING:
    from collections.abc import Callable

    Typed = Callable[[Graph, dict, dict], Graph]  # a graph with facts, from the shapes and dtypes of its variables


def with_loops(graph: Graph, typed: Typed) -> Graph:
    """The graph, which has facts, with loops in place of MXNet's operators of control flow. typed: infers the facts of
    a body. Raises MXNetError, naming the node, for what no loop can be made of."""
    if not any(isinstance(node.op, ControlFlowOperator) for node in graph.nodes):
        return graph

    def rule(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        if not isinstance(node.op, ControlFlowOperator):
            return None
        inputs = [builder.map[e] for e in node.inputs]
        try:
            return _choice(builder, node, inputs, typed) if node.op is COND else _loop(builder, node, inputs, typed)
        except MXNetError as error:
            raise MXNetError(f"{node.op.name} {node.name!r}: {error}") from None

    return rewrite(graph, rule)


class _Parts:
    """The graphs of a node over new variables, one for each of its inputs; the names tell what these are."""

    def __init__(self, builder: GraphBuilder, node: Node, inputs: Sequence[Entry], names: Sequence[str],
                 is_slice: Sequence[bool], typed: Typed):
        self.builder, self.node, self.inputs, self.typed = builder, node, inputs, typed
        self.variables = [variable(name) for name in names]
        self.shapes = {name: slice_shape(builder.shape(e)) if sliced else builder.shape(e)
                       for name, e, sliced in zip(names, inputs, is_slice, strict=True)}
        self.dtypes = {name: builder.dtype(e) for name, e in zip(names, inputs, strict=True)}

    def graph(self, number: int) -> Graph:
        graph, fed = self.node.subgraphs[number], feeds(self.node)[number]
        made = Graph(substituted(graph, {node: Entry(self.variables[position])
                                         for node, (position, _) in zip(graph.variables, fed, strict=True)}))
        read = {node.name for node in made.variables}
        return self.typed(made, *({name: fact for name, fact in facts.items() if name in read}
                                  for facts in (self.shapes, self.dtypes)))


def _loop(builder: GraphBuilder, node: Node, inputs: Sequence[Entry], typed: Typed) -> list[Entry]:
    """The loop of a foreach or a while_loop."""
    states = state_positions(node)
    data = [p for p, is_slice in feeds(node)[0] if is_slice] if node.op is FOREACH else []
    order = [*sorted(data), *states]
    order += [p for p in range(len(inputs)) if p not in set(order)]
    if len(set(order)) != len(inputs):
        raise MXNetError(f"its inputs {order} are not each data, a state, or read whole; expected every one once")
    names = [""] * len(inputs)
    for i, position in enumerate(order):
        kind, first = (("slice", 0) if i < len(data) else ("state", len(data)) if i < len(data) + len(states)
                       else ("whole", len(data) + len(states)))
        names[position] = f"{kind}{i - first}"
    parts = _Parts(builder, node, inputs, names, [p in data for p in range(len(inputs))], typed)
    variables = [parts.variables[p] for p in order]
    if node.op is FOREACH:
        length = builder.shape(inputs[0])[0]
        form = LoopForm(parts.graph(0), variables, len(data), len(states), length)
    else:
        form = LoopForm(parts.graph(1), variables, 0, len(states), int(node.params.max_iterations), parts.graph(0))
        _check_test(form.test)
    made = add_loop(builder, form, [inputs[p] for p in order], node.name)
    return made if form.length else [*made[:form.stacks], *(inputs[p] for p in states)]


def _choice(builder: GraphBuilder, node: Node, inputs: Sequence[Entry], typed: Typed) -> list[Entry]:
    """The two loops of a cond."""
    names = [f"whole{i}" for i in range(len(inputs))]
    parts = _Parts(builder, node, inputs, names, [False] * len(inputs), typed)
    test = parts.graph(0)
    _check_test(test)
    values = _inlined(builder, test, dict(zip(parts.variables, inputs, strict=True)))
    branches = [parts.graph(number) for number in (1, 2)]
    found = [builder.make("_zeros", shape=branches[0].shape(e), dtype=branches[0].dtype(e))
             for e in branches[0].outputs]
    for branch, comparison, ending in zip(branches, ("_not_equal_scalar", "_equal_scalar"), ("_then", ""), strict=True):
        chosen = GraphBuilder()
        value = chosen.variable("test", test.shape(test.outputs[0]), test.dtype(test.outputs[0]))
        outputs = [chosen.make(comparison, value, scalar=0.0)]
        states = [variable(f"state{i}") for i in range(len(found))]
        form = LoopForm(branch, [*states, value.node, *parts.variables], 0, len(found), 1,
                        chosen.finish(outputs, Graph(outputs).sinks))
        found = add_loop(builder, form, [*found, *values, *inputs], f"{node.name}{ending}")
    return found


def _inlined(builder: GraphBuilder, graph: Graph, new: dict[Node, Entry]) -> list[Entry]:
    """The outputs of a graph with facts whose nodes are made again in a builder."""
    found = {Entry(node): entry for node, entry in new.items()}
    for node in graph.nodes:
        if not node.is_variable:
            made = Node(node.op, node.name, node.attrs, node.params, [found[e] for e in node.inputs], node.subgraphs)
            for i in range(node.num_outputs):
                found[Entry(node, i)] = Entry(made, i)
                builder.record(Entry(made, i), graph.shape(Entry(node, i)), graph.dtype(Entry(node, i)))
    return [found[e] for e in graph.outputs]


def _check_test(test: Graph | None) -> None:
    assert test is not None
    shape = test.shape(test.outputs[0])
    if math.prod(shape) != 1:
        raise MXNetError(f"its condition has the shape {shape}; expected one element")
