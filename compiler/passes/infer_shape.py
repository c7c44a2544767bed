"""Shape inference over a whole graph, forward and backward, from partial knowledge."""
from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.graph.control_flow import ControlFlowOperator
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops.extent import STAND_INS, check_dims, zero_stands_as
from mxc.compiler.ops.infer import Shape, infer_shapes, is_complete, merge_shape, of_stand_ins
from mxc.compiler.passes.infer_inside import Dtypes, Shapes, infer_inside
from mxc.compiler.passes.stated import attribute_shape

T = TypeVar("T")
MOST_LINES = 10  # A message lists at most so many of the given shapes or dtypes, a line each: few enough to read.


def infer_shape(graph: Graph, known: Mapping[str, Sequence[int] | None], partial: bool = False,
                numpy: bool = False, numpy_params: bool | None = None) -> list[list[Shape | None]]:
    """The shapes of every node's outputs, by node id and output index.

    known: shapes of variables by name; None or an empty shape is an unknown rank, 0 or -1 an unknown dimension. A
    variable whose shape is not complete there has the one that its `__shape__` attribute gives, if any.
    partial: return what could be found (None: unknown rank, 0: unknown dimension) instead of refusing it. numpy: 0 and
    () are shapes like any other, also in what is returned, and -1 is an unknown dimension. numpy_params: whether the
    same holds for shapes in operators' parameters; None: where it holds for `known`.

    Raises MXNetError when shapes contradict each other (naming operator, node, its inputs' shapes and the given
    shapes), for a name that is no variable of the graph, and, without `partial`, for shapes that stay unknown (naming
    argument and dimension).
    """
    check_names(graph, known)
    given: dict[Node, Shape | None] = {}
    for node in graph.variables:
        shape = known.get(node.name)
        is_open = shape is None or min(shape, default=0) < 0 or not (numpy or (shape and 0 not in shape))
        stated = attribute_shape(node) if is_open else None
        given[node] = stated if stated is not None else shape if shape is None else tuple(map(int, shape))
        for dims in shape, given[node]:
            _check_given(node, dims)
    if not numpy:
        return _infer(graph, {node: shape or None for node, shape in given.items()}, partial, known)
    return _infer_numpy(graph, given, partial, known, numpy if numpy_params is None else numpy_params)


def _check_given(node: Node, shape: Sequence[int] | None) -> None:
    try:
        check_dims(shape or ())
    except MXNetError as error:
        raise MXNetError(f"the shape of {node.name!r}: {error}") from None


def _infer(graph: Graph, given: Mapping[Node, Shape | None], partial: bool,
           known: Mapping[str, object]) -> list[list[Shape | None]]:
    shapes: list[list[Shape | None]] = []
    for node in graph.nodes:
        shapes.append([None] * node.num_outputs)
        shape = given.get(node)
        if shape is not None:
            shapes[-1][0] = tuple(max(dim, 0) for dim in shape)
    run = Propagation(graph, shapes, infer_shapes, merge_shape).run
    with_context(lambda: run(graph.nodes), "shapes", known)
    if not partial:
        _refuse_unknown(graph, shapes, known)
    return shapes


def _infer_numpy(graph: Graph, given: Mapping[Node, Shape | None], partial: bool,
                 known: Mapping[str, object], params: bool) -> list[list[Shape | None]]:
    """Shapes, where 0 is an extent: large numbers stand for it meanwhile, see STAND_INS. params: whether they also
    stand for a 0 in operators' parameters."""
    has_zeros = params or any(0 in shape for shape in given.values() if shape is not None)
    found = []
    for stand_in in STAND_INS if has_zeros else STAND_INS[:1]:
        begun = {node: shape and tuple(dim or stand_in for dim in shape) for node, shape in given.items()}
        try:
            with zero_stands_as(stand_in if params else 0):
                found.append(_infer(graph, begun, partial, known))
        except MXNetError as error:
            raise MXNetError(str(error).replace(str(stand_in), "0")) from None
    shapes: list[list[Shape | None]] = []
    for node, *both in zip(graph.nodes, found[0], found[-1], strict=True):
        shapes.append([])
        for first, last in zip(*both, strict=True):
            shape = first
            if first is not None and last is not None:
                shape = of_stand_ins(*(tuple(dim or -1 for dim in shape) for shape in (first, last)))
                if shape is None:
                    raise MXNetError(f"{node!r} does not take these arrays, of which some have no elements")
            shapes[-1].append(shape)
    return shapes


def check_names(graph: Graph, known: Mapping[str, object]) -> None:
    """Raise MXNetError when `known` names something that is no variable of `graph`."""
    names = {node.name: None for node in graph.variables}
    for name in known:
        if name not in names:
            raise MXNetError(f"{name!r} is no argument of this graph{nearest(name, names)}; "
                             f"its arguments: {', '.join(names)}")


