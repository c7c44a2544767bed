"""A case's graph as an ONNX model with its weights inside, for the operators that the cases need."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from peers import graph
from peers.graph import Case, Node, Unsupported

OPSET = 20


class Writer:
    """The model as it grows: `add` appends a node and gives its output's name, `constant` an initializer's."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"constant{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *inputs: str, **attrs: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], **attrs))
        return output


def _convolution(w: Writer, node: Node, *xs: str) -> str:
    rank = len(node.attrs["kernel"])
    pad = graph.pair(node.attrs, "pad", rank, 0)
    return w.add("Conv", *xs, kernel_shape=node.attrs["kernel"], strides=graph.pair(node.attrs, "stride", rank, 1),
                 pads=pad + pad, dilations=graph.pair(node.attrs, "dilate", rank, 1),
                 group=int(node.attrs.get("num_group", 1)))


def _fully_connected(w: Writer, node: Node, x: str, weight: str, *bias: str) -> str:
    if node.attrs.get("flatten", True):
        return w.add("Gemm", w.add("Flatten", x), weight, *bias, transB=1)
    y = w.add("MatMul", x, w.add("Transpose", weight, perm=(1, 0)))
    return w.add("Add", y, *bias) if bias else y


def _pooling(w: Writer, node: Node, x: str) -> str:
    kind = {"max": "Max", "avg": "Average"}[node.attrs.get("pool_type", "max")]
    if node.attrs.get("global_pool"):
        return w.add(f"Global{kind}Pool", x)
    attrs = {"kernel_shape": node.attrs["kernel"], "strides": graph.pair(node.attrs, "stride", 2, 1),
             "pads": graph.pair(node.attrs, "pad", 2, 0) * 2,
             "ceil_mode": int(node.attrs.get("pooling_convention") == "full")}
    if kind == "Average":
        attrs["count_include_pad"] = int(node.attrs.get("count_include_pad", True))
        if attrs["ceil_mode"]:
            raise Unsupported("average pooling that rounds up")
    return w.add(f"{kind}Pool", x, **attrs)


def _batch_norm(w: Writer, node: Node, x: str, gamma: str, beta: str, mean: str, var: str) -> str:
    if node.attrs.get("fix_gamma", True):
        old = next(i for i in w.initializers if i.name == gamma)
        gamma = w.constant(np.ones(old.dims, np.float32))
    return w.add("BatchNormalization", x, gamma, beta, mean, var, epsilon=float(node.attrs.get("eps", 1e-3)))


def _leaky_relu(w: Writer, node: Node, x: str) -> str:
    kind = node.attrs.get("act_type", "leaky")
    if kind not in ("leaky", "gelu"):
        raise Unsupported(f"LeakyReLU {kind}")
    return w.add("Gelu", x) if kind == "gelu" else w.add("LeakyRelu", x, alpha=float(node.attrs.get("slope", 0.25)))


def _batch_dot(w: Writer, node: Node, a: str, b: str) -> str:
    a, b = (w.add("Transpose", x, perm=(0, 2, 1)) if node.attrs.get(f"transpose_{key}") else x
            for key, x in (("a", a), ("b", b)))
    return w.add("MatMul", a, b)


def _reshape(w: Writer, node: Node, x: str) -> str:
    if any(n < -1 for n in node.attrs["shape"]):
        raise Unsupported(f"Reshape to {node.attrs['shape']}")
    return w.add("Reshape", x, w.constant(np.array(node.attrs["shape"], np.int64)))


def _repeat(w: Writer, node: Node, x: str) -> str:
    """Nearest-neighbour growth along one of the last two axes of four."""
    scales = np.ones(4, np.float32)
    scales[node.attrs["axis"]] = node.attrs["repeats"]
    return w.add("Resize", x, "", w.constant(scales), mode="nearest", nearest_mode="floor",
                 coordinate_transformation_mode="asymmetric")


def _slice_like(w: Writer, node: Node, x: str, like: str) -> str:
    axes = w.constant(np.array(node.attrs["axes"], np.int64))
    ends = w.add("Gather", w.add("Shape", like), axes)
    return w.add("Slice", x, w.constant(np.zeros(len(node.attrs["axes"]), np.int64)), ends, axes)


def _scalar(op: str) -> Callable[[Writer, Node, str], str]:
    return lambda w, node, x: w.add(op, x, w.constant(np.float32(node.attrs["scalar"])))


def _plain(op: str) -> Callable[..., str]:
    return lambda w, node, *xs: w.add(op, *xs)


OPS: dict[str, Callable[..., str]] = {
    "Convolution": _convolution, "FullyConnected": _fully_connected, "Pooling": _pooling, "BatchNorm": _batch_norm,
    "LeakyReLU": _leaky_relu, "batch_dot": _batch_dot, "Reshape": _reshape, "repeat": _repeat,
    "slice_like": _slice_like,
    "Activation": lambda w, node, x: w.add(node.attrs["act_type"].capitalize(), x),
    "LayerNorm": lambda w, node, *xs: w.add("LayerNormalization", *xs, epsilon=float(node.attrs.get("eps", 1e-5))),
    "SoftmaxOutput": lambda w, node, x, label: w.add("Softmax", x, axis=1),
    "Concat": lambda w, node, *xs: w.add("Concat", *xs, axis=int(node.attrs.get("dim", 1))),
    "Dropout": lambda w, node, x: x,
    "clip": lambda w, node, x: w.add("Clip", x, w.constant(np.float32(node.attrs["a_min"])),
                                     w.constant(np.float32(node.attrs["a_max"]))),
    "softmax": lambda w, node, x: w.add("Softmax", x, axis=int(node.attrs.get("axis", -1))),
    "transpose": lambda w, node, x: w.add("Transpose", x, perm=node.attrs["axes"]),
    "square": lambda w, node, x: w.add("Mul", x, x),
    "Flatten": _plain("Flatten"), "dot": _plain("MatMul"), "relu": _plain("Relu"), "sigmoid": _plain("Sigmoid"),
    "tanh": _plain("Tanh"), "exp": _plain("Exp"), "elemwise_add": _plain("Add"), "elemwise_sub": _plain("Sub"),
    "elemwise_mul": _plain("Mul"), "broadcast_add": _plain("Add"), "broadcast_mul": _plain("Mul"),
    "_plus_scalar": _scalar("Add"), "_mul_scalar": _scalar("Mul"),
}


def model(case: Case) -> bytes:
    """The serialized model; its inputs are the case's inputs, in float32. Raises Unsupported."""
    if lacking := graph.missing(case.nodes, OPS):
        raise Unsupported(f"no {', '.join(lacking)}")
    if sum(math.prod(shape) for shape in case.shapes.values()) * 4 > 2_000_000_000:
        raise Unsupported("more weights than an ONNX model holds")
    writer = Writer()
    arrays = case.arrays()
    for name, array in arrays.items():
        if name not in case.inputs:
            writer.constant(array, name)
    made: list[str] = []
    for node in case.nodes:
        made.append(node.name if node.op == "null" else
                    OPS[node.op](writer, node, *[made[source] for source, _ in node.inputs]))
    names = [made[source] for source, _ in case.outputs]
    whole = helper.make_graph(
        writer.nodes, "case",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, case.shapes[n]) for n in case.inputs],
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in zip(names, case.heads, strict=True)],
        writer.initializers)
    done = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPSET)])
    done.ir_version = 10
    return done.SerializeToString()
