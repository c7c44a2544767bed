"""What is known of a control-flow node's inputs and outputs, in both directions, through the graphs that it carries."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.control_flow import FOREACH, WHILE_LOOP, feeds, results, state_positions
from mxc.compiler.graph.graph import Entry, Graph, Node, Shape
from mxc.compiler.graph.loop import slice_shape
from mxc.compiler.passes.stated import attribute_dtype, attribute_shape

Fact = Any  # a shape or a dtype; None: not known
# What completes the facts of a graph's nodes, in place.
Complete = Callable[[Graph, list[list[Fact]]], None]


class Shapes:
    """How shapes change between a node and its graphs."""

    stated = staticmethod(attribute_shape)

    @staticmethod
    def sliced(shape: Shape | None) -> Shape | None:
        """The shape of a slice along axis 0; as in MXNet, that of an array with one axis is (1,)."""
        return shape and slice_shape(shape)

    @staticmethod
    def stacked(shape: Shape | None, length: int, known: Shape | None) -> Shape | None:
        """The shape of what has slices of a shape. length: 0 where it is not known. known: what is known of it."""
        if shape is None or (known is not None and len(known) == 1):
            return known if not length or known is None else (length,)
        return (length, *shape)


class Dtypes:
    """How dtypes change between a node and its graphs: not at all."""

    stated = staticmethod(attribute_dtype)

    @staticmethod
    def sliced(dtype: str | None) -> str | None:
        return dtype

    @staticmethod
    def stacked(dtype: str | None, length: int, known: str | None) -> str | None:
        return dtype


def infer_inside(node: Node, ins: Sequence[Fact], outs: Sequence[Fact], view: type[Shapes] | type[Dtypes],
                 merge: Callable[[Fact, Fact], Fact], complete: Complete) -> tuple[list[Fact], list[Fact]]:
    """Everything that a node's graphs say about its inputs and outputs. Raises MXNetError, naming the node."""
    before = None
    known = list(ins), list(outs)
    try:
        while known != before:  # what one graph tells may complete another
            before = known
            known = _infer(node, list(known[0]), list(known[1]), view, merge, complete)
        return known
    except MXNetError as error:
        assert node.op is not None
        raise MXNetError(f"{node.op.name} {node.name!r}: {error}") from None


def _infer(node: Node, ins: list[Fact], outs: list[Fact], view: type[Shapes] | type[Dtypes],
           merge: Callable[[Fact, Fact], Fact], complete: Complete) -> tuple[list[Fact], list[Fact]]:
    if node.op is FOREACH and not node.params.in_data_locs:
        raise MXNetError("there are no data to loop over; expected one array or more")
    length = _length(node, ins, outs, merge) if view is Shapes else 0
    given, made = feeds(node), results(node)
    states = state_positions(node)
    first = len(outs) - len(states)
    for i, position in enumerate(states):  # a state has one shape and one dtype in all steps
        ins[position] = outs[first + i] = _same(merge, ins[position], outs[first + i], f"state {i}")
    for number, graph in enumerate(node.subgraphs):
        facts = inside(graph, [view.sliced(ins[p]) if sliced else ins[p] for p, sliced in given[number]], view)
        ids = graph.ids
        for i, per_output in enumerate(made):
            for result in per_output:
                if result.graph == number:
                    entry = graph.outputs[result.output]
                    place = facts[ids[entry.node]]
                    told = view.sliced(outs[i]) if result.is_stack else outs[i]
                    place[entry.index] = _same(merge, place[entry.index], told, f"output {i}")
        complete(graph, facts)
        for variable, (position, is_slice) in zip(graph.variables, given[number], strict=True):
            fact = facts[ids[variable]][0]
            told = view.stacked(fact, length, ins[position]) if is_slice else fact
            ins[position] = _same(merge, ins[position], told, f"input {variable.name!r}")
        for i, per_output in enumerate(made):
            for result in per_output:
                if result.graph == number:
                    fact = _fact(graph, facts, graph.outputs[result.output])
                    outs[i] = _same(merge, outs[i], view.stacked(fact, length, None) if result.is_stack else fact,
                                    f"output {i}")
    return ins, outs


def inside(graph: Graph, given: Iterable[Fact], view: type[Shapes] | type[Dtypes]) -> list[list[Fact]]:
    """What is known of a graph's entries at first: of its variables what is given, or else their attributes say."""
    facts: list[list[Fact]] = [[None] * each.num_outputs for each in graph.nodes]
    for variable, fact in zip(graph.variables, given, strict=True):
        facts[graph.ids[variable]][0] = fact if fact is not None else view.stated(variable)
    return facts


def _fact(graph: Graph, facts: list[list[Fact]], entry: Entry) -> Fact:
    return facts[graph.ids[entry.node]][entry.index]


def _length(node: Node, ins: Sequence[Shape | None], outs: Sequence[Shape | None],
            merge: Callable[[Fact, Fact], Fact]) -> int:
    """How long what a loop stacks is: of while_loop its limit, of foreach what its data are; 0 if it is not known."""
    if node.op is WHILE_LOOP:
        return int(node.params.max_iterations)
    length: Shape = (0,)
    stacks = [outs[i] for i, made in enumerate(results(node)) if made[0].is_stack]
    for shape in (*(ins[p] for p, sliced in feeds(node)[0] if sliced), *stacks) if len(node.subgraphs) == 1 else ():
        if shape:
            length = _same(merge, length, shape[:1], "the length along axis 0")
    return length[0]


def _same(merge: Callable[[Fact, Fact], Fact], known: Fact, told: Fact, what: str) -> Fact:
    try:
        return merge(known, told)
    except MXNetError as error:
        raise MXNetError(f"{what}: {error}") from None
