"""Storage types over a graph: how each output is kept, from how the variables are (compiler/ops/storage.py)."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.sparse_form import form_of
from mxc.compiler.ops.storage import DEFAULT


def infer_storage(graph: Graph, stypes: Mapping[str, str], known: Mapping[Any, Sequence[str]] | None = None,
                  ) -> list[tuple[str, ...]]:
    """The storage types of every node's outputs, by node id.

    stypes: those of variables by name; others are dense. known: of nodes whose outputs are there.
    """
    found: list[tuple[str, ...]] = []
    for node in graph.nodes:
        if known is not None and node in known:
            found.append(tuple(known[node]))
        elif node.op is None:
            found.append((stypes.get(node.name, DEFAULT),))
        elif "sparse" not in node.op.rules:
            found.append((DEFAULT,) * node.num_outputs)
        else:
            ins = tuple(found[graph.ids[entry.node]][entry.index] for entry in node.inputs)
            found.append(form_of(node.op, node.params, ins).outs)
    return found


def kept_in_parts(graph: Graph, found: Sequence[tuple[str, ...]]) -> set[Node]:
    """The operators that read or make an array that is kept in parts. found: what `infer_storage` gives."""
    dense = {DEFAULT}
    return {node for node in graph.nodes if node.op is not None and (
        {*found[graph.ids[node]]} != dense
        or any(found[graph.ids[entry.node]][entry.index] != DEFAULT for entry in node.inputs))}


def dense_instead(graph: Graph, found: Sequence[tuple[str, ...]], wanted: Iterable[Entry]) -> dict[Node, Params]:
    """Other parameters for the operators whose parameters say how their output is kept: dense, where nobody needs it in
    parts. found: what `infer_storage` gives. wanted: what is to be kept in parts if it can be."""
    def is_kept(entry: Entry) -> bool:
        return found[graph.ids[entry.node]][entry.index] != DEFAULT

    needed: set[Node] = set()
    stack = [entry.node for entry in wanted if is_kept(entry)]
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += [entry.node for entry in node.inputs if is_kept(entry)]
    return {node: Params({**node.params, name: DEFAULT}) for node in graph.nodes
            for name in ("stype", "forward_stype") if name in node.params and node not in needed}


def is_dense(graph: Graph) -> bool:
    """Whether every array of a graph is dense where its variables are."""
    return not kept_in_parts(graph, infer_storage(graph, {}))
