"""Gradients of what was recorded: the compiler's gradient pass over the tape, its nodes run one by one."""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.passes.gradient import HEAD, differentiate
from mxc.runtime import custom, invoke, tape
from mxc.runtime.array import Array
from mxc.runtime.host import HostBackward, HostOperator
from mxc.runtime.tape import Leaf, Step

PROGRAMS_KEPT = 256
Place = tuple[int, int]  # a node's position and an output of it: recorded nodes, then heads, then those made


class _Program:
    """made: the nodes of the gradients, without inputs, and where their inputs are. sought: what is wanted, as kind
    ("grad" or "aux"), position of the leaf, and place of the value. uses: how often each place is read."""

    def __init__(self, made: list[tuple[Node, list[Place]]], sought: list[tuple[str, int, Place]]):
        self.made, self.sought = made, sought
        self.uses = Counter([*(place for _, inputs in made for place in inputs), *(place for _, _, place in sought)])


_programs: dict[Hashable, _Program] = {}


def backward(heads: Sequence[Array], head_grads: Sequence[Array | None], retain: bool, is_train: bool) -> None:
    """Write the gradients of `heads` to every marked array that they lead to, as its request says.

    head_grads: None for ones. retain: whether the graph is kept for another call.
    Raises MXNetError for a head that is in no graph, and when nothing marked is reached.
    """
    graph = _graph_of(heads)
    leaves = [node for node in graph.variables if isinstance(node, Leaf) and node.request != "null"]
    if not leaves:
        raise MXNetError("There are no inputs in computation graph that require gradients: call attach_grad() on an "
                         "array before it is used, with a grad_req other than 'null'")
    with tape.mode(False, is_train):
        for leaf, value in zip(leaves, _gradients(graph, leaves, heads, head_grads, is_train), strict=True):
            assert leaf.grad is not None
            if leaf.request == "add":
                invoke.invoke("elemwise_add", [leaf.grad, value], {}, [leaf.grad])
            else:
                leaf.grad.copy_from(value)
    if not retain:
        _free(graph)


def grad(heads: Sequence[Array], variables: Sequence[Array], head_grads: Sequence[Array | None], retain: bool,
         create_graph: bool, is_train: bool) -> list[Array]:
    """The gradients of `heads` with respect to marked arrays, as new arrays; with `create_graph` recorded themselves.

    Raises MXNetError as `backward`, and for a variable that is not marked or not reached.
    """
    graph = _graph_of(heads)
    leaves = []
    for i, array in enumerate(variables):
        leaf = tape.leaf_of(array)
        if leaf is None:
            raise MXNetError(f"Cannot differentiate with respect to the {i + 1}-th variable because it does not "
                             "require gradient: call attach_grad() on it before it is used")
        if leaf not in graph.ids:
            raise MXNetError(f"Cannot differentiate with respect to the {i + 1}-th variable because it is unreachable "
                             "from the outputs")
        leaves.append(leaf)
    with tape.mode(create_graph, is_train):
        values = _gradients(graph, leaves, heads, head_grads, is_train)
    if not (retain or create_graph):
        _free(graph)
    return values


def graph_of(array: Array) -> Graph:
    """The graph that led to an array, its leaves as variables. Raises MXNetError when it is in none."""
    entry = tape.entry_of(array)
    if entry is None:
        raise MXNetError("NDArray is not part of a computation graph. Did you forget to turn on recording?")
    return Graph([entry])


def _graph_of(heads: Sequence[Array]) -> Graph:
    """The recorded graph of these outputs, with its facts."""
    entries: list[Entry] = []
    for i, head in enumerate(heads):
        entry = tape.entry_of(head)
        if entry is None:
            raise MXNetError(f"Cannot differentiate node because it is not in a computational graph (head {i}). You "
                             "need to set is_recording to true or use autograd.record() to save computational graphs "
                             "for backward. If you want to differentiate the same graph twice, you need to pass "
                             "retain_graph=True to backward.")
        entries.append(entry)
    graph = Graph(entries)
    for node in graph.nodes:
        assert isinstance(node, (Leaf, Step))
        if not node.outputs:
            raise MXNetError(f"a part of the graph ({node!r}) was freed by an earlier call of backward; pass "
                             "retain_graph=True to it")
        graph.facts.shape.append([a.shape for a in node.outputs])
        graph.facts.dtype.append([a.dtype for a in node.outputs])
    return graph


