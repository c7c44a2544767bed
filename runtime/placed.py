"""Graphs whose nodes are on several devices: a plan for each stretch of nodes on one device, and copies in between.

A stretch is a `CachedOp`, and runs when all stretches that it reads from have been placed in the engine's order; those
that do not depend on each other run at the same time, each on its device. In the tape each stretch and each copy is a
step, so gradients take the same ways back.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.runtime import node_calls
from mxc.runtime.array import Array
from mxc.runtime.cached_op import CachedOp, Watch
from mxc.runtime.context import Context
from mxc.runtime.device_copy import record_copy
from mxc.runtime.segments import stretch


class _Stretch(NamedTuple):
    """Nodes on one device as an op, with what it reads and makes."""

    place: Context
    op: CachedOp
    read: list[Entry]
    made: list[Entry]


class PlacedOp:
    """A graph as an operator on arrays. inputs: names of the variables, in the order in which calls give their arrays.
    places: the device of each node. name: for people."""

    def __init__(self, graph: Graph, inputs: Sequence[str], places: Mapping[Node, Context], name: str):
        self.graph, self.inputs, self.places = graph, tuple(inputs), places
        self._stretches = [_Stretch(place, *stretch(graph, nodes, f"{name}_{number}"))
                           for number, (place, nodes) in enumerate(_in_order(graph, places))]

    def __call__(self, arrays: Sequence[Array], is_train: bool | None = None,
                 watch: Watch | None = None) -> list[Array]:
        """The outputs of the graph on `arrays`, each on its node's device; recorded when the thread records.

        is_train: None for this thread's mode. watch: is told every operator's node with its inputs and outputs; all run
        one by one then. Raises MXNetError when the arrays do not fit the graph.
        """
        given = dict(zip(self.inputs, arrays, strict=True))
        values = {Entry(node): given[node.name] for node in self.graph.variables}
        copies: dict[tuple[Entry, Context], Array] = {}

        def on(place: Context, entries: Sequence[Entry]) -> list[Array]:
            found = []
            for entry in entries:
                array = values[entry]
                if array.context != place:
                    if (entry, place) not in copies:
                        copies[entry, place] = record_copy(array, array.copied(context=place))
                    array = copies[entry, place]
                found.append(array)
            return found

        if watch is None:
            for place, op, read, made in self._stretches:
                with place:  # where nodes without inputs make their arrays
                    values.update(zip(made, op(on(place, read), is_train), strict=True))
        else:
            for node in self.graph.nodes:
                if not node.is_variable:
                    with self.places[node]:
                        inputs = on(self.places[node], node.inputs)
                        outputs = node_calls.apply(node, inputs, is_train)
                    values.update((Entry(node, i), array) for i, array in enumerate(outputs))
                    watch(node, inputs, outputs)
        return [values[entry] for entry in self.graph.outputs]


def _in_order(graph: Graph, places: Mapping[Node, Context]) -> list[tuple[Context, list[Node]]]:
    """The nodes in stretches of one device each, in an order in which they can run. A node's stage is how often values
    change the device on the way to it."""
    stage: dict[Node, int] = {}
    for node in graph.nodes:
        stage[node] = max((stage[e.node] + (not e.node.is_variable and places[e.node] != places[node])
                           for e in node.inputs), default=0)
    order = {place: number for number, place in enumerate(dict.fromkeys(places.values()))}

    def key(node: Node) -> tuple[int, int]:
        return stage[node], order[places[node]]

    nodes = sorted((node for node in graph.nodes if not node.is_variable), key=key)
    return [(places[those[0]], those) for _, group in groupby(nodes, key) if (those := list(group))]
