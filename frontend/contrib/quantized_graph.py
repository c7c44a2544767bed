"""Graphs whose layers compute over numbers of 8 bits, made of graphs in float32.

`quantize` puts `quantized_NAME` in the place of a layer NAME, with `quantize_v2` before what is not quantized yet,
`requantize` behind sums in int32, and `dequantize` where a layer that stays in float32 reads on. `calibrate` states
ranges in it. Names and attributes are those that MXNet gives.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.compose import inner_params, output_name, place_name
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table

# The operator over numbers of 8 bits of each operator that has one.
QUANTIZED = {
    "Convolution": "_contrib_quantized_conv", "FullyConnected": "_contrib_quantized_fully_connected",
    "Pooling": "_contrib_quantized_pooling", "Flatten": "_contrib_quantized_flatten",
    "Activation": "_contrib_quantized_act", "Concat": "_contrib_quantized_concat",
    "elemwise_add": "_contrib_quantized_elemwise_add", "elemwise_mul": "_contrib_quantized_elemwise_mul",
    "BatchNorm": "_contrib_quantized_batch_norm", "Embedding": "_contrib_quantized_embedding",
    "_sg_mkldnn_conv": "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected": "_sg_mkldnn_fully_connected",
}
# Those that are worth it by themselves; the others are in mode `smart` only between these.
ALWAYS = ("Convolution", "FullyConnected", "_sg_mkldnn_conv", "_sg_mkldnn_fully_connected")
SUMMED = ("Convolution", "FullyConnected", "elemwise_add", "elemwise_mul", "_sg_mkldnn_conv",
          "_sg_mkldnn_fully_connected")  # results are int32
TRUE = {"_sg_mkldnn_conv": "true", "_sg_mkldnn_fully_connected": "True"}  # how these write that they are quantized
RANGE = ("min_calib_range", "max_calib_range")
CALIBRATED = ("_contrib_quantize_v2", "_contrib_requantize", "_contrib_quantized_batch_norm")
Triple = tuple[Entry, Entry, Entry]


def made(op: str, name: str, attrs: Mapping[str, str], inputs: list[Entry], subgraphs: list[Graph] | None = None,
         ) -> Node:
    """A node, with what its subgraphs tell."""
    operator = table.get(op)
    params = inner_params(operator, operator.parse_attrs(attrs, name), subgraphs or [])
    return Node(operator, name, dict(attrs), params, inputs, subgraphs or [])


def moved(node: Node, inputs: list[Entry]) -> Node:
    """The node over other inputs; itself where these are the same."""
    return node if inputs == node.inputs else Node(node.op, node.name, node.attrs, node.params, inputs, node.subgraphs)


def _can(node: Node) -> bool:
    """Whether a node may be put in 8 bits."""
    if node.op is None or node.op.name not in QUANTIZED:
        return False
    return {"Pooling": lambda p: p.pool_type in ("max", "avg"), "Activation": lambda p: p.act_type == "relu",
            "Concat": lambda p: p.dim > 0}.get(node.op.name, lambda p: True)(node.params)


def _eight_bits(node: Node, channel_wise: bool) -> list[int]:
    """Which of a node's inputs are put in 8 bits."""
    assert node.op is not None
    names, op = node.op.all_names(node.params), node.op.name
    if op == "BatchNorm":
        chosen: Collection[str] = ("data",)
    elif op == "Embedding":
        chosen = ("weight",)
    elif op == "_sg_mkldnn_conv":
        chosen = ("data", "sum")
    elif op == "_sg_mkldnn_fully_connected" and channel_wise:
        chosen = ("data",)
    else:
        chosen = names
    return [i for i, name in enumerate(names) if name in chosen]


