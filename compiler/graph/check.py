"""The check that MXC_CHECK=1 runs on the graph after every pass."""
from __future__ import annotations

from collections.abc import Iterator

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Graph, Node
from mxc.compiler.ops.infer import infer_node, input_names

_KINDS = ("output", "grad", "aux")
_MODES = ("write", "add")


def check_graph(graph: Graph) -> None:
    """Raise MXNetError listing everything that is wrong with a typed graph.

    Checked: ids are dense and inputs come before users; every node has as many inputs as its operator takes, and only
    outputs that exist are used; nodes' names differ; every entry has a complete shape and a dtype, and they are
    what inference says; there is one sink for each output, of a known kind, and a gradient or a new auxiliary value
    has the shape and dtype of its variable; where origins are known, those of all operators are.
    """
    wrong = [*_order(graph)]
    wrong = wrong or [*_arity(graph)]
    wrong = wrong or [*_names(graph), *_facts(graph)]
    wrong = wrong or [*_sinks(graph), *_origins(graph)]
    if wrong:
        raise MXNetError("\n".join(wrong))


def _order(graph: Graph) -> Iterator[str]:
    if graph.ids != {node: i for i, node in enumerate(graph.nodes)}:
        yield "ids are not the places in the list of nodes"
        return
    for i, node in enumerate(graph.nodes):
        for entry in node.inputs:
            if graph.ids.get(entry.node, i) >= i:
                yield f"{node!r} reads {entry.node!r}, which does not come before it"
    for entry in graph.outputs:
        if entry.node not in graph.ids:
            yield f"output {entry.node!r} is not in the graph"


def _arity(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if node.op is None:
            if node.inputs:
                yield f"variable {node.name!r} has inputs"
        elif len(input_names(node)) != len(node.inputs):
            yield f"{node!r} takes {', '.join(input_names(node)) or 'no inputs'}; it has {len(node.inputs)} inputs"
        for entry in node.inputs:
            if not 0 <= entry.index < entry.node.num_outputs:
                yield f"{node!r} reads output {entry.index} of {entry.node!r}, which has {entry.node.num_outputs}"
    for entry in graph.outputs:
        if not 0 <= entry.index < entry.node.num_outputs:
            yield f"output {entry.index} of {entry.node!r}, which has {entry.node.num_outputs}, is an output"


def _names(graph: Graph) -> Iterator[str]:
    seen: set[str] = set()
    for node in graph.nodes:
        if node.name in seen:
            yield f"two nodes have the name {node.name!r}"
        seen.add(node.name)


def _facts(graph: Graph) -> Iterator[str]:
    facts = graph.facts
    if len(facts.shape) != len(graph.nodes) or len(facts.dtype) != len(graph.nodes):
        yield f"facts on {len(facts.shape)} shapes and {len(facts.dtype)} dtypes for {len(graph.nodes)} nodes"
        return
    for i, node in enumerate(graph.nodes):
        shapes, dtypes = facts.shape[i], facts.dtype[i]
        if len(shapes) != node.num_outputs or len(dtypes) != node.num_outputs or None in shapes or None in dtypes:
            yield f"{node!r} has {node.num_outputs} outputs; known are shapes {shapes} and dtypes {dtypes}"
            return
        if node.op is not None and not node.is_control_flow:
            yield from _inferred(graph, node)


def _inferred(graph: Graph, node: Node) -> Iterator[str]:
    i = graph.ids[node]
    try:
        shapes, dtypes = infer_node(node, [graph.shape(e) for e in node.inputs], [graph.dtype(e) for e in node.inputs])
    except MXNetError as error:
        yield str(error)
        return
    if shapes != graph.facts.shape[i] or dtypes != graph.facts.dtype[i]:
        yield (f"{node!r} is stated to give {graph.facts.dtype[i]} {graph.facts.shape[i]}; "
               f"inference gives {dtypes} {shapes}")


def _origins(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        if node.op is not None and graph.origins and not graph.origin(node):
            yield f"nothing says which node of the model {node!r} came from"


def _sinks(graph: Graph) -> Iterator[str]:
    if len(graph.sinks) != len(graph.outputs):
        yield f"{len(graph.sinks)} sinks for {len(graph.outputs)} outputs"
        return
    variables = {node.name: node for node in graph.variables}
    for entry, sink in zip(graph.outputs, graph.sinks, strict=True):
        if sink.kind not in _KINDS or sink.mode not in _MODES:
            yield f"{sink} is no sink; its kind is one of {', '.join(_KINDS)}, its mode one of {', '.join(_MODES)}"
        elif sink.kind != "output" and sink.name in variables:
            node = variables[sink.name]
            stated = graph.facts.dtype[graph.ids[node]][0], graph.facts.shape[graph.ids[node]][0]
            if (graph.dtype(entry), graph.shape(entry)) != stated:
                yield (f"{sink.kind} of {sink.name!r} is {graph.dtype(entry)} {graph.shape(entry)}; "
                       f"the variable is {stated[0]} {stated[1]}")