def with_context(run: Callable[[], None], what: str, given: Mapping[str, object]) -> None:
    """Run an inference; to the error that it may raise, add what the caller had given, a line each."""
    try:
        run()
    except MXNetError as error:
        raise MXNetError("\n".join([str(error), *_given_lines(what, given)])) from None


def _given_lines(what: str, given: Mapping[str, object]) -> list[str]:
    """What the caller had given as lines of a message: the first MOST_LINES of it."""
    lines = [f"  {name}: {fact}" for name, fact in given.items() if fact is not None]
    more = [f"  and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return [f"given {what}:", *(lines[:MOST_LINES] or ["  none"]), *more]


class Propagation(Generic[T]):
    """Applies `infer` to node after node, in order, in reverse, and so on, until nothing more becomes known.

    facts: what is known of every node's outputs; completed in place. A node is inferred again only when something that
    it reads or makes has become known since. Through control-flow nodes facts flow by way of the graphs inside.
    """

    def __init__(self, graph: Graph, facts: list[list[T | None]], infer: Callable,
                 merge: Callable[[T | None, T | None], T | None]):
        self.graph, self.facts, self.infer, self.merge = graph, facts, infer, merge
        self.readers: dict[Entry, list[Node]] = {}
        for node in graph.nodes:
            for entry in dict.fromkeys(node.inputs):
                self.readers.setdefault(entry, []).append(node)

    def run(self, nodes: Iterable[Node]) -> None:
        """Begin with these nodes."""
        first = {self.graph.ids[node] for node in nodes if node.op is not None}
        self.waiting: tuple[set[int], set[int]] = first, set()  # ids for the sweep that runs, and for the next one
        self.heap = sorted(first)  # ids that the present sweep has yet to visit; a reverse sweep has them negated
        self.at, self.sign = -1, 1
        while self.waiting[0]:
            while self.heap:
                self.at = heapq.heappop(self.heap) * self.sign
                self.waiting[0].discard(self.at)
                self._infer(self.graph.nodes[self.at])
            self.waiting, self.sign = self.waiting[::-1], -self.sign
            self.heap = [i * self.sign for i in self.waiting[0]]
            heapq.heapify(self.heap)

    def _complete(self, graph: Graph, facts: list[list[T | None]]) -> None:
        Propagation(graph, facts, self.infer, self.merge).run(graph.nodes)

    def _wake(self, node: Node) -> None:
        """Have a node inferred: in this sweep if that has not passed the node yet, else in the next one."""
        if node.is_variable:
            return
        i = self.graph.ids[node]
        if (i - self.at) * self.sign <= 0:
            self.waiting[1].add(i)
        elif i not in self.waiting[0]:
            self.waiting[0].add(i)
            heapq.heappush(self.heap, i * self.sign)

    def _infer(self, node: Node) -> None:
        facts, ids = self.facts, self.graph.ids
        mine = facts[ids[node]]
        ins = [facts[ids[source]][index] for source, index in node.inputs]
        if isinstance(node.op, ControlFlowOperator):
            view = Shapes if self.infer is infer_shapes else Dtypes
            new_ins, new_outs = infer_inside(node, ins, mine, view, self.merge, self._complete)
        else:
            new_ins, new_outs = self.infer(node, ins, mine)
        if new_outs != mine:
            for i, (old, new) in enumerate(zip(mine, new_outs, strict=True)):
                if old != new:
                    for reader in self.readers.get(Entry(node, i), ()):
                        self._wake(reader)
            mine[:] = new_outs
        for entry, fact in zip(node.inputs, new_ins, strict=True):
            place = facts[ids[entry.node]]
            old = place[entry.index]
            if fact is None or fact == old:
                continue
            place[entry.index] = self.merge(old, fact)
            if place[entry.index] != old:
                self._wake(entry.node)
                for reader in self.readers[entry]:
                    self._wake(reader)


def _refuse_unknown(graph: Graph, shapes: list[list[Shape | None]], given: Mapping[str, object]) -> None:
    """Raise MXNetError naming each argument, or else each output, whose shape is not known completely."""
    missing = [_describe(f"argument {node.name!r}", shapes[graph.ids[node]][0]) for node in graph.variables
               if not is_complete(shapes[graph.ids[node]][0])]
    if not missing:
        missing = [_describe(f"output {i} of {node.op.name} {node.name!r}", shape) for node in graph.nodes if node.op
                   for i, shape in enumerate(shapes[graph.ids[node]]) if not is_complete(shape)]
    if missing:
        raise MXNetError("\n".join(["shapes stay unknown; give the shapes of more arguments (without 0 or -1):",
                                    *(f"  {line}" for line in missing), *_given_lines("shapes", given)]))


def _describe(what: str, shape: Shape | None) -> str:
    if shape is None:
        return f"{what}: nothing is known of its shape"
    unknown = [str(i) for i, dim in enumerate(shape) if dim == 0]
    return f"{what}: dimension {', '.join(unknown)} is unknown in {shape}"
