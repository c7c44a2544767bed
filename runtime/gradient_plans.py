"""Gradients of recorded graphs as plans: for structures that come again and again, as a training loop makes them.

Plans have one arena, for nothing is kept in it from one backward to the next.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.system.forks import Lock
from mxc.runtime.array import Array
from mxc.runtime.bundle import ValuePlace
from mxc.runtime.cached_op import CachedOp, Pools

# Runs, operator by operator, after which a structure is compiled: what came three times is a loop, and will come again.
RUNS = 3
_pools: Pools = {}


def forget_memory() -> None:
    """Let go of the arena, and of what is bound in it, when the structures are forgotten."""
    _pools.clear()


class GradientPlan:
    """Nodes of gradients that follow each other, as one plan.

    made: the nodes, without their inputs, and the places of these. first: the position of the first one; the others
    follow. sought: the places of the values that are wanted, all of them made here. reads: what the nodes read, each
    place as often as they do.
    """

    def __init__(self, made: Sequence[tuple[Node, Sequence[ValuePlace]]], first: int, sought: Sequence[ValuePlace]):
        self._made, self._first, self.sought = made, first, sought
        self.reads = [place for _, inputs in made for place in inputs]
        self._runs, self._lock = 0, Lock()
        self._op: tuple[CachedOp, list[ValuePlace]] | None = None  # and the places of its inputs

    @property
    def is_due(self) -> bool:
        """Whether the nodes have run often enough, this time included, to be compiled."""
        self._runs += 1
        return self._runs > RUNS

    def run(self, values: Mapping[ValuePlace, Array], is_train: bool,
            targets: Mapping[ValuePlace, Array]) -> list[Array]:
        """The values that are sought; where a target is given, in it, unless they are another's too.

        values: of all places that are read here; no target shares memory with one of them. Raises MXNetError where no
        plan can be made of the operators.
        """
        if self._op is None:
            with self._lock:  # threads may train at once
                self._op = self._op or self._made_op()
        op, places = self._op
        return op([values[place] for place in places], is_train,
                  targets=[targets.get(place) for place in self.sought] if targets else None)

    def _made_op(self) -> tuple[CachedOp, list[ValuePlace]]:
        entries, places = dict[ValuePlace, Entry](), list[ValuePlace]()

        def at(place: ValuePlace) -> Entry:
            if place not in entries:
                entries[place] = Entry(Node(None, f"value{len(places)}"))
                places.append(place)
            return entries[place]

        for position, (node, inputs) in enumerate(self._made, self._first):
            assert node.op is not None
            made = Node(node.op, node.name, node.op.attrs_of(node.params), node.params, [at(place) for place in inputs])
            entries.update(((position, i), Entry(made, i)) for i in range(made.num_outputs))
        graph = Graph([entries[place] for place in self.sought])
        return CachedOp(graph, [f"value{i}" for i in range(len(places))], name="backward", pools=_pools), places
