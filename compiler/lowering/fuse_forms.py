"""The forms that a fused group can have, and the test whether a set of nodes fits one (see fuse.py)."""
from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import Entry, Graph, Node, Shape
from mxc.compiler.kernel.ir import FUNCTIONS
from mxc.compiler.lowering.index_reads import places_read
from mxc.compiler.ops.functions import calls_native, written_out
from mxc.compiler.ops.operator import Kind
from mxc.compiler.ops.shapes import reduced_axes

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Spreading

ORDER_KEEPING = "reshape"  # the index rule of operators that keep the row-major order of the elements
JOINING = "concat"  # the index rule of operators that put arrays one behind the other
MOST_JOINED = 24  # arrays that one kernel joins; of more, each is copied by a kernel of its own (`is_join`)
# For one element that a kernel stores, its inline values are computed and read at no more places than this (counted
# together): each place is code of its own.
MOST_PLACES = 128
# For one element of its own, an inline value is computed no more often than this where a node interpolates between
# several of its elements. A BilinearResize2D of 60 x 60 to 480 x 480 reads each 256 times: what lay before it in its
# kernel, a transposed sum, took 1200 ms in place of 40 with a kernel of its own (AMD EPYC, Zen 5, one thread).
MOST_REPEATS = 4
SPACE, DOMAIN, INLINE = "space", "domain", "inline"

_COSTLY = re.compile(r"/|\*\*|\b(?:" + "|".join((*FUNCTIONS, "sqrt", "pow", "mod")) + r")\s*\(")


class NotFusable(Exception):
    """These nodes do not fit one kernel; the message says why."""


@dataclass(frozen=True)
class Form:
    """The form of a group.

    kind: map, reduce, anchor, view, join, routine or host, which loops have too. space: the shape S. reduced: the axes
    of S that are reduced. levels: the level of each entry that the group computes. plain: whether the group computes
    nothing but formulas over values at the same place, all of one shape.
    """

    kind: str
    space: Shape
    reduced: frozenset[int]
    levels: dict[Entry, str]
    plain: bool = False

    def may_precede(self, consumer: Form) -> bool:
        """A quick test by kinds alone whether a group of this form may be merged into one of form `consumer`."""
        kinds = {self.kind, consumer.kind}
        return not kinds & {"host", "routine", "join"} and ("anchor" not in kinds or bool(kinds & {"map", "view"}))

    @property
    def domain(self) -> Shape:
        return tuple(d for i, d in enumerate(self.space) if i not in self.reduced)


def is_view(node: Node) -> bool:
    """True when the node's output is its input's memory under another shape (its index rule keeps the order)."""
    return node.op is not None and node.op.rules.get("index") == ORDER_KEEPING


def is_join(node: Node) -> bool:
    """True for a concatenation of so many arrays that each is copied to its place by a kernel of its own: one kernel
    would choose among all of them at every point."""
    return node.op is not None and node.op.rules.get("index") == JOINING and len(node.inputs) > MOST_JOINED


def is_window(node: Node) -> bool:
    """True for a reduction over a window of its input (pooling and its gradient): the domain is its output's shape."""
    return node.op is not None and node.op.kind == Kind.REDUCTION and node.op.reduce is None


def space_of(graph: Graph, node: Node) -> tuple[Shape, frozenset[int]]:
    """(S, R) of a reduction node."""
    shape = graph.shape(node.inputs[0])
    return shape, frozenset(reduced_axes(node.params, len(shape)))


def is_costly(node: Node) -> bool:
    """True when the node's formula holds a division, a power or a transcendental function."""
    assert node.op is not None
    text = node.op.expression(node.params)
    return text is not None and (calls_native(text) or any(map(_COSTLY.search, written_out(text))))


def _needs_index(node: Node) -> bool:
    """True when the node's value is not a formula over its inputs' values at one place."""
    assert node.op is not None
    return node.op.kind < Kind.ANCHOR and node.op.expression(node.params) is None


def _has_places(node: Node) -> bool:
    """True when the node's index rule says at which places it reads its inputs, other than in their order."""
    return (node.op is not None and node.op.kind == Kind.INJECTIVE
            and node.op.rules.get("index", ORDER_KEEPING) != ORDER_KEEPING)


def united(producer: Form, consumer: Form) -> Form | None:
    """The form of two groups as one, for the case that needs no search: both compute formulas over one shape. None in
    all other cases."""
    if not (producer.plain and consumer.plain and producer.space == consumer.space):
        return None
    return Form("map", consumer.space, frozenset(), {**producer.levels, **consumer.levels}, plain=True)


def form_of(graph: Graph, nodes: Sequence[Node], stored: set[Entry] | None = None,
            spreading: Spreading | None = None) -> Form:
    """The form of `nodes` (topological order) when `stored` entries must reach memory. spreading: the target's figures;
    None: results of reductions may always be spread back. Raises NotFusable."""
    if len(nodes) == 1 and stored is None:
        return _single(graph, nodes[0])
    return _Leveller(graph, nodes, stored or set(), spreading).form()


