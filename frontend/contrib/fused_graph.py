"""Graphs in which one operator stands for a layer and what follows it, as MXNet's oneDNN has them.

`fuse` makes `_sg_mkldnn_conv` of convolutions, with a BatchNorm, an addition and an activation behind them, and
`_sg_mkldnn_fully_connected` of products. `absorb` moves the range of a `requantize` into the layer before it, and has a
layer give float32 by itself where only a `dequantize` reads it. Names and attributes are those that MXNet gives.
"""
from __future__ import annotations

from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.contrib.quantized_graph import RANGE, made, moved

ABSORBS_RANGE = ("_sg_mkldnn_conv", "_sg_mkldnn_fully_connected", "_contrib_quantized_elemwise_add",
                 "_contrib_quantized_elemwise_mul")
GIVES_FLOAT = ("_sg_mkldnn_fully_connected", "_contrib_quantized_elemwise_mul")


def _readers(graph: Graph) -> dict[Node, list[Node | None]]:
    """Who reads each node's outputs; None: the graph's own outputs."""
    found: dict[Node, list[Node | None]] = {node: [] for node in graph.nodes}
    for node in graph.nodes:
        for below in dict.fromkeys(e.node for e in node.inputs):
            found[below].append(node)
    for entry in graph.outputs:
        found[entry.node].append(None)
    return found


def _is(node: Node | None, name: str) -> bool:
    return node is not None and node.op is not None and node.op.name == name


def _is_activation(node: Node | None, clips: bool, leaks: bool) -> bool:
    if node is None or node.op is None:
        return False
    params = node.params
    return ((node.op.name == "Activation" and params.act_type == "relu")
            or (leaks and node.op.name == "LeakyReLU" and params.act_type in ("leaky", "gelu"))
            or (clips and node.op.name == "clip" and params.a_min == 0))


class _Fusing:
    """The layers of one graph, found in the order of its nodes."""

    def __init__(self, graph: Graph):
        self.graph, self.readers = graph, _readers(graph)
        self.taken: set[Node] = set()
        self.members: dict[Node, list[Node]] = {}  # the operators of a layer, by the last
        self.fused: dict[Node, tuple[str, dict[str, str], str]] = {}  # operator, attributes, name, by the last
        for node in graph.nodes:
            if _is(node, "Convolution") and len(node.params.kernel) > 1:
                self._conv(node)
        for node in graph.nodes:
            if _is(node, "FullyConnected"):
                self._product(node)

    def _next(self, node: Node) -> Node | None:
        """The one node that reads this one's only output in use, if there is no other reader."""
        readers = self.readers[node]
        reader = readers[0] if len(readers) == 1 else None
        return reader if reader is not None and reader not in self.taken else None

    def _conv(self, conv: Node) -> None:
        parts, attrs, words = [conv], dict[str, str](), ["sg_mkldnn_conv"]
        follower = self._next(conv)
        if follower is not None and _is(follower, "BatchNorm") and follower.inputs[0].node is conv \
                and not follower.params.output_mean_var:
            parts.append(follower)
            attrs["with_bn"] = "true"
            words.append("bn")
            follower = self._next(follower)
        if _is_activation(follower, clips=True, leaks=True):
            assert follower is not None
            parts.append(follower)
            attrs["with_act"] = "true"
            words.append("act")
        elif follower is not None and _is(follower, "elemwise_add") and \
                follower.inputs[0].node is not follower.inputs[1].node:
            parts.append(follower)
            attrs["with_sum"] = "true"
            words.append("add")
            follower = self._next(follower)
            if _is_activation(follower, clips=False, leaks=True):
                assert follower is not None
                parts.append(follower)
                attrs["with_postsum_act"] = "true"
                words.append("act")
        self._take("_sg_mkldnn_conv", parts, attrs, "_".join(words))

    def _product(self, product: Node) -> None:
        follower = self._next(product)
        if _is_activation(follower, clips=True, leaks=False):
            assert follower is not None
            self._take("_sg_mkldnn_fully_connected", [product, follower], {"with_eltwise": "True"},
                       "sg_mkldnn_fully_connected_eltwise")
        else:
            self._take("_sg_mkldnn_fully_connected", [product], {}, "sg_mkldnn_fully_connected")

    def _take(self, op: str, parts: list[Node], attrs: dict[str, str], name: str) -> None:
        number = sum(kind == op for kind, _, _ in self.fused.values())
        self.taken |= {*parts}
        self.members[parts[-1]] = parts
        self.fused[parts[-1]] = op, attrs, f"{name}_{number}"

    def named(self, entry: Entry, number: int) -> str:
        """What an entry is called in the subgraph of layer `number`: those that were made before have their names."""
        order = list(self.fused)
        if entry.node in self.fused and order.index(entry.node) < number:
            return f"{self.fused[entry.node][2]}_output"
        return output_name(entry)

    def subgraph(self, last: Node) -> tuple[Graph, list[Entry]]:
        """The layer as a graph of its own, and what its operator reads of the outer one: what the layer reads, the
        addition's other side last."""
        parts, number = self.members[last], list(self.fused).index(last)
        counts: dict[Entry, int] = {}
        inner: dict[Node, list[Entry]] = {}
        outer: dict[Node, list[Entry]] = {}

        def walk(node: Node) -> None:
            inner[node], outer[node] = [], []
            for entry in node.inputs:
                if entry.node in parts:
                    walk(entry.node)
                    inner[node].append(Entry(copies[entry.node], entry.index))
                else:
                    counts[entry] = counts.get(entry, -1) + 1
                    inner[node].append(Entry(variable(f"{self.named(entry, number)}{counts[entry]}")))
                    outer[node].append(entry)
            if _is(node, "elemwise_add"):  # as MXNet has it, the layer comes first, whichever side it was on
                inner[node].sort(key=lambda entry: entry.node.is_variable)
            copies[node] = moved(node, inner[node])

        copies: dict[Node, Node] = {}
        walk(last)
        return Graph([Entry(copies[last])]), [entry for node in parts for entry in outer[node]]