@dataclass
class Quantization:
    """What a graph is quantized by. excluded: names of nodes and of operators that stay in float32. offline: the
    variables whose numbers of 8 bits are computed beforehand. dtype: int8, uint8 or auto. smart: only what is worth it
    and what lies between. channel_wise: a range for each row of the weight of a fused product."""

    excluded_names: Collection[str] = ()
    excluded_operators: Collection[str] = ()
    offline: Collection[str] = ()
    dtype: str = "int8"
    smart: bool = False
    channel_wise: bool = False
    floats: dict[Entry, Entry] = field(default_factory=dict)  # an entry of the old graph in float32
    eights: dict[Entry, Triple] = field(default_factory=dict)  # in 8 bits, with its range

    def chosen(self, graph: Graph) -> set[Node]:
        """The nodes that are put in 8 bits."""
        able = {node for node in graph.nodes if _can(node) and node.name not in self.excluded_names
                and node.op is not None and node.op.name not in self.excluded_operators}
        if not self.smart:
            return able
        anyway = {node for node in able if node.op is not None and node.op.name in ALWAYS}
        behind, before = set(anyway), set(anyway)
        for node in graph.nodes:
            if node in able and any(e.node in behind for e in node.inputs):
                behind.add(node)
        for node in reversed(graph.nodes):
            if node in before:
                before |= {e.node for e in node.inputs if e.node in able}
        return behind & before

    def graph(self, old: Graph) -> Graph:
        """The graph in 8 bits."""
        chosen = self.chosen(old)
        for node in old.nodes:
            if node in chosen:
                self._quantized(node)
            else:
                new = moved(node, [self._float(e) for e in node.inputs])
                self.floats.update({Entry(node, i): Entry(new, i) for i in range(node.num_outputs)})
        return Graph([self._float(e) for e in old.outputs])

    def _quantized(self, node: Node) -> None:
        assert node.op is not None
        op, places = node.op.name, _eight_bits(node, self.channel_wise)
        triples = {i: self._eight(node.inputs[i]) for i in places}
        inputs = [triples[i][0] if i in triples else self._float(e) for i, e in enumerate(node.inputs)]
        inputs += [end for i in places for end in triples[i][1:]]
        attrs = dict(node.attrs)
        if op in TRUE:
            attrs["quantized"] = TRUE[op]
        if op == "_sg_mkldnn_fully_connected" and self.channel_wise:
            attrs["channel_wise_quantize"] = "True"
        new = made(QUANTIZED[op], f"quantized_{node.name}", attrs, inputs, node.subgraphs)
        if op in SUMMED:
            new = made("_contrib_requantize", f"requantize_{node.name}", {"out_type": self.dtype},
                       [Entry(new, i) for i in range(3)])
        self.eights[Entry(node)] = Entry(new), Entry(new, 1), Entry(new, 2)

    def _float(self, entry: Entry) -> Entry:
        if entry not in self.floats:
            if entry not in self.eights:
                raise MXNetError(f"output {entry.index} of {entry.node!r}, which is quantized, is used in float32; "
                                 "name the node among those that are excluded")
            new = made("_contrib_dequantize", f"{entry.node.name}_dequantize", {}, list(self.eights[entry]))
            self.floats[entry] = Entry(new)
        return self.floats[entry]

    def _eight(self, entry: Entry) -> Triple:
        if entry not in self.eights:
            name = place_name(entry)
            if entry.node.is_variable and name in self.offline:
                ends = (Entry(variable(f"{name}_quantize{ending}")) for ending in ("", "_min", "_max"))
                first, low, high = ends
                self.eights[entry] = first, low, high
            else:
                new = made("_contrib_quantize_v2", f"{name}_quantize", {"out_type": self.dtype}, [self._float(entry)])
                self.eights[entry] = Entry(new), Entry(new, 1), Entry(new, 2)
        return self.eights[entry]


def ranged(graph: Graph) -> Iterator[tuple[Node, str]]:
    """The nodes that take a range from their parameters, and what in the graph in float32 that is the range of."""
    for node in graph.nodes:
        op = "" if node.op is None else node.op.name
        if op == "_contrib_quantize_v2":
            yield node, output_name(node.inputs[0])
        elif op == "_contrib_requantize":
            yield node, node.name.removeprefix("requantize_") + "_output"
        elif op == "_contrib_quantized_batch_norm":
            yield node, node.name.removeprefix("quantized_") + "_output"


def rewritten(graph: Graph, change: Mapping[Node, Mapping[str, str]]) -> Graph:
    """The graph with more attributes on some nodes."""
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = [Entry(new[e.node], e.index) for e in node.inputs]
        if node in change:
            assert node.op is not None
            new[node] = made(node.op.name, node.name, {**node.attrs, **change[node]}, inputs, node.subgraphs)
        else:
            new[node] = moved(node, inputs)
    return Graph([Entry(new[e.node], e.index) for e in graph.outputs])


def calibrate(graph: Graph, ranges: Mapping[str, tuple[float, float]]) -> Graph:
    """The graph with the ranges that are known."""
    return rewritten(graph, {node: {key: f"{value:.6f}" for key, value in zip(RANGE, ranges[name], strict=True)}
                             for node, name in ranged(graph) if name in ranges})
