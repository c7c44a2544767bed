"""The passes, in their order."""
from __future__ import annotations

from collections.abc import Callable

from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.names import with_distinct_names
from mxc.compiler.graph.options import Options
from mxc.compiler.passes.blocked import blocked
from mxc.compiler.passes.cse import cse
from mxc.compiler.passes.decompose import decompose
from mxc.compiler.passes.gradient import gradient
from mxc.compiler.passes.layout import layout
from mxc.compiler.passes.loops import with_transformed_bodies
from mxc.compiler.passes.recompute import recompute
from mxc.compiler.passes.simplify import simplify
from mxc.compiler.transformation import check_order

INFERRED = ("shape", "dtype")  # the facts that are known before the first pass
PASSES = (gradient, decompose, simplify, cse, blocked, layout, recompute)
check_order(PASSES, INFERRED)


def transform(graph: Graph, options: Options, watch: Callable[[str, Graph, Graph], None] | None = None) -> Graph:
    """The graph, with inferred facts, after every pass. watch: told each pass's name, the graph before it and after.

    Nodes that the program gave one name have different ones from the start (graph/names.py). In the end the passes run
    over the bodies of loops.
    """
    graph = with_distinct_names(graph).as_origin()
    for each in PASSES:
        before = graph
        graph = each(graph, options)
        if watch is not None:
            watch(each.name, before, graph)
    return with_transformed_bodies(graph, options, transform)
