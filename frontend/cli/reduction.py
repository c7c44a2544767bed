"""The smallest part of a model that fails a check as the whole does.

A part has some of the model's operators and one or more outputs. What it reads of operators that it lacks are inputs of
it, with the values that the reference interpreter has for them in the whole model. So a part is small as soon as the
fault is: nothing in front of it has to be kept.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mxc.cli.differences import judged
from mxc.cli.reference import Reference, draws_of
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.graph.names import free_name
from mxc.compiler.graph.purity import is_pure
from mxc.compiler.targets.reference.interpreter import Values

if TYPE_CHECKING:
    import numpy as np

Fails = Callable[["Part"], bool]
WRONG_OUTPUTS = "wrong outputs"


@dataclass
class Part:
    """Some operators of a model as a model of its own.

    graph: its graph. given: the values of its variables. cut: the names of those that stand for operators' outputs.
    draws: as in Reference, of its last run. values: those of its entries in the whole model.
    """

    graph: Graph
    given: Mapping[str, np.ndarray]
    cut: Collection[str]
    draws: Callable[[], Any]
    values: Values

    @cached_property
    def symbol(self) -> Any:
        """It as a Symbol."""
        from mxc.symbol import Symbol

        return Symbol(self.graph.outputs)

    @property
    def operators(self) -> list[Node]:
        """Its operators, in order."""
        return operators_of(self.graph)

    @cached_property
    def reference(self) -> Reference:
        """What its outputs should be."""
        made = Reference(self.graph, self.given, self.draws)
        if all(map(is_pure, self.graph.nodes)):  # else what is drawn depends on what else is drawn
            made.values = self.values
        return made

    def executor(self) -> Any:
        """It bound to its values, for inference."""
        import mxc as mx

        arrays = {name: mx.nd.array(value, dtype=value.dtype) for name, value in self.given.items()}
        states = self.symbol.list_auxiliary_states()
        return self.symbol.bind(mx.cpu(), {name: arrays[name] for name in self.symbol.list_arguments()},
                                grad_req="null", aux_states={name: arrays[name] for name in states})


def part_of(whole: Reference, kept: Collection[Node], outputs: Sequence[Entry]) -> Part:
    """The part with the operators `kept`, as far as the outputs need them."""
    names = {node.name for node in whole.graph.nodes}
    new: dict[Entry, Entry] = {}
    given: dict[str, np.ndarray] = {}
    cut: set[str] = set()

    def reads(entry: Entry) -> Entry:
        if entry not in new:
            name, attrs = entry.node.name, entry.node.attrs
            if entry.node.op is not None:
                name, attrs = output_name(entry), {}
                name = free_name(name, names) if name in names else name
                names.add(name)
                cut.add(name)
            given[name] = whole.values[entry]
            new[entry] = Entry(_typed(variable(name, attrs), given[name]))
        return new[entry]

    for node in whole.graph.nodes:
        if node in kept:
            inputs = [reads(e) for e in node.inputs]
            copy = Node(node.op, node.name, node.attrs, node.params, inputs, node.subgraphs)
            new.update({Entry(node, i): Entry(copy, i) for i in range(node.num_outputs)})
    graph = Graph([new[e] for e in outputs])
    given = {node.name: given[node.name] for node in graph.variables}
    return Part(graph, given, cut & given.keys(), whole.draws, {new[e]: whole.values[e] for e in new})


def _typed(made: Node, value: np.ndarray) -> Node:
    """The variable, which says shape and dtype of its value: nobody else does where that is cut off."""
    from mxc.symbol import Variable

    typed = Variable(made.name, shape=value.shape, dtype=value.dtype).entries[0].node
    made.attrs = {**made.attrs, **typed.attrs}
    return made


def outcome(part: Part, allowed: float | None) -> str:
    """How a part fails: WRONG_OUTPUTS, or the name of the error that it raises; empty when it does not.

    allowed: the tolerance; None: that of the dtype.
    """
    try:
        executor = part.executor()
        outputs = [output.asnumpy() for output in executor.forward(is_train=False)]
    except Exception as error:
        return type(error).__name__
    part.draws = draws_of(executor)
    right = all(judged("", "", output, part.reference, entry, allowed).right
                for output, entry in zip(outputs, part.graph.outputs, strict=True))
    return "" if right else WRONG_OUTPUTS


def reduce(whole: Reference, fails: Fails, told: Callable[[str], None]) -> Part | None:
    """The smallest part that fails and that single steps lead to; None when the whole model does not fail.

    fails: the check. told: is told how far it is.
    """
    parts = _Parts(whole, fails, told)
    wanted, kept = [e for e in whole.graph.outputs if e.node.op is not None], operators_of(whole.graph)
    best = parts.failing(kept, wanted)
    if best is None:
        return None
    alone = next((e for e in wanted if parts.failing(kept, [e]) is not None), None)
    if alone is not None:
        wanted = [first_wrong(kept, alone, lambda entry: parts.failing(kept, [entry]) is not None)]
    while True:
        kept = parts.fewer(_needed(kept, wanted), wanted)
        sooner = next((e for e in map(Entry, kept) if parts.failing(kept, [e]) is not None), None)
        if alone is None or sooner is None or sooner == wanted[0]:
            return parts.failing(kept, wanted)
        wanted = [sooner]


class _Parts:
    """The parts that were tried."""

    def __init__(self, whole: Reference, fails: Fails, told: Callable[[str], None]):
        self.whole, self.fails, self.told = whole, fails, told
        self.tried: dict[tuple, bool] = {}

    def failing(self, kept: Collection[Node], wanted: Sequence[Entry]) -> Part | None:
        """The part, if it fails."""
        there = set(kept)
        if not all(e.node in there for e in wanted):
            return None
        part = part_of(self.whole, there, wanted)
        key = frozenset(_needed(list(kept), wanted)), tuple(wanted)
        if key not in self.tried:
            self.tried[key] = self.fails(part)
            self.told(f"{len(part.operators)} operators {'fail' if self.tried[key] else 'pass'}")
        return part if self.tried[key] else None

    def fewer(self, kept: list[Node], wanted: Sequence[Entry]) -> list[Node]:
        """As few of the operators as leaving some out, many first and then one after the other, comes to."""
        size = len(kept)
        while size > 1:
            size = -(-min(size, len(kept)) // 2)
            position = 0
            while position < len(kept):
                less = [node for i, node in enumerate(kept) if not position <= i < position + size]
                if self.failing(less, wanted) is not None:
                    kept = _needed(less, wanted)
                else:
                    position += size
        return kept


def operators_of(graph: Graph) -> list[Node]:
    """The operators of a graph, in order."""
    return [node for node in graph.nodes if node.op is not None]


def first_wrong(kept: Sequence[Node], last: Entry, is_wrong: Callable[[Entry], bool]) -> Entry:
    """An entry that is wrong though nothing is that its operator reads, of those that `last`, which is wrong, needs.

    is_wrong: whether an entry is when it is computed with all that it needs. Halving finds one that is near; what is
    wrong does not have to be in one piece, so the way from there to the first one is gone step by step.
    """
    entries = [*(Entry(node) for node in _needed(kept, [last]) if node is not last.node), last]
    low, high = 0, len(entries) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_wrong(entries[middle]) else (middle + 1, high)
    found = entries[low]
    while (sooner := next((e for e in found.node.inputs if e.node.op is not None and is_wrong(e)), None)) is not None:
        found = sooner
    return found


def _needed(kept: Sequence[Node], wanted: Sequence[Entry]) -> list[Node]:
    """Those of the operators that the entries need, through each other."""
    there, found = set(kept), set[Node]()
    stack = [e.node for e in wanted]
    while stack:
        node = stack.pop()
        if node in there and node not in found:
            found.add(node)
            stack += [e.node for e in node.inputs]
    return [node for node in kept if node in found]
