"""A symbol as a picture made by Graphviz."""
from __future__ import annotations

import importlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.infer_shape import infer_shape
from mxc.visualization.table import symbol_graph

WEIGHTS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")
BOX = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}
INPUT, OTHER = "#8dd3c7", "#fccde5"
COLOURS = {
    **dict.fromkeys(("Convolution", "Deconvolution", "FullyConnected"), "#fb8072"),
    "BatchNorm": "#bebada", **dict.fromkeys(("Activation", "LeakyReLU"), "#ffffb3"), "Pooling": "#80b1d3",
    **dict.fromkeys(("Concat", "Flatten", "Reshape"), "#fdb462"),
}


def plot_network(symbol: Any, title: str = "plot", save_format: str = "pdf",
                 shape: Mapping[str, Sequence[int]] | None = None, dtype: Mapping[str, Any] | None = None,
                 node_attrs: Mapping[str, str] | None = None, hide_weights: bool = True) -> Any:
    """A `graphviz.Digraph` of the network: a node for each operator and input, an arrow from what is read.

    title: the picture's name, and its file's. save_format: of the file that the Digraph's `render` and `view` make.
    shape: of the inputs; then each arrow has the shape of what flows, without the batch. dtype: of the inputs; then
    the arrow has its dtype too. node_attrs: Graphviz attributes of all nodes. hide_weights: leave out variables whose
    names end as weights' do (`_weight`, `_bias`, `_gamma`, ...).

    Raises TypeError when `symbol` is no Symbol or `node_attrs` no dict, ValueError when `shape` leaves shapes open,
    and MXNetError when the package graphviz is missing: `pip install 'mxc-compiler[plot]'`.

    >>> mx.viz.plot_network(net, shape={"data": (1, 3, 224, 224)}).render("net")
    """
    graph = symbol_graph(symbol)
    if node_attrs is not None and not isinstance(node_attrs, Mapping):
        raise ArgumentTypeError(f"node_attrs must be a dict of Graphviz attributes, got {type(node_attrs)}")
    try:
        graphviz = importlib.import_module("graphviz")
    except ImportError:
        raise MXNetError("plot_network needs the Python package graphviz: pip install 'mxc-compiler[plot]', and the "
                         "programs of graphviz.org to draw its result") from None
    facts = _Facts(graph, shape, dtype)
    names = _unique_names(graph)
    dot = graphviz.Digraph(name=title, format=save_format)
    hidden = {node for node in graph.variables if hide_weights and node.name.endswith(WEIGHTS)}
    for node in graph.nodes:
        if node in hidden or (node.is_variable and node.name.endswith(WEIGHTS)):
            continue  # weights that are not hidden are made by their arrows, plain
        attributes = {**BOX, **(node_attrs or {}), "fillcolor": _colour(node)}
        if node.is_variable:
            attributes["shape"] = "oval"
        dot.node(name=names[node], label=_label(node), **attributes)
    for node in graph.nodes:
        for entry in node.inputs:
            if entry.node not in hidden:
                dot.edge(tail_name=names[node], head_name=names[entry.node], dir="back", arrowtail="open",
                         label=facts.text(entry))
    return dot


class _Facts:
    """What is written beside an arrow."""

    def __init__(self, graph: Graph, shape: Mapping[str, Sequence[int]] | None, dtype: Mapping[str, Any] | None):
        from mxc.runtime.array import dtype_name

        self.graph = graph
        self.shapes = None if shape is None else infer_shape(graph, shape, partial=True)
        if self.shapes is not None and any(s is None or 0 in s for found in self.shapes for s in found):
            raise ArgumentError("Input shape is incomplete: give the shape of every input")
        types = None if dtype is None else {name: dtype_name(given) for name, given in dtype.items()}
        self.dtypes = None if types is None else infer_dtype(graph, types)

    def text(self, entry: Entry) -> str:
        place, text = self.graph.ids[entry.node], ""
        if self.shapes is not None:
            text = "x".join(str(d) for d in (self.shapes[place][entry.index] or ())[1:])
        return text if self.dtypes is None else f"{text}({self.dtypes[place][entry.index]})"


def _unique_names(graph: Graph) -> dict[Node, str]:
    """The nodes' names; where several have one, further ones get a number, so that they stay apart."""
    counts = Counter(node.name for node in graph.nodes)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        warnings.warn(f"several nodes of the graph have the same name, and are numbered: {', '.join(repeated)}",
                      RuntimeWarning, stacklevel=3)
    seen: Counter[str] = Counter()
    names = {}
    for node in graph.nodes:
        seen[node.name] += 1
        names[node] = node.name if seen[node.name] == 1 else f"{node.name} ({seen[node.name]})"
    return names


def _colour(node: Node) -> str:
    return INPUT if node.op is None else COLOURS.get(node.op.name, OTHER)


def _label(node: Node) -> str:
    """The operator and what matters of its parameters, or the node's name."""
    if node.op is None:
        return node.name
    params = node.params
    name = node.op.name
    if name in ("Convolution", "Deconvolution"):
        return f"{name}\n{_window(params)}, {params['num_filter']}"
    if name == "FullyConnected":
        return f"{name}\n{params['num_hidden']}"
    if name in ("Activation", "LeakyReLU"):
        return f"{name}\n{params['act_type']}"
    if name == "Pooling":
        window = _window(params) if params["kernel"] else "global"
        return f"{name}\n{params['pool_type']}, {window}"
    return node.name


def _window(params: Any) -> str:
    """Kernel and stride: `3x3/2x2`, `3x3/1` without a stride."""
    return f"{'x'.join(map(str, params['kernel']))}/{'x'.join(map(str, params['stride'])) or '1'}"
