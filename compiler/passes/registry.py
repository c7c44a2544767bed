"""What a graph pass is, and what happens around each run of it."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import graph_text
from mxc.compiler.system import env
from mxc.compiler.transformation import Transformation

PassFunction = Callable[[Graph, Options], Graph]


@dataclass(frozen=True)
class GraphPass(Transformation):
    """A pass; calling it runs it, then checks the result (MXC_CHECK) and prints it (MXC_DEBUG=3, MXC_PRINT).

    Of its facts, "shape" and "dtype" mean that shapes and dtypes of all entries are known; other names are the passes'
    own.
    """

    def __call__(self, graph: Graph, options: Options) -> Graph:
        """The graph after this pass. Raises MXNetError when MXC_CHECK finds it broken."""
        if self.is_skipped:
            return graph
        start = time.perf_counter()
        result: Graph = self.function(graph, options)
        seconds = time.perf_counter() - start
        if env.flag("MXC_CHECK"):
            try:
                check_graph(result)
            except MXNetError as error:
                raise MXNetError(f"the graph is broken after pass {self.name}: {error}") from error
        if self.is_printed:
            text = graph_text(result)
            if text == graph_text(graph):
                self.print_unchanged(seconds)
            else:
                self.print_change(f"{len(graph.nodes)} -> {len(result.nodes)} nodes", text, seconds)
        return result


def graph_pass(needs: Iterable[str] = (), gives: Iterable[str] = ()) -> Callable[[PassFunction], GraphPass]:
    """Make a function of (graph, options) a pass of the function's name."""

    def wrap(function: PassFunction) -> GraphPass:
        return GraphPass(function.__name__, function, tuple(needs), tuple(gives))

    return wrap