def _gradients(graph: Graph, leaves: Sequence[Leaf], heads: Sequence[Array], head_grads: Sequence[Array | None],
               is_train: bool) -> list[Array]:
    """New arrays with the gradients of the graph's outputs; auxiliary states that training changes are written."""
    program = _program_of(graph, leaves, is_train, tape.state.recording)
    known = len(graph.nodes)
    values = _run(program, graph, _head_values(heads, head_grads))
    found: dict[Node, Array] = {}
    for kind, position, place in program.sought:
        if kind == "grad":
            value = values[place]
            if place[0] < known + len(heads):
                value = invoke.invoke("_copy", [value], {})[0]  # a gradient is the caller's own
            found[graph.nodes[position]] = value
    for kind, position, place in program.sought:
        if kind == "aux":
            leaf = graph.nodes[position]
            assert isinstance(leaf, Leaf)
            leaf.outputs[0].copy_from(values[place])
    return [found[leaf] for leaf in leaves]


def _program_of(graph: Graph, leaves: Sequence[Leaf], is_train: bool, again: bool) -> _Program:
    """How the gradients of a graph are computed; remembered for graphs of the same structure, as a loop makes them.

    again: whether they are to be differentiated themselves.
    """
    wanted = set(leaves)
    structure = []
    for node in graph.nodes:
        assert isinstance(node, (Leaf, Step))
        if isinstance(node.op, (HostOperator, custom.CustomOperator)):
            return _made_program(graph, leaves, is_train, again)  # made for one use
        facts = tuple([(a.shape, a.dtype) for a in node.outputs])
        below = tuple([(graph.ids[e.node], e.index) for e in node.inputs])
        how = node.is_train if isinstance(node, Step) else node in wanted
        structure.append((node.op, node.params, facts, below, how))
    key = tuple(structure), tuple((graph.ids[e.node], e.index) for e in graph.outputs), is_train, again
    program = _programs.get(key)
    if program is None:
        if len(_programs) >= PROGRAMS_KEPT:
            _programs.clear()
        program = _programs[key] = _made_program(graph, leaves, is_train, again)
    return program


def _made_program(graph: Graph, leaves: Sequence[Leaf], is_train: bool, again: bool) -> _Program:
    inferring = frozenset(node for node in graph.nodes if isinstance(node, Step) and not node.is_train)
    joint = differentiate(graph, {leaf.name: "write" for leaf in leaves}, is_train, inferring, again)
    own, places = len(graph.outputs), dict(graph.ids)
    made: list[tuple[Node, list[Place]]] = []
    for node in joint.nodes:
        if node in places:
            continue
        if node.op is None:
            places[node] = len(graph.nodes) + int(node.name.removeprefix(HEAD))
        else:
            places[node] = len(graph.nodes) + own + len(made)
            made.append((Node(node.op, node.name, None, node.params), [(places[e.node], e.index) for e in node.inputs]))
    named = {node.name: position for position, node in enumerate(graph.nodes) if node.op is None}
    sought = [(sink.kind, named[sink.name], (places[entry.node], entry.index))
              for sink, entry in zip(joint.sinks[own:], joint.outputs[own:], strict=True)]
    return _Program(made, sought)


def _head_values(heads: Sequence[Array], head_grads: Sequence[Array | None]) -> list[Array]:
    """What flows into each output: ones where nothing is given."""
    values = []
    for i, (head, value) in enumerate(zip(heads, head_grads, strict=True)):
        if value is None:
            value = invoke.invoke("_ones", [], {"shape": head.shape, "dtype": head.dtype}, context=head.context)[0]
        elif value.shape != head.shape:
            raise MXNetError(f"the head gradient {i} has the shape {value.shape}; its head has {head.shape}")
        elif value.dtype != head.dtype:
            value = invoke.invoke("Cast", [value], {"dtype": head.dtype})[0]
        values.append(value)
    return values


def _run(program: _Program, graph: Graph, heads: Sequence[Array]) -> dict[Place, Array]:
    """The values of a program; recorded ones are known, others go as soon as nobody needs them."""
    first, uses = len(graph.nodes), dict(program.uses)
    values: dict[Place, Array] = {}
    for position, index in uses:
        if position < first:
            values[position, index] = tape.at(Entry(graph.nodes[position], index))
        elif position < first + len(heads):
            values[position, index] = heads[position - first]
    for position, (node, inputs) in enumerate(program.made, first + len(heads)):
        for i, value in enumerate(_apply(node, [values[place] for place in inputs])):
            if (position, i) in uses:
                values[position, i] = value
        for place in inputs:
            uses[place] -= 1
            if not uses[place]:
                del values[place]
    return values


def _apply(node: Node, inputs: Sequence[Array]) -> list[Array]:
    """All outputs of a node. Python's own functions run unrecorded; that they ran is recorded, to be refused when they
    are to be differentiated."""
    if isinstance(node.op, HostBackward):
        with tape.mode(False, tape.state.training):
            results = node.op.call(inputs)
        if tape.state.recording:
            tape.record(node.op, node.params, inputs, results)
        return results
    if isinstance(node.op, custom.CustomBackward):
        return custom.apply(node, inputs)
    return invoke.apply(node, inputs)


def _free(graph: Graph) -> None:
    for node in graph.nodes:
        assert isinstance(node, (Leaf, Step))
        node.free()
