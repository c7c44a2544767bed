"""Inference over a whole graph, which gives the typed graph that every pass starts from."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Facts, Graph, Node
from mxc.compiler.ops.infer import Shape
from mxc.compiler.ops.operator import Params
from mxc.compiler.passes.control_flow import with_loops
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.infer_shape import infer_shape


def infer(graph: Graph, shapes: Mapping[str, Sequence[int] | None], dtypes: Mapping[str, str | None],
          numpy: bool = False) -> Graph:
    """`graph` with the shape and dtype of every entry, from those of (some) variables.

    Creation operators whose shape was completed by their users (`_zeros` of (2, 0, 200)) carry it in their parameters
    afterwards, so that each node's facts follow from the node alone. MXNet's operators of control flow become loops.
    numpy: 0 and () in parameters are extents.
    Raises MXNetError as `infer_shape`, `infer_dtype` and `with_facts` do.
    """
    _check_operators(graph)
    # Where every variable's shape is given, a 0 in one is an extent; else it may be an unknown dimension.
    whole = all(shapes.get(node.name) is not None for node in graph.variables)
    return _typed(graph, infer_shape(graph, shapes, numpy=whole, numpy_params=numpy), infer_dtype(graph, dtypes), numpy)


def with_facts(graph: Graph, shapes: Sequence[Sequence[Shape | None]], dtypes: Sequence[Sequence[str | None]],
               numpy: bool = False) -> Graph:
    """What `infer` gives, from the complete shapes and dtypes of every node's outputs. numpy: as for `infer`.

    Raises MXNetError for an operator that changes arrays in place, and for parameters with values that it refuses.
    """
    _check_operators(graph)
    return _typed(graph, shapes, dtypes, numpy)


def _typed(graph: Graph, shapes: Sequence[Sequence[Shape | None]], dtypes: Sequence[Sequence[str | None]],
           numpy: bool) -> Graph:
    return with_loops(_completed_graph(graph, shapes, dtypes), partial(infer, numpy=numpy))


def _completed_graph(graph: Graph, shapes: Sequence[Sequence[Shape | None]],
                     dtypes: Sequence[Sequence[str | None]]) -> Graph:
    facts = Facts([*map(list, shapes)], [*map(list, dtypes)])
    if all(_completed(node, found[0]) is node.params for node, found in zip(graph.nodes, facts.shape, strict=True)):
        return graph.with_facts(facts)
    new: dict[Node, Node] = {}
    for node, found in zip(graph.nodes, facts.shape, strict=True):
        inputs = [Entry(new[e.node], e.index) for e in node.inputs]
        params = _completed(node, found[0])
        if inputs == node.inputs and params is node.params:
            new[node] = node
        else:
            new[node] = Node(node.op, node.name, node.attrs, params, inputs, node.subgraphs)
    return Graph([Entry(new[e.node], e.index) for e in graph.outputs], graph.sinks, facts)


def _check_operators(graph: Graph) -> None:
    for node in graph.nodes:
        wrong = "" if node.op is None else node.op.refusal(node.params)
        if wrong:
            raise MXNetError(f"{node!r}: {wrong}")
        if node.op is not None and node.op.in_place:
            raise MXNetError(f"node {node.name!r}: operator {node.op.name} changes arrays in place, which no graph "
                             f"does; call mx.nd.{node.op.name} on the arrays")


def _completed(node: Node, shape: Shape | None) -> Params:
    """The node's parameters, with the inferred shape when it makes an array of a shape that was left open."""
    params = node.params
    if node.op is None or node.inputs or "shape" not in params or params.shape == shape:
        return params
    return Params({**params, "shape": shape})
