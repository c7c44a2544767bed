"""Dtype inference over a whole graph, forward and backward, from partial knowledge."""
from __future__ import annotations

from collections.abc import Mapping

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.ops.infer import infer_dtypes, merge_dtype
from mxc.compiler.passes.infer_shape import Propagation, check_names, with_context
from mxc.compiler.passes.stated import attribute_dtype

DEFAULT = "float32"


def infer_dtype(graph: Graph, known: Mapping[str, str | None], partial: bool = False) -> list[list[str | None]]:
    """The dtypes of every node's outputs, by node id and output index, as NumPy's names.

    known: dtypes of variables by name. A variable that is not named there has the dtype its `__dtype__` attribute
    gives. Without `partial`, a variable whose dtype follows from nothing is float32, one after the other in the order
    of ids, each followed by another inference; with it, it stays None.

    Raises MXNetError when dtypes contradict each other (naming operator, node, its inputs' dtypes and the given
    dtypes), for a name that is no variable of the graph, and, without `partial`, for outputs that stay unknown.
    """
    check_names(graph, known)
    dtypes: list[list[str | None]] = []
    for node in graph.nodes:
        dtypes.append([None] * node.num_outputs)
        if node.is_variable:
            dtype = known.get(node.name)
            dtypes[-1][0] = attribute_dtype(node) if dtype is None else dtype

    propagation = Propagation(graph, dtypes, infer_dtypes, merge_dtype)
    with_context(lambda: propagation.run(graph.nodes), "dtypes", known)
    if partial:
        return dtypes
    for node in graph.variables:
        if dtypes[graph.ids[node]][0] is None:
            dtypes[graph.ids[node]][0] = DEFAULT
            readers = propagation.readers.get(Entry(node), ())
            with_context(lambda readers=readers: propagation.run(readers), "dtypes", known)  # type: ignore[misc]
    for node in graph.nodes:
        if None in dtypes[graph.ids[node]]:
            raise MXNetError(f"the dtype of output {dtypes[graph.ids[node]].index(None)} of {node!r} does not follow "
                             "from the arguments' dtypes")
    return dtypes
