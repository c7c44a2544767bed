"""A graph as a list of layers: what each makes, reads, learns and computes."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from mxc.compiler.graph.graph import Entry, Graph, Node, Shape
from mxc.compiler.ops.flops import flops
from mxc.compiler.ops.infer import is_complete


@dataclass(frozen=True)
class Layer:
    """One operator node, or an input of the graph (op: "null").

    outputs: shapes of the visible outputs; None: not known completely. parameters, states: elements of the learned
    arguments and of the auxiliary states that it is the first to read. flops: additions and multiplications of one
    forward run (mxc.compiler.ops.flops). These three are None where the shapes do not tell. previous: names of what it
    reads, parameters and states left out.
    """

    name: str
    op: str
    outputs: tuple[Shape | None, ...]
    parameters: int | None
    states: int | None
    flops: int | None
    previous: tuple[str, ...]


def layers(graph: Graph, shapes: Sequence[Sequence[Shape | None]],
           inputs: Collection[str] | None = None) -> list[Layer]:
    """The layers in topological order.

    shapes: of every node's outputs, by node id, as infer_shape gives them (None or 0: unknown). inputs: names of
    variables that are data and labels; None: all of them. What an operator reads as a parameter or as a
    state is never an input, and what is no input is a parameter.
    """
    states = {e.node for node in graph.nodes for e in node.states}
    learned = {e.node for node in graph.nodes if node.op for e in learned_inputs(node)}
    data = {node for node in graph.variables if node not in states and node not in learned
            and (inputs is None or node.name in inputs)}
    counted: set[Node] = set()

    def shape(entry: Entry) -> Shape | None:
        found = shapes[graph.ids[entry.node]][entry.index]
        return found if is_complete(found) else None

    def elements(entries: Sequence[Entry]) -> int | None:
        """Elements of the variables among `entries` that no earlier layer has read."""
        nodes = {e.node for e in entries if e.node.is_variable} - data - counted
        counted.update(nodes)
        return _sum([shape(Entry(node)) for node in nodes])

    made = []
    for node in graph.nodes:
        if node.op is None:
            if node in data:
                made.append(Layer(node.name, "null", (shape(Entry(node)),), 0, 0, 0, ()))
            continue
        ins, outs = [shape(e) for e in node.inputs], [shape(Entry(node, i)) for i in range(node.num_outputs)]
        known = [s for s in (*ins, *outs) if s is not None]
        work = None
        if len(known) == len(ins) + len(outs) and not node.subgraphs:  # what these do is not known here
            work = flops(node.op, node.params, known[:len(ins)], known[len(ins):])
        previous = tuple(e.node.name for e in node.inputs if not e.node.is_variable or e.node in data)
        visible = tuple(outs[:node.op.num_visible(node.params)])
        kept = elements(node.states)
        made.append(Layer(node.name, node.op.name, visible, elements(node.inputs), kept, work, previous))
    return made


def learned_inputs(node: Node) -> list[Entry]:
    """The inputs of an operator node that the table calls parameters."""
    assert node.op is not None
    names = node.op.all_names(node.params)
    return [e for name, e in zip(names, node.inputs, strict=True) if name in node.op.parameters]


def _sum(found: Sequence[Shape | None]) -> int | None:
    known = [prod(s) for s in found if s is not None]
    return sum(known) if len(known) == len(found) else None
