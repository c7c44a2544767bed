"""What the compiler makes of a graph whose shapes and dtypes are known, where nothing is to run: without any array."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mxc.compiler import api
from mxc.compiler.graph.graph import Entry, Graph, Shape

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget


def compiled(graph: Graph, grad_req: Mapping[str, str], is_train: bool, target: KernelTarget | None = None) -> Any:
    """A compiler.api.Compiled of a graph with facts, for inference or for a training step with these gradients.
    target: None for this machine's CPU."""
    return api.compile_graph(graph, *_facts_of(graph), grad_req if is_train else {}, is_train, target)


def watch_passes(graph: Graph, grad_req: Mapping[str, str], is_train: bool,
                 watch: Callable[[str, Graph, Graph], None]) -> None:
    """Tell `watch` what each pass makes of such a graph: its name, the graph before it and after it."""
    api.watch_passes(graph, *_facts_of(graph), grad_req if is_train else {}, is_train, watch)


def _facts_of(graph: Graph) -> tuple[dict[str, Shape], dict[str, str]]:
    """The shapes and the dtypes of a graph's variables, by name."""
    variables = [Entry(node) for node in graph.variables]
    return {e.node.name: graph.shape(e) for e in variables}, {e.node.name: graph.dtype(e) for e in variables}
