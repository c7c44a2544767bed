"""Where the nodes of a graph run: on the device of their `ctx_group`, or with their neighbours."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Graph, Node

GROUP = "__ctx_group__"
Device = TypeVar("Device")


def place_nodes(graph: Graph, groups: Mapping[str, Device], variables: Mapping[str, Device]) -> dict[Node, Device]:
    """The device of every node, by MXNet's rules.

    groups: the device of each group, one at least. variables: where the arrays of variables are, by name.
    A node is on its group's device, and a variable in no group where its array is. Another node is where the first of
    its inputs is that has a device; where none has one, with the last node that reads it; else on the device of the
    group whose name comes first. Raises MXNetError for a node of a group that has no device, and for an auxiliary state
    elsewhere than the node that changes it.
    """
    placed: dict[Node, Device] = {}
    for node in graph.nodes:
        group = node.attrs.get(GROUP)
        if group is not None:
            if group not in groups:
                raise MXNetError(f"node {node.name!r} is in the group {group!r}, which has no context in group2ctx; it "
                                 f"names {', '.join(sorted(groups))}")
            placed[node] = groups[group]
        elif node.is_variable:
            placed[node] = variables[node.name]
        else:
            found = next((entry.node for entry in node.inputs if entry.node in placed), None)
            if found is not None:
                placed[node] = placed[found]
    for node in reversed(graph.nodes):
        if node in placed:
            for entry in node.inputs:
                placed.setdefault(entry.node, placed[node])
    first = groups[min(groups)]
    for node in graph.nodes:
        placed.setdefault(node, first)
        for entry in node.states:
            if placed[entry.node] != placed[node]:
                raise MXNetError(f"the auxiliary state {entry.node.name!r} is on {placed[entry.node]}, but node "
                                 f"{node.name!r}, which changes it, on {placed[node]}: put both in one group")
    return placed
