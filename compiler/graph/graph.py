"""The graph: nodes, the entries (outputs) they make, and what is known of each entry.

A `Graph` is a value: passes read one and build another through a `GraphBuilder`, which infers the shapes and dtypes of
every node it makes at once. Node ids are dense and topological, in the order in which MXNet writes its JSON
(depth first from the outputs, inputs before their user).
"""
from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.operator import Operator, Params

Shape = tuple[int, ...]
Origin = frozenset[int]
NOWHERE: Origin = frozenset()


class Node:
    """One operator applied to entries, or a variable (`op` is None). Compared by identity.

    attrs: raw strings as the JSON holds them (operator parameters and user attributes such as `__lr_mult__`).
    params: the operator's parameters, parsed.
    inputs: entries in the operator's order, auxiliary states too (`Operator.all_names`).
    subgraphs: the graphs that the node carries, of an operator that stands for several.
    """

    __slots__ = ("attrs", "inputs", "name", "op", "params", "subgraphs")

    def __init__(self, op: Operator | None, name: str, attrs: dict[str, str] | None = None,
                 params: Params | None = None, inputs: Sequence[Entry] = (), subgraphs: Sequence[Graph] = ()):
        self.op, self.name = op, name
        self.attrs: dict[str, str] = dict(attrs or {})
        self.params: Params = params if params is not None else Params()
        self.inputs: list[Entry] = list(inputs)
        self.subgraphs: list[Graph] = list(subgraphs)

    @property
    def is_variable(self) -> bool:
        return self.op is None

    @property
    def is_control_flow(self) -> bool:
        """Whether its operator runs its subgraphs. Of others, the parameters say all that the subgraphs do."""
        return bool(self.subgraphs) and self.op is not None and self.op.rule("subgraph") is None

    @property
    def num_outputs(self) -> int:
        return 1 if self.op is None else self.op.num_outputs(self.params)

    @property
    def states(self) -> list[Entry]:
        """The inputs that the operator takes as auxiliary states."""
        return [] if self.op is None else self.inputs[self.op.states(self.params)]

    def __repr__(self) -> str:
        return f"<{self.op.name if self.op else 'null'} {self.name}>"


class Entry(NamedTuple):
    """Output `index` of `node`."""

    node: Node
    index: int = 0  # type: ignore[assignment]  # This hides the method tuple.index, which nothing calls on entries.


def variable(name: str, attrs: dict[str, str] | None = None) -> Node:
    """A new variable node."""
    return Node(None, name, attrs)


def topological(outputs: Iterable[Entry]) -> list[Node]:
    """Every node that `outputs` need, inputs before users, depth first: the order of ids in MXNet's JSON."""
    order: list[Node] = []
    seen: set[Node] = set()
    for top, _ in outputs:
        if top in seen:
            continue
        seen.add(top)
        stack: list[tuple[Node, Iterator[Entry]]] = [(top, iter(top.inputs))]
        while stack:
            node, rest = stack[-1]
            for below, _ in rest:
                if below not in seen:
                    seen.add(below)
                    if below.inputs:
                        stack.append((below, iter(below.inputs)))
                        break
                    order.append(below)
            else:
                order.append(node)
                stack.pop()
    return order


