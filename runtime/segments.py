"""Graphs on arrays of any storage types: dense stretches as compiled plans, all else operator by operator.

What reads or makes arrays that are kept in parts is called as eager operators are; what lies between is a `CachedOp`.
The stretches follow each other: what needs a result of such an operator comes after it. In the tape each is a step.
"""
from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops.storage import DEFAULT
from mxc.compiler.passes.infer_storage import infer_storage, kept_in_parts
from mxc.runtime import node_calls, tape
from mxc.runtime.array import Array
from mxc.runtime.cached_op import CachedOp, Watch
from mxc.runtime.tape import Leaf

Step = tuple[CachedOp, list[Entry], list[Entry]] | Node  # a plan with what it reads and makes, or an operator


class SegmentedOp:
    """A graph as an operator on arrays. inputs: names of the variables, in the order in which calls give their arrays.
    name: for people."""

    def __init__(self, graph: Graph, inputs: Sequence[str], name: str = "segmented_op"):
        self.graph, self.inputs, self.name = graph, tuple(inputs), name
        self._steps: dict[Hashable, list[Step]] = {}

    def __call__(self, arrays: Sequence[Array], is_train: bool | None = None,
                 watch: Watch | None = None) -> list[Array]:
        """The outputs of the graph on `arrays`; recorded when the thread records.

        is_train: None for this thread's mode. watch: is told every operator's node with its inputs and outputs; all run
        one by one then. Raises MXNetError when the arrays do not fit the graph.
        """
        train = tape.state.training if is_train is None else is_train
        given = dict(zip(self.inputs, arrays, strict=True))
        values = {Entry(node): given[node.name] for node in self.graph.variables}
        steps = self._steps_of(given) if watch is None else [n for n in self.graph.nodes if not n.is_variable]
        for step in steps:
            if isinstance(step, Node):
                inputs = [values[entry] for entry in step.inputs]
                made = node_calls.apply(step, inputs, train)
                values.update((Entry(step, i), array) for i, array in enumerate(made))
                if watch is not None:
                    watch(step, inputs, made)
            else:
                op, read, sought = step
                values.update(zip(sought, op([values[entry] for entry in read], train), strict=True))
        return [values[entry] for entry in self.graph.outputs]

    def _steps_of(self, given: Mapping[str, Array]) -> list[Step]:
        """The steps for arrays of these storage types, of which some have gradients that are kept in parts: what reads
        those is called by itself, so that its gradient may be, too."""
        stypes = {name: array.stype for name, array in given.items()}
        sparse = frozenset(name for name, array in given.items() if tape.state.recording
                           and _has_parts(tape.leaf_of(array)))
        key = tuple(stypes.values()), sparse
        if key not in self._steps:
            apart = kept_in_parts(self.graph, infer_storage(self.graph, stypes))
            apart |= {node for node in self.graph.nodes if any(e.node.name in sparse for e in node.inputs
                                                               if e.node.is_variable)}
            self._steps[key] = _steps(self.graph, apart, self.name)
        return self._steps[key]


def _has_parts(leaf: Leaf | None) -> bool:
    return leaf is not None and leaf.grad is not None and leaf.grad.stype != DEFAULT


def _steps(graph: Graph, apart: set[Node], name: str) -> list[Step]:
    """The stretches of a graph, and the operators `apart`, in an order in which they can run."""
    for node in apart:
        if node.subgraphs:
            raise MXNetError(f"{node!r} takes dense arrays: it runs graphs of its own")
    stage: dict[Node, int] = {}
    for node in graph.nodes:
        behind = [stage[e.node] + (e.node in apart and node not in apart) for e in node.inputs]
        stage[node] = max(behind, default=0)
    steps: list[Step] = []
    for number in range(max(stage.values(), default=-1) + 1):
        here = [node for node in graph.nodes if stage[node] == number and not node.is_variable]
        dense = [node for node in here if node not in apart]
        if dense:
            steps.append(stretch(graph, dense, f"{name}_{number}"))
        steps += [node for node in here if node in apart]
    return steps


def stretch(graph: Graph, nodes: Sequence[Node], name: str) -> tuple[CachedOp, list[Entry], list[Entry]]:
    """Nodes of a graph as one op, what it reads, and what it makes: all that others read."""
    inside = {*nodes}
    wanted = {entry for node in graph.nodes if node not in inside for entry in node.inputs} | {*graph.outputs}
    sought = [Entry(node, i) for node in nodes for i in range(node.num_outputs) if Entry(node, i) in wanted]
    copies: dict[Node, Node] = {}
    read: dict[Entry, Node] = {}

    def at(entry: Entry) -> Entry:
        if entry.node in copies:
            return Entry(copies[entry.node], entry.index)
        if entry not in read:
            variable = entry.node
            read[entry] = variable if variable.is_variable else Node(None, f"{name}_value{len(read)}")
        return Entry(read[entry])

    for node in nodes:
        copies[node] = Node(node.op, node.name, node.attrs, node.params, [at(e) for e in node.inputs], node.subgraphs)
    made = Graph([at(entry) for entry in sought])
    return CachedOp(made, [variable.name for variable in read.values()], name=name), list(read), sought
