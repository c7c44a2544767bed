"""The loop of the passes, which MXNet's three operators of control flow become: `_mxc_loop`.

    states = the states at first
    for step in range(length), or backwards where `is_reversed`:
        if there is a test and it is 0: leave the loop where it `stops`, else go on with the next step
        outputs[step], states = body(slices of the data at step, states, what is read whole)
    outputs of steps that were not taken are 0

The gradient of a loop is a loop (`passes/loop_gradient.py`).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape
from mxc.compiler.ops.operator import InputSpec, Kind, Operator, Params


@dataclass(frozen=True)
class LoopForm:
    """What a loop is. body: a graph with facts, whose outputs are those that are stacked, then the new states.
    variables: what stands for the inputs of a step, in body and test: `data` slices, then `states` states, then what is
    read whole; the graphs need not read all. test: a graph of one output of one element. is_reversed: whether the last
    step comes first. stops: whether a test of 0 ends the loop. streams: from how many streams of random numbers a step
    draws; if there are any, the last variable, which no graph reads, is seed and offset of the first step's."""

    body: Graph
    variables: Sequence[Node]
    data: int
    states: int
    length: int
    test: Graph | None = None
    is_reversed: bool = False
    stops: bool = True
    streams: int = 0

    @property
    def stacks(self) -> int:
        """How many outputs are stacked."""
        return len(self.body.outputs) - self.states


class LoopOperator(Operator):
    """The operator of one loop. Its inputs are the data, the states at first, and what is read whole; its outputs are
    the stacked ones, then the last states."""

    def __init__(self, form: LoopForm):
        count = len(form.body.outputs)
        super().__init__("_mxc_loop", Kind.OPAQUE, tuple(InputSpec(node.name) for node in form.variables),
                         outputs=("output",) if count == 1 else tuple(f"output{i}" for i in range(count)), grad={})
        self.form = form
        graph = form.body
        self.facts: list[tuple[Shape, str]] = [
            ((form.length, *graph.shape(e)) if i < form.stacks else graph.shape(e), graph.dtype(e))
            for i, e in enumerate(graph.outputs)]

    def watched_names(self, params: Params) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What a monitor is told: of the inputs what MXNet calls those of its operators, data0, data1, ..."""
        return tuple(f"data{i}" for i in range(len(self.inputs))), self.outputs

    def rule(self, role: str) -> Callable | None:
        """The rules of shape and dtype: the outputs' are known, and the inputs are as they were when it was made."""
        place = {"shape": 0, "dtype": 1}.get(role)
        return None if place is None else lambda params, ins, outs: (ins, [fact[place] for fact in self.facts])


def add_loop(builder: GraphBuilder, form: LoopForm, inputs: Sequence[Entry], name: str) -> list[Entry]:
    """A new node for a loop; all of its outputs."""
    op = LoopOperator(form)
    node = Node(op, name, inputs=inputs, subgraphs=[form.body, *([form.test] if form.test is not None else [])])
    return builder.place(node, [shape for shape, _ in op.facts], [dtype for _, dtype in op.facts])


def nodes_inside(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, and of the graphs inside of it."""
    for node in graph.nodes:
        yield node
        for inner in node.subgraphs:
            yield from nodes_inside(inner)


def slice_shape(shape: Shape) -> Shape:
    """The shape of a slice along axis 0; as in MXNet, that of an array with one axis is (1,)."""
    return shape[1:] or (1,)


def substituted(graph: Graph, new: Mapping[Node, Entry]) -> list[Entry]:
    """The outputs of a graph whose variables are replaced."""
    found: dict[Entry, Entry] = {Entry(node): entry for node, entry in new.items()}
    for node in graph.nodes:
        if node.is_variable:
            found.setdefault(Entry(node), Entry(node))
            continue
        inputs = [found[e] for e in node.inputs]
        made = node if inputs == node.inputs else Node(node.op, node.name, node.attrs, node.params, inputs,
                                                       node.subgraphs)
        found.update((Entry(node, i), Entry(made, i)) for i in range(node.num_outputs))
    return [found[e] for e in graph.outputs]
