"""The gradients of a recorded graph as one plan: for structures that come again and again, as a training loop makes
them.

Plans have one arena, for nothing is kept in it from one backward to the next.
"""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops import table
from mxc.runtime.array import Array
from mxc.runtime.bundle import ValuePlace
from mxc.runtime.cached_op import CachedOp, Pools
from mxc.runtime.tape import Recorded

# Runs, operator by operator, after which a structure is compiled: what came three times is a loop, and will come again.
RUNS = 3
_pools: Pools = {}
Made = Sequence[tuple[Node, Sequence[ValuePlace]]]


def forget_memory() -> None:
    """Let go of the arena, and of what is bound in it, when the structures are forgotten."""
    _pools.clear()


class GradientPlans:
    """The plans of one structure, one for each set of heads that something is given for.

    made: the nodes of the gradients, without their inputs, and the places of these. known: how many recorded nodes
    there are; heads follow, then the nodes of `made`. sought: the places of the values that are wanted.
    """

    def __init__(self, made: Made, known: int, heads: int, sought: Sequence[ValuePlace]):
        self._made, self._known, self._first, self._sought = made, known, known + heads, sought
        self._runs, self._ops = 0, dict[tuple[bool, ...], tuple[CachedOp, list[ValuePlace]]]()

    @property
    def are_due(self) -> bool:
        """Whether the structure was run often enough, this time included, to be compiled."""
        self._runs += 1
        return self._runs > RUNS

    def run(self, nodes: Sequence[Recorded], heads: Sequence[Array], flowing: Sequence[Array | None], is_train: bool,
            targets: Sequence[Array | None]) -> list[Array]:
        """The values that are sought; where a target is given, in it, if nothing forbids that.

        nodes: the recorded graph. flowing: the gradient of each head; None for ones. Raises MXNetError where no plan
        can be made of the operators.
        """
        key = tuple([value is None for value in flowing])
        found = self._ops.get(key)
        if found is None:
            found = self._ops[key] = self._made_op(heads, key)
        op, places = found
        arrays: list[Array] = []
        for position, index in places:
            value = nodes[position].outputs[index] if position < self._known else flowing[position - self._known]
            assert value is not None
            arrays.append(value)
        return op(arrays, is_train, targets=targets)

    def _made_op(self, heads: Sequence[Array], are_ones: Sequence[bool]) -> tuple[CachedOp, list[ValuePlace]]:
        """The gradients as an op, and the places of its inputs."""
        entries, places = dict[ValuePlace, Entry](), list[ValuePlace]()

        def at(place: ValuePlace) -> Entry:
            if place not in entries:
                head = place[0] - self._known
                if head >= 0 and are_ones[head]:
                    ones, array = table.get("_ones"), heads[head]
                    params = ones.make_params({"shape": array.shape, "dtype": array.dtype})
                    entries[place] = Entry(Node(ones, f"head{head}", ones.attrs_of(params), params))
                else:
                    entries[place] = Entry(Node(None, f"value{len(places)}"))
                    places.append(place)
            return entries[place]

        for position, (node, inputs) in enumerate(self._made, self._first):
            assert node.op is not None
            made = Node(node.op, node.name, node.op.attrs_of(node.params), node.params, [at(place) for place in inputs])
            entries.update(((position, i), Entry(made, i)) for i in range(made.num_outputs))
        graph = Graph([at(place) for place in self._sought])
        read = {node.name for node in graph.variables}
        names = [f"value{i}" for i in range(len(places))]
        kept = [i for i, name in enumerate(names) if name in read]
        return (CachedOp(graph, [names[i] for i in kept], name="backward", pools=_pools), [places[i] for i in kept])
