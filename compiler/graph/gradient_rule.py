"""What a gradient rule works with.

A rule is `def NAME(g) -> list[Entry | None]`, what flows into each input (auxiliary states left out), where `g` is a
`Gradient`; a rule that updates auxiliary states is `def NAME(g)`, the new value of each.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count as count_from
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node
from mxc.compiler.ops.backward_operator import backward_of
from mxc.compiler.ops.expr import names_of
from mxc.compiler.ops.operator import Kind, Operator, Params
from mxc.compiler.ops.shapes import reduced_shape

Shape = tuple[int, ...]
Rule = Callable[["Gradient"], list[Entry | None]]
_IGNORED: dict[Rule, str] = {}
_LOSSES: set[Rule] = set()


def loss(rule: Rule) -> Rule:
    """Mark a gradient rule of an operator that begins a gradient of its own, whatever flows into its outputs."""
    _LOSSES.add(rule)
    return rule


def is_loss(op: Operator) -> bool:
    """Whether the operator's gradient rule is marked as a loss."""
    return op.rule("grad") in _LOSSES


def ignores(name: str) -> Callable[[Rule], Rule]:
    """Mark a gradient rule under which nothing flows into the input `name`."""
    def mark(rule: Rule) -> Rule:
        _IGNORED[rule] = name
        return rule

    return mark


def flows_into(node: Node, position: int) -> bool:
    """Whether a gradient can flow through `node` into its input at `position`."""
    if node.op is None or node.op.grad == "none":
        return False
    rule = node.op.rule("grad")
    names = node.op.input_names(node.params)
    return rule is None or position >= len(names) or names[position] != _IGNORED.get(rule)


def leading(graph: Graph, wanted: Sequence[Node]) -> set[Node]:
    """The wanted variables, and the nodes whose gradients lead to one."""
    def has_elements(node: Node) -> bool:
        return any(0 not in graph.shape(Entry(node, i)) for i in range(node.num_outputs))

    leads = {node for node in wanted if has_elements(node)}
    for node in graph.nodes:
        if has_elements(node) and any(e.node in leads and flows_into(node, i) for i, e in enumerate(node.inputs)):
            leads.add(node)
    return leads

def zeros(builder: GraphBuilder, entry: Entry, name: str) -> Entry:
    """Zeros of an entry's shape and dtype."""
    shape = builder.shape(entry)
    if 0 in shape:  # An operator without inputs would take the 0 for an unknown dimension.
        return builder.make("zeros_like", entry, name=name)
    return builder.make("_zeros", name=name, shape=shape, dtype=builder.dtype(entry))


