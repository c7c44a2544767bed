"""What a simplification is: a named function that sees one node of the old graph and may offer something better."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.phases import phases
from mxc.compiler.graph.purity import static_nodes

DEEPEST = 2  # how many nodes, one behind the other, a rule sees through besides its own


class Site:
    """Where a rule works: it matches nodes of `graph` and makes new ones with `builder` over `new(...)` entries.

    read: the entries of which a rule has asked for the new ones.
    """

    def __init__(self, graph: Graph, builder: GraphBuilder, options: Options):
        self.graph, self.builder, self.options = graph, builder, options
        self.outputs = set(graph.outputs)
        self.read: set[Entry] = set()

    @cached_property
    def consumers(self) -> dict[Entry, list[tuple[Node, int]]]:
        return self.graph.consumers()

    @property
    def is_inference(self) -> bool:
        """True when parameters stay as they are: no training-mode operators, and no gradient is asked for."""
        return not self.options.is_train and not self.options.wants_gradients

    @cached_property
    def static(self) -> set[Node]:
        """The nodes that depend on nothing but static arguments and constants."""
        return static_nodes(self.graph, self.options.static)

    @cached_property
    def phase(self) -> dict[Node, str]:
        """The phase of every operator node of the old graph."""
        return phases(self.graph, self.options.static)

    def new(self, entry: Entry) -> Entry:
        """The new graph's entry for the old graph's `entry`."""
        self.read.add(entry)
        return self.builder.map[entry]

    def seen_through(self, node: Node, deep: int = DEEPEST) -> list[Node]:
        """`node`, and the nodes between it and the entries that the rule has read: what it made takes their place."""
        found = [node]
        for entry in node.inputs if deep else ():
            if entry not in self.read and entry.node.op is not None:
                behind = self.seen_through(entry.node, deep - 1)
                if len(behind) > 1 or self.read.intersection(entry.node.inputs):
                    found += behind
        return found

    def producer(self, entry: Entry, *ops: str) -> Node | None:
        """The node behind `entry` when it is one of `ops` (and `entry` its first output)."""
        node = entry.node
        return node if node.op is not None and entry.index == 0 and node.op.name in ops else None

    def used_once(self, entry: Entry) -> bool:
        """True when one node reads `entry`, once, and the graph does not give it out."""
        return len(self.consumers.get(entry, ())) == 1 and entry not in self.outputs


RuleFunction = Callable[[Site, Node], Entry | None]


@dataclass(frozen=True)
class Rule:
    """A simplification of the first output of nodes of the operators `ops` (all of them when there are none named).

    apply: the new graph's entry for the node's output, or None, which leaves the node as it is.
    """

    name: str
    ops: tuple[str, ...]
    apply: RuleFunction


def rule(*ops: str) -> Callable[[RuleFunction], Rule]:
    """Make a function of (site, node) a rule for nodes of `ops`."""

    def wrap(function: RuleFunction) -> Rule:
        return Rule(function.__name__, ops, function)

    return wrap
