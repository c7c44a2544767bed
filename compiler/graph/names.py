"""Gives nodes different names: a program may call two nodes alike, as in MXNet, but passes and printed graphs may not.

Variables keep their names, and so does the first operator of a name; the second is NAME#2.
"""
from __future__ import annotations

import itertools
from collections.abc import Container, Iterable

from mxc.compiler.graph.graph import Entry, Graph, Node


def distinct_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """A name for each node, no two alike: its own wherever that can be."""
    ordered = list(nodes)
    names: dict[Node, str] = {}
    own: dict[str, Node] = {}  # name -> the node that keeps it
    for node in sorted(ordered, key=lambda node: not node.is_variable):
        own.setdefault(node.name, node)
    taken = set(own)
    for node in ordered:
        names[node] = node.name if own[node.name] is node else free_name(node.name, taken)
        taken.add(names[node])
    return names


def free_name(name: str, taken: Container[str]) -> str:
    """The first of NAME#2, NAME#3, ... that is not taken."""
    return next(each for i in itertools.count(2) if (each := f"{name}#{i}") not in taken)


def with_distinct_names(graph: Graph) -> Graph:
    """The graph, its nodes named as `distinct_names` says; itself where names differ already."""
    names = distinct_names(graph.nodes)
    if all(node.name == name for node, name in names.items()):
        return graph
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = [Entry(new[e.node], e.index) for e in node.inputs]
        same = inputs == node.inputs and names[node] == node.name
        new[node] = node if same else Node(node.op, names[node], node.attrs, node.params, inputs, node.subgraphs)
    return Graph([Entry(new[e.node], e.index) for e in graph.outputs], graph.sinks, graph.facts)


def head_position(name: str) -> int:
    """The output whose head gradient is the variable of that name."""
    return int(name.rpartition("_")[2])