@dataclass
class Facts:
    """What is known of each entry, by node id and output index. None: not known (yet)."""

    shape: list[list[Shape | None]] = field(default_factory=list)
    dtype: list[list[str | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Sink:
    """What an output of a graph is for.

    kind: "output" (what the user sees), "grad" (gradient of the argument `name`) or "aux" (new value of the auxiliary
    state `name`). mode: "write" or "add" (grad_req).
    """

    kind: str
    name: str
    mode: str = "write"


class Graph:
    """Outputs, the nodes they need in topological order, their dense ids and the facts about them.

    sinks: one for each output; for a graph as the user made it all are of kind "output". origins: for nodes of a graph
    that passes made, the ids of the nodes of the model's graph that each came from.
    """

    def __init__(self, outputs: Sequence[Entry], sinks: Sequence[Sink] | None = None, facts: Facts | None = None):
        self.outputs: list[Entry] = list(outputs)
        self.nodes: list[Node] = topological(self.outputs)
        self.ids: dict[Node, int] = {node: i for i, node in enumerate(self.nodes)}
        self.sinks: list[Sink] = list(sinks) if sinks is not None else [Sink("output", e.node.name) for e in outputs]
        self.facts = facts if facts is not None else Facts()
        self.origins: dict[Node, Origin] = {}

    def as_origin(self) -> Graph:
        """The same graph as the one that passes start from: each node is its own origin."""
        made = copy.copy(self)
        made.origins = {node: frozenset((i,)) for node, i in self.ids.items()}
        return made

    def origin(self, node: Node) -> Origin:
        """The nodes of the model's graph that `node` came from, by id; none where that is not known."""
        return self.origins.get(node, NOWHERE)

    def with_facts(self, facts: Facts) -> Graph:
        """The same graph with other facts."""
        made = copy.copy(self)
        made.facts = facts
        return made

    def shape(self, entry: Entry) -> Shape:
        """The known, complete shape of `entry`. Raises MXNetError when it was not inferred."""
        shape = self.facts.shape[self.ids[entry.node]][entry.index]
        if shape is None:
            raise MXNetError(f"the shape of output {entry.index} of {entry.node!r} is not known")
        return shape

    def dtype(self, entry: Entry) -> str:
        """The known dtype of `entry` as NumPy's name. Raises MXNetError when it was not inferred."""
        dtype = self.facts.dtype[self.ids[entry.node]][entry.index]
        if dtype is None:
            raise MXNetError(f"the dtype of output {entry.index} of {entry.node!r} is not known")
        return dtype

    def has_facts(self, shapes: Mapping[str, Shape], dtypes: Mapping[str, str]) -> bool:
        """Whether shapes and dtypes were inferred, and from variables of these, where they are given."""
        if not self.facts.shape:
            return False
        for node, (shape, *_), (dtype, *_) in zip(self.nodes, self.facts.shape, self.facts.dtype, strict=True):
            if node.op is None and (shape is None or shapes.get(node.name, shape) != shape
                                    or dtypes.get(node.name, dtype) != dtype):
                return False
        return True

    @property
    def variables(self) -> list[Node]:
        return [node for node in self.nodes if node.op is None]

    def consumers(self) -> dict[Entry, list[tuple[Node, int]]]:
        """For every entry, the (node, input position) pairs that read it, in topological order."""
        users: dict[Entry, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            for position, entry in enumerate(node.inputs):
                users.setdefault(entry, []).append((node, position))
        return users


class GraphBuilder:
    """Makes the nodes of a new graph; what it makes has known shapes and dtypes at once.

    A pass walks the old graph's nodes in order, calls `copy` or `make`, and maps old entries to new ones with `map`.
    Where the old graph's names differ, so do the new one's: `finish` renames what was made under a name that is taken.
    What it makes has the origin of the old nodes that `at` names. made: the nodes made since then.
    streams: how many streams of random numbers the nodes made here draw from.
    """

    def __init__(self, old: Graph | None = None):
        self.old = old
        self.map: dict[Entry, Entry] = {}
        self._shape: dict[Entry, Shape] = {}
        self._dtype: dict[Entry, str] = {}
        self._unnamed: dict[Node, str] = {}  # node made without a name -> the beginning of the name that it will get
        self._origins: dict[Node, Origin] = {}
        self._origin = NOWHERE
        self.made: list[Node] = []
        self.streams = 0

    def at(self, *nodes: Node) -> None:
        """What is made from now on comes from these nodes of the old graph."""
        assert self.old is not None
        self._origin, self.made = NOWHERE.union(*map(self.old.origin, nodes)), []

    def came_from(self, node: Node, *old: Node) -> None:
        """State that a node of the new graph came from these nodes of the old one too."""
        assert self.old is not None
        self._origins[node] = self._origins.get(node, NOWHERE).union(*map(self.old.origin, old))

    def shape(self, entry: Entry) -> Shape:
        return self._shape[entry]

    def dtype(self, entry: Entry) -> str:
        return self._dtype[entry]

    def record(self, entry: Entry, shape: Shape, dtype: str) -> None:
        """State the shape and dtype of an entry that was not made here."""
        self._shape[entry], self._dtype[entry] = tuple(shape), dtype

    def variable(self, name: str, shape: Shape, dtype: str, attrs: dict[str, str] | None = None) -> Entry:
        """A new variable of known shape and dtype."""
        entry = Entry(variable(name, attrs))
        self.record(entry, shape, dtype)
        return entry

    def make(self, op: str, *inputs: Entry, name: str = "", **params: object) -> Entry:
        """A new node of operator `op`; its first output. Raises MXNetError when shapes or dtypes do not fit."""
        return self.make_all(op, *inputs, name=name, **params)[0]

    def make_all(self, op: str, *inputs: Entry, name: str = "", **params: object) -> list[Entry]:
        """A new node of operator `op`; all of its outputs."""
        operator = table.get(op)
        parsed = operator.make_params(params)
        node = Node(operator, name or f"{op.lstrip('_')}{len(self._unnamed) + 1}", None, parsed, inputs)
        if not name:
            self._unnamed[node] = op.lstrip("_")
        return self.add(node)

    def add(self, node: Node) -> list[Entry]:
        """Infer the outputs of a node whose inputs are known here; its entries."""
        assert node.op is not None
        shapes, dtypes = infer_node(node, [self._shape[e] for e in node.inputs], [self._dtype[e] for e in node.inputs])
        return self.place(node, shapes, dtypes)

    def place(self, node: Node, shapes: Sequence[Shape], dtypes: Sequence[str]) -> list[Entry]:
        """A node made here whose outputs have these shapes and dtypes; its entries."""
        entries = [Entry(node, i) for i in range(len(shapes))]
        for entry, shape, dtype in zip(entries, shapes, dtypes, strict=True):
            self.record(entry, shape, dtype)
        self._origins[node] = self._origin
        self.made.append(node)
        return entries

    def copy(self, node: Node) -> list[Entry]:
        """The old graph's `node` over the new entries of its inputs; the node itself when nothing below it changed."""
        assert self.old is not None
        inputs = [self.map[e] for e in node.inputs]
        if node.is_variable or inputs == node.inputs:
            new = node
        else:
            new = Node(node.op, node.name, node.attrs, node.params, inputs, node.subgraphs)
        entries = [Entry(new, i) for i in range(node.num_outputs)]
        for i, entry in enumerate(entries):
            old = Entry(node, i)
            self.record(entry, self.old.shape(old), self.old.dtype(old))
            self.map[old] = entry
        self.came_from(new, node)
        return entries

    def finish(self, outputs: Sequence[Entry], sinks: Sequence[Sink]) -> Graph:
        """The graph of what `outputs` need, with its facts."""
        graph = Graph(outputs, sinks)
        self._rename(graph)
        graph.origins = {node: self._origins[node] for node in graph.nodes if self._origins.get(node)}
        graph.facts = Facts([[self._shape.get(Entry(n, i)) for i in range(n.num_outputs)] for n in graph.nodes],
                            [[self._dtype.get(Entry(n, i)) for i in range(n.num_outputs)] for n in graph.nodes])
        return graph

    def _rename(self, graph: Graph) -> None:
        """Give the nodes made here names that no other node of the graph has.

        A node that replaces an old one may have the old one's name. A node that was made without a name does not get
        the name of any old node: a copy of the old node may be made later, and keeps its name.
        """
        old = {} if self.old is None else self.old.ids
        taken = {node.name for node in graph.nodes if node in old or node.is_variable}
        reserved = {node.name for node in old}
        counts: dict[str, Iterator[int]] = {}
        for node in graph.nodes:
            if node in old or node.is_variable:
                continue
            stem = self._unnamed.get(node)
            if node.name in taken or (stem is not None and node.name in reserved):
                stem, start = (f"{node.name}#", 2) if stem is None else (stem, 1)
                numbers = counts.setdefault(stem, itertools.count(start))
                node.name = next(n for i in numbers if (n := f"{stem}{i}") not in taken and n not in reserved)
            taken.add(node.name)


def rewrite(graph: Graph, rule: Callable[[GraphBuilder, Node], Sequence[Entry] | None]) -> Graph:
    """A new graph in which each node is what `rule` makes of it (None: the node itself).

    `rule` finds the new entries of the node's inputs in `builder.map`, and returns one entry for each of the node's
    outputs. Nodes that nothing needs any more are gone from the result.
    """
    builder = GraphBuilder(graph)
    for node in graph.nodes:
        builder.at(node)
        made = None if node.is_variable else rule(builder, node)
        if made is None:
            builder.copy(node)
        else:
            for i, entry in enumerate(made):
                builder.map[Entry(node, i)] = entry
                builder.came_from(entry.node, node)
    return builder.finish([builder.map[e] for e in graph.outputs], graph.sinks)