def _single(graph: Graph, node: Node) -> Form:
    assert node.op is not None
    entries = [Entry(node, i) for i in range(node.num_outputs)]
    shape = graph.shape(entries[0])
    if node.op.kind == Kind.OPAQUE:
        return Form("routine" if "routine" in node.op.rules else "host", shape, frozenset(), {})
    if node.op.kind == Kind.ANCHOR:
        return Form("anchor", shape, frozenset(), {entries[0]: SPACE})
    if node.op.kind == Kind.REDUCTION:
        if is_window(node):
            return Form("reduce", shape, frozenset(), dict.fromkeys(entries, DOMAIN))
        space, reduced = space_of(graph, node)
        return Form("reduce", space, reduced, dict.fromkeys(entries, DOMAIN))
    if is_join(node):
        return Form("join", shape, frozenset(), dict.fromkeys(entries, SPACE))
    plain = node.op.kind <= Kind.BROADCAST and not _needs_index(node)
    return Form("view" if is_view(node) else "map", shape, frozenset(), dict.fromkeys(entries, SPACE), plain)


class _Leveller:
    """Finds the level of every entry of a group, from the last node to the first."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], stored: set[Entry], spreading: Spreading | None):
        self.graph, self.nodes, self.stored, self.spreading = graph, nodes, stored, spreading
        self.inside = set(nodes)
        kinds = [node.op.kind for node in nodes if node.op is not None]
        self.anchors = [n for n, k in zip(nodes, kinds, strict=True) if k == Kind.ANCHOR]
        self.reductions = [n for n, k in zip(nodes, kinds, strict=True) if k == Kind.REDUCTION]
        if len(self.anchors) > 1 or (self.anchors and self.reductions) or Kind.OPAQUE in kinds:
            raise NotFusable("more than one anchor, or an anchor with a reduction")
        if self.anchors and any(map(_needs_index, nodes)):
            raise NotFusable("an epilogue holds elementwise operators only")

    def form(self) -> Form:
        kind, space, reduced = self._space()
        levels: dict[Entry, str] = {}
        fixed = {*self.anchors, *self.reductions}
        after = self._after_fixed(fixed)
        for node in self.nodes:
            for i in range(node.num_outputs):
                levels[Entry(node, i)] = self._level(node, kind, space, reduced, fixed, after)
        self._check_reads(levels, kind, space, reduced, after)
        self._check_work(levels)
        self._check_places(levels)
        for entry in self.stored & levels.keys():
            if levels[entry] == INLINE:
                raise NotFusable(f"{entry.node.name} is read at other indices and must be stored")
        return Form(kind, space, reduced, levels)

    def _space(self) -> tuple[str, Shape, frozenset[int]]:
        graph = self.graph
        if self.anchors:
            return "anchor", graph.shape(Entry(self.anchors[0])), frozenset()
        if not self.reductions:
            return "map", graph.shape(Entry(self.nodes[-1])), frozenset()
        if any(map(is_window, self.reductions)):
            if len(self.reductions) > 1:
                raise NotFusable("a window reduction shares its kernel with no other reduction")
            return "reduce", graph.shape(Entry(self.reductions[0])), frozenset()
        spaces = {space_of(graph, node) for node in self.reductions}
        if len(spaces) > 1:
            raise NotFusable("reductions over different axes or shapes")
        return "reduce", *spaces.pop()

    def _after_fixed(self, fixed: set[Node]) -> set[Node]:
        """The nodes that depend on a reduction or an anchor of the group, these included."""
        after: set[Node] = set()
        for node in self.nodes:
            if node in fixed or any(e.node in after for e in node.inputs):
                after.add(node)
        return after

    def _level(self, node: Node, kind: str, space: Shape, reduced: frozenset[int], fixed: set[Node],
               after: set[Node]) -> str:
        if node in fixed:
            return DOMAIN if kind == "reduce" else SPACE
        shape = self.graph.shape(Entry(node))
        if shape == space and (reduced or kind != "reduce"):
            return SPACE
        if kind == "reduce" and (node in after or shape != space) and self._is_domain(shape, space, reduced):
            return DOMAIN
        if node in after:
            raise NotFusable(f"{node.name} has neither the shape of the space nor of the domain")
        return INLINE

    @staticmethod
    def _is_domain(shape: Shape, space: Shape, reduced: frozenset[int]) -> bool:
        """True when `shape` is the domain's, with or without axes of extent 1."""
        domain = tuple(d for i, d in enumerate(space) if i not in reduced and d != 1)
        return tuple(d for d in shape if d != 1) == domain

    def _check_reads(self, levels: dict[Entry, str], kind: str, space: Shape, reduced: frozenset[int],
                     after: set[Node]) -> None:
        graph = self.graph
        # A reduction to few results is divided over threads instead of being fused with what reads its result.
        spreading = self.spreading
        fewest = spreading.fewest_rows if spreading and math.prod(space) > spreading.small_space else 0
        for node in reversed(self.nodes):
            assert node.op is not None
            mine = levels[Entry(node)]
            for entry in node.inputs:
                if entry.node not in self.inside:
                    continue
                if node.op.kind == Kind.ANCHOR or is_window(node):
                    raise NotFusable(f"{node.name} reads its inputs from memory")
                theirs, shape = levels[entry], graph.shape(entry)
                if node.op.kind == Kind.REDUCTION:
                    if theirs != SPACE or shape != space:
                        raise NotFusable(f"{node.name} reduces something else than the space")
                    continue
                aligned = node.op.kind <= Kind.BROADCAST and shape == graph.shape(Entry(node))
                if aligned and theirs == mine:
                    continue
                if mine == theirs == DOMAIN and (is_view(node) or self._unit_broadcast(shape, node)):
                    continue
                if mine == SPACE and theirs == DOMAIN and self._spreads_back(node, shape, space, reduced):
                    if math.prod(shape) < fewest:
                        raise NotFusable("too few points of the domain for two sweeps in one kernel")
                    continue
                self._inline(entry, node, levels, kind, after)

    def _check_work(self, levels: dict[Entry, str]) -> None:
        """Refuses to compute a costly value more often than it has elements, and any much more often where a node reads
        it at several places. An inline value is computed once for each element that reads it: by a broadcast or a
        repetition several times, and by a join at all points of the join."""
        points: dict[Entry, int] = {}  # inline entry -> at how many points it is computed
        for node in reversed(self.nodes):
            mine = Entry(node)
            size = math.prod(self.graph.shape(mine))
            times = points.get(mine, 0) if levels[mine] == INLINE else size
            if levels[mine] == INLINE and times > size and is_costly(node):
                raise NotFusable(f"{node.name} would be computed {times / max(1, size):.1f} times for each element")
            for k, entry in enumerate(node.inputs):
                if entry.node in self.inside and levels[entry] == INLINE:
                    count = places_read(self.graph, mine)[k] if _has_places(node) else 1
                    elements = math.prod(self.graph.shape(entry))
                    if count > 1 and count * times > MOST_REPEATS * elements:
                        raise NotFusable(f"{node.name} would compute {entry.node.name} "
                                         f"{count * times // elements} times for each element")
                    points[entry] = max(points.get(entry, 0), count * times)

    def _check_places(self, levels: dict[Entry, str]) -> None:
        """Refuses to compute inline values at more places than MOST_PLACES, for the code of a value is printed once for
        each place. Where a node reads its input at two places, and so does the input's node, and so on, the places
        would double with each node."""
        if INLINE not in levels.values():
            return
        graph, total = self.graph, 0
        names: dict[tuple[Hashable, ...], int] = {}
        places: dict[Entry, set[int]] = {}  # entry -> numbers of the places where it is read; 0: the stored element's

        def read(entry: Entry, *place: Hashable) -> None:
            places.setdefault(entry, set()).add(names.setdefault(place, len(names) + 1) if place else 0)

        for node in reversed(self.nodes):
            assert node.op is not None
            for mine in (Entry(node, i) for i in range(node.num_outputs)):
                here = places.get(mine, set()) if levels[mine] == INLINE else {0}
                total += len(here) if levels[mine] == INLINE else 0
                if total > MOST_PLACES:
                    raise NotFusable(f"{node.name} and others would be computed at more than {MOST_PLACES} places")
                if _has_places(node):
                    counts = places_read(graph, mine)
                    for place in here:
                        for k, entry in enumerate(node.inputs):
                            for each in range(counts[k]):
                                read(entry, node, mine.index, place, k, each)
                    continue
                for entry in node.inputs:
                    same = node.op.kind <= Kind.BROADCAST and graph.shape(entry) == graph.shape(mine)
                    for place in here:
                        if same:
                            places.setdefault(entry, set()).add(place)
                        else:
                            read(entry, place, graph.shape(entry))
        total += sum(len(found) for entry, found in places.items() if entry.node not in self.inside)
        if total > MOST_PLACES:
            raise NotFusable(f"inline values would be read at {total} places")

    def _unit_broadcast(self, shape: Shape, node: Node) -> bool:
        out = self.graph.shape(Entry(node))
        return node.op is not None and node.op.kind <= Kind.BROADCAST and math.prod(shape) == math.prod(out)

    @staticmethod
    def _spreads_back(node: Node, shape: Shape, space: Shape, reduced: frozenset[int]) -> bool:
        """True when `shape` has the space's rank with 1 at the reduced axes: a broadcast spreads the result back."""
        if node.op is None or node.op.kind > Kind.BROADCAST or not reduced:
            return False
        return shape == tuple(1 if i in reduced else d for i, d in enumerate(space))

    def _inline(self, entry: Entry, user: Node, levels: dict[Entry, str], kind: str, after: set[Node]) -> None:
        """Make `entry` and what it needs inline, because `user` reads it at other indices than its own."""
        if entry.node in after:
            raise NotFusable(f"{user.name} reads {entry.node.name} at other indices")
        stack = [entry]
        while stack:
            current = stack.pop()
            node = current.node
            assert node.op is not None
            if kind == "anchor" and node.op.kind > Kind.BROADCAST:
                raise NotFusable("an epilogue reads other arrays at affine indices only")
            for i in range(node.num_outputs):
                levels[Entry(node, i)] = INLINE
            stack.extend(e for e in node.inputs if e.node in self.inside and levels[e] != INLINE)
