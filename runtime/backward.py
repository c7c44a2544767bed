"""Gradients of what the tape recorded: the compiler's gradient pass over the tape, its nodes run one by one.

What the pass made is a `_Program`, remembered by the structure of the recorded graph. Where all of its operators are
small, the program is one piece of the engine's work: NumPy's functions, one after another.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.graph.names import head_position
from mxc.compiler.ops import table
from mxc.compiler.ops.dtypes import ones
from mxc.compiler.ops.storage import DEFAULT
from mxc.compiler.passes.gradient import differentiate
from mxc.compiler.passes.infer_storage import dense_instead, infer_storage, kept_in_parts
from mxc.compiler.system.forks import Lock
from mxc.runtime import custom, engine, invoke, node_calls, specializations, tape
from mxc.runtime.array import Array
from mxc.runtime.bundle import Bundle, ValuePlace, bundle_of
from mxc.runtime.cached_op import CachedBackward
from mxc.runtime.device_copy import DeviceCopy, record_copy
from mxc.runtime.gradient_plans import GradientPlan, forget_memory
from mxc.runtime.python_gradients import HostBackward, HostOperator
from mxc.runtime.tape import Leaf, Recorded, RecordedOperator

PROGRAMS_KEPT = 256
# operators that run in ways of their own: no plan has one
OTHERS = HostBackward, custom.CustomBackward, CachedBackward, DeviceCopy
FEW = 2  # nodes; fewer that follow each other cost less one by one than as a plan
_in_order = attrgetter("number")


class _Program:
    """How the gradients of a recorded graph are computed.

    made: the nodes of the gradients, without their inputs, and the places of these. first: the position of the first
    one. sought: what is wanted: kind ("grad" or "aux"), position of the leaf, and place of the value. bundle: the
    program as one piece of work; None where an operator is not small. plans: stretches of the nodes that may be
    compiled: the position of the first, that behind the last, and the plan. uses: how often each place is read. alone:
    positions of nodes that no plan has, for they read or make arrays that are kept in parts.
    """

    def __init__(self, made: list[tuple[Node, list[ValuePlace]]], sought: list[tuple[str, int, ValuePlace]],
                 first: int, alone: frozenset[int]):
        self.made, self.sought, self.first, self.alone = made, sought, first, alone
        self.uses = Counter([*(place for _, inputs in made for place in inputs), *(place for _, _, place in sought)])
        self.bundle: Bundle | None = None
        self.plans: dict[int, tuple[int, GradientPlan]] = {}

    def may_compile(self) -> None:
        """Have a plan for each stretch of nodes that are operators of the table."""
        start = self.first
        for position, (node, _) in enumerate([*self.made, (None, [])], self.first):
            if node is None or isinstance(node.op, OTHERS) or position in self.alone:
                if position - start >= FEW:
                    self.plans[start] = position, self._plan(start, position)
                start = position + 1

    def _plan(self, start: int, end: int) -> GradientPlan:
        made = self.made[start - self.first:end - self.first]
        inside = Counter(place for _, inputs in made for place in inputs)
        sought = [place for place, count in self.uses.items() if start <= place[0] < end and count > inside[place]]
        return GradientPlan(made, start, sought)


_programs: dict[Hashable, _Program] = {}
_lock = Lock()


def backward(heads: Sequence[Array], head_grads: Sequence[Array | None], retain: bool, is_train: bool) -> None:
    """Write the gradients of `heads` to every marked array that they lead to, as its request says.

    head_grads: None for ones. retain: whether the graph is kept for another call.
    Raises MXNetError for a head that is in no graph, and when nothing marked is reached.
    """
    nodes = _recorded(heads)
    leaves = [node for node in nodes if isinstance(node, Leaf) and node.request != "null"]
    if not leaves:
        raise MXNetError("There are no inputs in computation graph that require gradients: call attach_grad() on an "
                         "array before it is used, with a grad_req other than 'null'")
    with tape.mode(False, is_train):
        _differentiate(nodes, leaves, heads, head_grads, is_train, [leaf.grad for leaf in leaves])
    for leaf in leaves:
        leaf.fresh = True
    if not retain:
        _free(nodes)


def grad(heads: Sequence[Array], variables: Sequence[Array], head_grads: Sequence[Array | None], retain: bool,
         create_graph: bool, is_train: bool) -> list[Array]:
    """The gradients of `heads` with respect to marked arrays, as new arrays; with `create_graph` recorded themselves,
    as functions of every marked array that led to the heads, whether they depend on its values or not.

    Raises MXNetError as `backward`, and for a variable that is not marked or not reached.
    """
    nodes = _recorded(heads)
    reached, leaves = set(nodes), []
    for i, array in enumerate(variables):
        leaf = tape.leaf_of(array)
        if leaf is None:
            raise MXNetError(f"Cannot differentiate with respect to the {i + 1}-th variable because it does not "
                             "require gradient: call attach_grad() on it before it is used")
        if leaf not in reached:
            raise MXNetError(f"Cannot differentiate with respect to the {i + 1}-th variable because it is unreachable "
                             "from the outputs")
        leaves.append(leaf)
    with tape.mode(create_graph, is_train):
        values = _differentiate(nodes, leaves, heads, head_grads, is_train, None)
        if create_graph:
            flowing = [g for g in head_grads if g is not None and tape.entry_of(g) is not None]
            led = [node for node in _recorded([*heads, *flowing]) if isinstance(node, Leaf)]
            values = [_function_of(value, [leaf for leaf in led if leaf.grad is not None]) for value in values]
    if not (retain or create_graph):
        _free(nodes)
    return values


def _function_of(value: Array, marked: Iterable[Leaf]) -> Array:
    """The value, recorded as a function of these leaves: where it does not depend on one, its gradient is zeros."""
    reached = set() if tape.entry_of(value) is None else set(_recorded([value]))
    missing = [tape.at(Entry(leaf)) for leaf in marked if leaf not in reached]
    if not missing:
        return value
    op = table.get("_mxc_function_of")
    result = tape.plain(value)
    tape.record(op, op.make_params({"num_args": len(missing)}), [value, *missing], [result])
    return result


def graph_of(array: Array) -> Graph:
    """The graph that led to an array, its leaves as variables. Raises MXNetError when it is in none."""
    entry = tape.entry_of(array)
    if entry is None:
        raise MXNetError("NDArray is not part of a computation graph. Did you forget to turn on recording?")
    return Graph([entry])


def _recorded(heads: Sequence[Array]) -> list[Recorded]:
    """The nodes that lead to these outputs, in the order in which they were recorded."""
    stack: list[Recorded] = []
    for i, head in enumerate(heads):
        entry = tape.entry_of(head)
        if entry is None:
            raise MXNetError(f"Cannot differentiate node because it is not in a computational graph (head {i}). You "
                             "need to set is_recording to true or use autograd.record() to save computational graphs "
                             "for backward. If you want to differentiate the same graph twice, you need to pass "
                             "retain_graph=True to backward.")
        stack.append(entry.node)  # type: ignore[arg-type]  # the tape's nodes are its own
    nodes: set[Recorded] = set()
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            if not node.outputs:
                raise MXNetError(f"a part of the graph ({node!r}) was freed by an earlier call of backward; pass "
                                 "retain_graph=True to it")
            stack += [e.node for e in node.inputs]  # type: ignore[misc]
    return sorted(nodes, key=_in_order)


def _differentiate(nodes: list[Recorded], leaves: Sequence[Leaf], heads: Sequence[Array],
                   head_grads: Sequence[Array | None], is_train: bool,
                   targets: Sequence[Array | None] | None) -> list[Array]:
    """The gradients of heads: written, or added, to `targets`, of each leaf one, as the leaf asks; new arrays without
    them. They are those of what ran, in the mode in which it ran. Auxiliary states that training changes are written,
    if is_train."""
    changes = is_train
    is_train = is_train or any(isinstance(node, RecordedOperator) and node.is_train for node in nodes)
    program = _program_of(nodes, leaves, heads, is_train, tape.state.recording, changes)
    if program.bundle is not None and program.bundle.is_ready and engine.observer is None:
        return _run_bundle(program, program.bundle, nodes, leaves, heads, head_grads, targets)
    known = len(nodes)
    with tape.mode(tape.state.recording, is_train):
        flowing = _head_values(heads, head_grads)
        values = _run(program, nodes, flowing, is_train, _direct(program, nodes, flowing, leaves, targets))
    found: dict[Node, Array] = {}
    for kind, position, place in program.sought:
        if kind == "grad":
            value = values[place]
            where = nodes[position].outputs[0].context.computing
            if place[0] < known + len(heads) or value.context != where:  # the caller's own, on the variable's device
                value = record_copy(value, value.copied(context=where))
            found[nodes[position]] = value
    for kind, position, place in program.sought:
        if kind == "aux":
            nodes[position].outputs[0].copy_from(values[place])
    return [_delivered(leaf, found[leaf], target) for leaf, target in _with_targets(leaves, targets)]


def _with_targets(leaves: Sequence[Leaf], targets: Sequence[Array | None] | None) -> list[tuple[Leaf, Array | None]]:
    return list(zip(leaves, targets or [None] * len(leaves), strict=True))


def _delivered(leaf: Leaf, value: Array, target: Array | None) -> Array:
    """The gradient of a leaf, brought to its target, if it has one, as the leaf asks."""
    if target is None or target.identity is value.identity:
        return value
    if leaf.request == "add" and value.size:
        invoke.invoke("elemwise_add", [target, value], {}, [target])
    else:
        target.copy_from(value)
    return value


def _run_bundle(program: _Program, bundle: Bundle, nodes: list[Recorded], leaves: Sequence[Leaf],
                heads: Sequence[Array], head_grads: Sequence[Array | None],
                targets: Sequence[Array | None] | None) -> list[Array]:
    """What `_differentiate` does, as one piece of work."""
    flowing = _flowing(heads, head_grads)
    positions = {leaf: i for i, leaf in enumerate(leaves)}
    results = [Array.empty(leaf.outputs[0].shape, leaf.outputs[0].dtype, leaf.outputs[0].context.computing)
               if target is None else target for leaf, target in _with_targets(leaves, targets)]
    written: list[tuple[Array, bool]] = []
    for kind, position, _ in program.sought:
        node = nodes[position]
        assert isinstance(node, Leaf)
        if kind == "grad":
            written.append((results[positions[node]], targets is not None and node.request == "add"))
        else:
            written.append((node.outputs[0], False))
    bundle.run(nodes, heads, flowing, written)
    return results


def _program_of(nodes: list[Recorded], leaves: Sequence[Leaf], heads: Sequence[Array], is_train: bool,
                again: bool, changes: bool) -> _Program:
    """How the gradients of a graph are computed; remembered for graphs of the same structure, as a loop makes them.

    again: whether they are to be differentiated themselves. changes: whether auxiliary states are to change.
    """
    wanted, places, alike = set(leaves), {}, dict[int, int]()
    structure: list[Hashable] = [is_train, again, changes]
    for position, node in enumerate(nodes):
        places[node] = position
        if isinstance(node, RecordedOperator):
            if node.key is not None:
                structure.append(node.key)
            elif isinstance(node.op, (HostOperator, custom.CustomOperator)):
                # the operator was made for one use
                return _made_program(nodes, leaves, heads, is_train, again, changes)
            else:
                structure.append((node.op, node.params, node.is_train))
            for below, index in node.inputs:
                structure += (places[below], index)  # type: ignore[index]
        else:
            array = node.outputs[0]
            first = alike.setdefault(id(array.identity), position)  # leaves of one array: see `_name_states`
            kept = array.stype, None if node.grad is None else node.grad.stype  # type: ignore[attr-defined]  # a leaf
            structure.append((array.shape, array.dtype, kept, node in wanted, first))
    for head in heads:
        assert head.entry is not None
        structure += (places[head.entry.node], head.entry.index)  # type: ignore[index]
    key = tuple(structure)
    program = _programs.get(key)
    if program is None:
        with _lock:  # threads that train at once share the program, and its plans
            program = _programs.get(key)
            if program is None:
                if len(_programs) >= PROGRAMS_KEPT:
                    _programs.clear()
                    forget_memory()
                program = _programs[key] = _made_program(nodes, leaves, heads, is_train, again, changes)
    return program


def _made_program(nodes: list[Recorded], leaves: Sequence[Leaf], heads: Sequence[Array], is_train: bool,
                  again: bool, changes: bool) -> _Program:
    _name_states(nodes)
    graph = Graph([head.entry for head in heads if head.entry is not None])
    for node in graph.nodes:
        assert isinstance(node, Recorded)
        graph.facts.shape.append([a.shape for a in node.outputs])
        graph.facts.dtype.append([a.dtype for a in node.outputs])
    inferring = frozenset(node for node in graph.nodes if isinstance(node, RecordedOperator) and not node.is_train)
    joint = differentiate(graph, {leaf.name: "write" for leaf in leaves}, is_train, inferring, again)
    apart = _in_parts(nodes, joint, leaves)
    places: dict[Node, int] = {node: position for position, node in enumerate(nodes)}
    own, named = len(graph.outputs), {node.name: places[node] for node in graph.variables}
    made: list[tuple[Node, list[ValuePlace]]] = []
    specials = []
    for node in joint.nodes:
        if node in places:
            continue
        if node.op is None:
            places[node] = len(nodes) + head_position(node.name)
        else:
            places[node] = len(nodes) + own + len(made)
            made.append((Node(node.op, node.name, None, node.params), [(places[e.node], e.index) for e in node.inputs]))
            if not isinstance(node.op, OTHERS):
                specials.append(specializations.special_of(made[-1][0], tuple(joint.shape(e) for e in node.inputs),
                                                  tuple(joint.dtype(e) for e in node.inputs), is_train))
    sought = [(sink.kind, named[sink.name], (places[entry.node], entry.index))
              for sink, entry in zip(joint.sinks[own:], joint.outputs[own:], strict=True)
              if changes or sink.kind == "grad"]
    program = _Program(made, sought, len(nodes) + own, frozenset(places[node] for node in apart))
    if not again:
        if len(specials) == len(made) and not apart and not any(
                leaf.grad is not None and leaf.grad.stype != DEFAULT for leaf in leaves):
            program.bundle = bundle_of(specials, [inputs for _, inputs in made], len(nodes), own,
                                       [place for _, _, place in sought])
        program.may_compile()
    return program


def _in_parts(nodes: list[Recorded], joint: Graph, leaves: Sequence[Leaf]) -> set[Node]:
    """Those of the new nodes that read or make arrays that are kept in parts. None makes one that no gradient needs
    which is to be kept so."""
    known = {node: [array.stype for array in node.outputs] for node in nodes}
    found = infer_storage(joint, {}, known)
    if not kept_in_parts(joint, found):
        return set()
    kept = {leaf.name for leaf in leaves if leaf.grad is not None and leaf.grad.stype != DEFAULT}
    sought = [entry for sink, entry in zip(joint.sinks, joint.outputs, strict=True)
              if sink.kind == "grad" and sink.name in kept]
    for node, params in dense_instead(joint, found, sought).items():
        if node not in known:
            node.params = params
    return kept_in_parts(joint, infer_storage(joint, {}, known)).difference(nodes)


def _name_states(nodes: list[Recorded]) -> None:
    """Give all leaves of an array whose gradient nobody asked for one name: each operator that reads it has a leaf of
    its own, and the gradient pass knows by the name that several operators change one auxiliary state."""
    names: dict[int, str] = {}
    for node in nodes:
        if isinstance(node, Leaf) and node.request == "null":
            node.name = names.setdefault(id(node.outputs[0].identity), node.name)


def _fitting(i: int, head: Array, value: Array) -> Array:
    """What flows into head i, of its dtype. Raises MXNetError for another shape."""
    if value.shape != head.shape:
        raise MXNetError(f"the head gradient {i} has the shape {value.shape}; its head has {head.shape}")
    return value if value.dtype == head.dtype else invoke.invoke("Cast", [value], {"dtype": head.dtype})[0]


def _flowing(heads: Sequence[Array], head_grads: Sequence[Array | None]) -> list[Array | None]:
    """The gradient of each head; None for ones."""
    return [None if value is None else _fitting(i, head, value)
            for i, (head, value) in enumerate(zip(heads, head_grads, strict=True))]


def _head_values(heads: Sequence[Array], head_grads: Sequence[Array | None]) -> list[Array]:
    """What flows into each output: ones where nothing is given."""
    return [Array.of(ones(head.shape, head.dtype), context=head.context) if value is None else value
            for head, value in zip(heads, _flowing(heads, head_grads), strict=True)]


def _direct(program: _Program, nodes: list[Recorded], flowing: Sequence[Array], leaves: Sequence[Leaf],
            targets: Sequence[Array | None] | None) -> dict[ValuePlace, Array]:
    """Where gradients can go that a plan makes: a target that is written, with nothing else's part, and read by
    nobody. flowing: the gradient of each head."""
    known = {leaf: target for leaf, target in zip(leaves, targets or (), strict=False) if leaf.request == "write"}
    found: dict[ValuePlace, Array] = {}
    read = {nodes[position].outputs[index].variable for position, index in program.uses if position < len(nodes)}
    read.update(array.variable for array in flowing)
    for kind, position, place in program.sought if known else ():
        target = known.get(nodes[position])  # type: ignore[call-overload]
        if (kind == "grad" and target is not None and target.stype == DEFAULT and program.uses[place] == 1
                and place[0] >= program.first and target.variable not in read):
            found[place] = target
    return found


def _run(program: _Program, nodes: list[Recorded], heads: Sequence[Array], is_train: bool,
         direct: dict[ValuePlace, Array]) -> dict[ValuePlace, Array]:
    """The values of a program; recorded ones are known, others go as soon as nobody needs them. direct: arrays for
    values that a plan makes."""
    first, uses = len(nodes), dict(program.uses)
    values: dict[ValuePlace, Array] = {}
    for position, index in uses:
        if position < first:
            values[position, index] = tape.at(Entry(nodes[position], index))
        elif position < program.first:
            values[position, index] = heads[position - first]

    def note(made: Iterable[tuple[ValuePlace, Array]], read: Iterable[ValuePlace]) -> None:
        values.update((place, value) for place, value in made if place in uses)
        for place in read:
            uses[place] -= 1
            if not uses[place]:
                values.pop(place, None)

    position, end = program.first, program.first + len(program.made)
    while position < end:
        stretch = program.plans.get(position)
        if stretch is not None and engine.observer is None and stretch[1].is_due:
            after, plan = stretch
            try:
                made = plan.run(values, is_train, direct)
            except MXNetError:  # no plan can be made; or an input is wrong, which running by operators tells as well
                program.plans.pop(position, None)  # another thread may have done so
                continue
            note(zip(plan.sought, made, strict=True), plan.reads)
            position = after
            continue
        node, inputs = program.made[position - program.first]
        given = [values[place] for place in inputs]
        if isinstance(node.op, (CachedBackward, custom.CustomBackward)):
            given = [node_calls.densified(array) for array in given]
        if isinstance(node.op, CachedBackward):
            step, count = nodes[inputs[-1][0]], node.num_outputs
            assert isinstance(step, RecordedOperator)
            made = node.op.call(step.kept, given, [direct.get((position, i)) for i in range(count)])
        else:
            made = _apply(node, given)
        note((((position, i), value) for i, value in enumerate(made)), inputs)
        position += 1
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
    if isinstance(node.op, DeviceCopy):
        return node.op.call(inputs)
    return node_calls.apply(node, inputs)


def _free(nodes: list[Recorded]) -> None:
    for node in nodes:
        node.free()
