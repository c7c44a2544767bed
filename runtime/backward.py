"""Gradients of what was recorded: the compiler's gradient pass over the tape, its nodes run one by one."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.passes.gradient import HEAD, differentiate
from mxc.runtime import custom, invoke, tape
from mxc.runtime.array import Array
from mxc.runtime.host import HostBackward
from mxc.runtime.tape import Leaf, Step


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
    inferring = frozenset(node for node in graph.nodes if isinstance(node, Step) and not node.is_train)
    joint = differentiate(graph, {leaf.name: "write" for leaf in leaves}, is_train, inferring)
    own = len(graph.outputs)
    sought = dict(zip(joint.sinks[own:], joint.outputs[own:], strict=True))
    values = _run(joint, list(sought.values()), _head_values(graph, heads, head_grads))
    found = {}
    for sink, entry in sought.items():
        if sink.kind == "grad":
            value = values[entry]
            if entry.node.name.startswith(HEAD) or isinstance(entry.node, (Leaf, Step)):
                value = invoke.invoke("_copy", [value], {})[0]  # a gradient is the caller's own
            found[sink.name] = value
    states = {node.name: node for node in graph.variables}
    for sink, entry in sought.items():
        if sink.kind == "aux":
            leaf = states[sink.name]
            assert isinstance(leaf, Leaf)
            leaf.outputs[0].copy_from(values[entry])
    return [found[leaf.name] for leaf in leaves]


def _head_values(graph: Graph, heads: Sequence[Array], head_grads: Sequence[Array | None]) -> dict[str, Array]:
    """What flows into each output, by the name of its variable: ones where nothing is given."""
    values = {}
    for i, (head, value) in enumerate(zip(heads, head_grads, strict=True)):
        if value is None:
            value = invoke.invoke("_ones", [], {"shape": head.shape, "dtype": head.dtype}, context=head.context)[0]
        elif value.shape != head.shape:
            raise MXNetError(f"the head gradient {i} has the shape {value.shape}; its head has {head.shape}")
        elif value.dtype != head.dtype:
            value = invoke.invoke("Cast", [value], {"dtype": head.dtype})[0]
        values[f"{HEAD}{i}"] = value
    return values


def _run(joint: Graph, wanted: Sequence[Entry], heads: dict[str, Array]) -> dict[Entry, Array]:
    """The values of entries of a joint graph; recorded ones are known, others go as soon as nobody needs them."""
    uses = Counter(entry for node in joint.nodes if _is_new(node) for entry in node.inputs)
    uses.update(wanted)
    values: dict[Entry, Array] = {}
    for node in joint.nodes:
        if not _is_new(node):
            for i in range(node.num_outputs):
                entry = Entry(node, i)
                if uses[entry]:
                    values[entry] = heads[node.name] if node.name in heads else tape.at(entry)
            continue
        inputs = [values[entry] for entry in node.inputs]
        for i, value in enumerate(_apply(node, inputs)):
            if uses[Entry(node, i)]:
                values[Entry(node, i)] = value
        for entry in node.inputs:
            uses[entry] -= 1
            if not uses[entry]:
                values.pop(entry, None)
    return values


def _apply(node: Node, inputs: Sequence[Array]) -> list[Array]:
    """All outputs of a node; Python's own functions run unrecorded."""
    if isinstance(node.op, HostBackward):
        with tape.mode(False, tape.state.training):
            return node.op.call(inputs)
    if isinstance(node.op, custom.CustomBackward):
        return custom.apply(node, inputs)
    return invoke.apply(node, inputs)


def _is_new(node: Node) -> bool:
    """Whether a node of the joint graph was made by the gradient pass."""
    return node.op is not None and not isinstance(node, Step)


def _free(graph: Graph) -> None:
    for node in graph.nodes:
        assert isinstance(node, (Leaf, Step))
        node.free()