class Gradient:
    """One node whose gradient is asked for.

    builder: where new nodes are made (`make` names them after the node). inputs: the node's entries without auxiliary
    states, which are `aux`. outputs: all of the node's entries, hidden ones too. out_grads: what flows into each
    output; None where nothing does. asked: for each input, whether its gradient is needed. is_train: whether the
    forward pass is in training mode. again: whether the gradient is to be differentiated itself, so that it must be
    made of entries through which everything flows back: a loss's outputs, or a normalisation's statistics, do not
    qualify. label: what follows the node's name in the names of nodes made here.
    """

    def __init__(self, builder: GraphBuilder, node: Node, out_grads: Sequence[Entry | None], asked: Sequence[bool],
                 is_train: bool, again: bool = False):
        assert node.op is not None
        states = node.op.states(node.params)
        count = len(node.inputs) - (states.stop - states.start)
        self.builder, self.node = builder, node
        self.inputs = [*node.inputs[:states.start], *node.inputs[states.stop:]]
        self.aux = node.inputs[states]
        self.outputs = [Entry(node, i) for i in range(node.num_outputs)]
        self.out_grads, self.asked, self.is_train = list(out_grads), list(asked[:count]), is_train
        self.again, self.label, self._stem, self._numbers = again, "backward", node.name, count_from(1)

    @property
    def params(self) -> Params:
        return self.node.params

    @property
    def og(self) -> Entry:
        """What flows into the first output; zeros where nothing does."""
        return self.grad(0)

    def grad(self, index: int) -> Entry:
        """What flows into output `index`; zeros where nothing does."""
        found, out = self.out_grads[index], self.outputs[index]
        if found is None:
            return zeros(self.builder, out, self._new_name())
        return found

    def shape(self, entry: Entry) -> Shape:
        return self.builder.shape(entry)

    def dtype(self, entry: Entry) -> str:
        return self.builder.dtype(entry)

    def make(self, op: str, *inputs: Entry, **params: object) -> Entry:
        """The first output of a new node of operator `op`."""
        return self.builder.make(op, *inputs, name=self._new_name(), **params)

    def of_part(self, part: Node, outputs: Sequence[Entry], asked: Sequence[bool]) -> Gradient:
        """The `Gradient` of a node that this one is made of; nothing flows into its outputs yet. outputs: entries that
        have the values of the part's outputs. New nodes are named as if they were made for this node."""
        made = Gradient(self.builder, part, [None] * len(outputs), asked, self.is_train, self.again)
        made.outputs, made.label, made._stem, made._numbers = list(outputs), self.label, self._stem, self._numbers
        return made

    def _new_name(self) -> str:
        return f"{self._stem}_{self.label}{next(self._numbers)}"

    def sum_to(self, entry: Entry, shape: Shape) -> Entry:
        """`entry` summed over what broadcasting `shape` to its shape had repeated."""
        have = self.shape(entry)
        lead = len(have) - len(shape)
        axes = tuple(i for i, dim in enumerate(have) if i < lead or (shape[i - lead] == 1 and dim != 1))
        if axes:
            entry = self.make("sum", entry, axis=axes, keepdims=True)
        return as_shape(self.builder, entry, shape)

    def broadcast_to(self, entry: Entry, shape: Shape) -> Entry:
        """`entry` repeated along its axes of length 1 to `shape`."""
        return entry if self.shape(entry) == tuple(shape) else self.make("broadcast_to", entry, shape=shape)

    def scaled(self, entry: Entry, factor: float) -> Entry:
        """`entry` times a number."""
        return entry if factor == 1.0 else self.make("_mul_scalar", entry, scalar=float(factor))

    def by_formula(self) -> list[Entry | None]:
        """What flows into each input by the formulas of the operator table.

        Raises MXNetError for an operator that has none.
        """
        op = self.node.op
        assert op is not None
        if not op.differentiable:
            if op.name.startswith(("_mxc_", "_backward_")):
                raise MXNetError(f"{self.node!r} is part of an operator's gradient and has no derivative: that "
                                 "gradient cannot be differentiated again (create_graph)")
            raise MXNetError(f"{self.node!r} has no gradient, and one was asked for: {op.no_gradient}")
        backs: list[Entry | None] = []
        if op.sums:  # Such an operator may have thousands of inputs.
            return [self.og if asked else None for asked in self.asked]
        for name, entry, asked in zip(op.input_names(self.params), self.inputs, self.asked, strict=True):
            backs.append(self._backward(op, name, entry) if asked else None)
        return backs

    def _backward(self, op: Operator, name: str, entry: Entry) -> Entry | None:
        """The generated `_backward_<op>` operator of one input, summed or repeated to the input's shape."""
        made, takes = backward_of(op, name)
        if made.name == "zeros_like":
            return None
        values = dict(zip(op.input_names(self.params), self.inputs, strict=True))
        values |= {"og": self.og, "out": self.outputs[0]}
        params = dict(self.params)
        if op.kind == Kind.REDUCTION:
            kept = reduced_shape(self.params, self.shape(entry), keepdims=True)
            params["count"] = prod(self.shape(entry)) / prod(kept)
            for reduced in ("og", "out"):
                if reduced in takes:
                    values[reduced] = as_shape(self.builder, values[reduced], kept)
        if made.name == "_copy":
            back = values["og"]
        else:
            chosen = Params({k: params[k] for k in made.params})
            text = made.expression(chosen)
            assert text is not None
            # An entry that the chosen formula does not read need not stay alive: og, of the same shape, replaces it.
            used = [values[k] if name in names_of(text) else values["og"]
                    for name, k in zip(made.input_names(chosen), takes, strict=True)]
            node = Node(made, self._new_name(), None, chosen, used)
            back = self.builder.add(node)[0]
        if op.kind == Kind.REDUCTION:
            return self.broadcast_to(back, self.shape(entry))
        return self.sum_to(back, self.shape(entry))