def fuse(graph: Graph) -> Graph:
    """The graph with one operator for each layer and what follows it."""
    fusing, new = _Fusing(graph), dict[Node, Node]()

    def at(entry: Entry) -> Entry:
        return Entry(new[entry.node], entry.index)

    for node in graph.nodes:  # a layer's last operator is behind all that it reads
        if node in fusing.fused:
            op, attrs, name = fusing.fused[node]
            inside, reads = fusing.subgraph(node)
            new[node] = made(op, name, attrs, [at(e) for e in reads], [inside])
        elif node not in fusing.taken:
            new[node] = moved(node, [at(e) for e in node.inputs])
    return Graph([at(e) for e in graph.outputs])


def absorb(graph: Graph) -> Graph:
    """The graph with stated ranges in the layers before them, where nobody else reads those."""
    readers, new = _readers(graph), dict[Entry, Entry]()

    def only(node: Node, name: str) -> Node | None:
        found = readers[node]
        return found[0] if len(found) == 1 and _is(found[0], name) else None

    for node in graph.nodes:
        inputs = [new[e] for e in node.inputs]
        if _is(node, "_contrib_requantize") and RANGE[0] in node.attrs and _is_layer(node.inputs[0].node) and \
                only(node.inputs[0].node, "_contrib_requantize") is node:
            layer = inputs[0].node
            assert layer.op is not None
            reader = only(node, "_contrib_dequantize")
            if reader is not None and layer.op.name in GIVES_FLOAT:
                made_of = made(layer.op.name, layer.name, {**layer.attrs, "enable_float_output": "True"}, layer.inputs,
                               layer.subgraphs)
                new[Entry(reader)] = Entry(made_of)
                new.update({Entry(node, i): Entry(made_of) for i in range(3)})  # nobody else reads these
                continue
            ranges = {key: node.attrs[key] for key in RANGE}
            made_of = made(layer.op.name, layer.name, {**layer.attrs, **ranges}, layer.inputs, layer.subgraphs)
            new.update({Entry(node, i): Entry(made_of, i) for i in range(3)})
            continue
        if Entry(node) in new:  # a dequantize whose layer gives float32
            continue
        copy = moved(node, inputs)
        new.update({Entry(node, i): Entry(copy, i) for i in range(node.num_outputs)})
    return Graph([new[e] for e in graph.outputs])


def _is_layer(node: Node) -> bool:
    return node.op is not None and node.op.name in ABSORBS_RANGE
