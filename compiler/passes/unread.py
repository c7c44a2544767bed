"""What inference does not read: labels, which losses read in training alone."""
from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape, Sink, variable
from mxc.compiler.graph.options import Options
from mxc.compiler.ops.infer import is_complete
from mxc.compiler.passes.decompose import decompose
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.infer_shape import infer_shape


def without_unread(graph: Graph, shapes: Mapping[str, Shape], names: Set[str]) -> Graph:
    """The graph, where an operator that does not read an input in inference gets a variable in its place, if that input
    is computed from variables in `names` alone. The variable has the name of the one that it stands for.

    So the shapes of what is not read need not be known: they follow from the operator. shapes: of variables. The graph
    stays as it is where one name would stand for two variables then.
    """
    found = infer_shape(graph, shapes, partial=True)
    types = infer_dtype(graph, {}, partial=True)
    below: dict[Node, frozenset[str]] = {}  # the variables that a node is computed from
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        below[node] = frozenset((node.name,)) if node.is_variable else \
            frozenset[str]().union(*(below[e.node] for e in node.inputs))
        inputs = [Entry(new[e.node], e.index) for e in node.inputs]
        cut = [i for i, e in enumerate(node.inputs)
               if not e.node.is_variable and len(below[e.node]) == 1 and below[e.node] <= names]
        if cut:
            facts = [(found[graph.ids[e.node]][e.index], types[graph.ids[e.node]][e.index]) for e in node.inputs]
            for i in {*cut} - _read(node, facts):
                inputs[i] = Entry(variable(min(below[node.inputs[i].node])))
        new[node] = node if inputs == node.inputs else Node(node.op, node.name, node.attrs, node.params, inputs,
                                                            node.subgraphs)
    made = Graph([Entry(new[e.node], e.index) for e in graph.outputs], graph.sinks)
    left = [node.name for node in made.variables]
    return graph if len({*left}) < len(left) else made


def _read(node: Node, facts: Sequence[tuple[Shape | None, str | None]]) -> set[int]:
    """The positions of the inputs that the operator reads in inference; all where that is not known."""
    assert node.op is not None
    everything = {*range(len(facts))}
    if "decompose" not in node.op.rules or not all(is_complete(shape) for shape, _ in facts):
        return everything
    builder = GraphBuilder()
    inputs = [builder.variable(f"i{i}", shape or (), dtype or "float32") for i, (shape, dtype) in enumerate(facts)]
    try:
        outputs = builder.add(Node(node.op, node.name, None, node.params, inputs))
        made = builder.finish(outputs, [Sink("output", "")] * len(outputs))
        parts = decompose.function(made, Options(None))  # type: ignore[arg-type]  # no target: as draws() there
    except MXNetError:
        return everything
    return {i for i, entry in enumerate(inputs) if entry.node in parts.ids}
