"""Networks over numbers of 8 bits, written once for MXNet and mxc: the graphs that mx.contrib.quantization makes, the
ranges that it finds, and what oneDNN's fused operators compute.

With MXNet's Python, `quantized_networks.py` writes what MXNet 1.9.1 answers to quantized_networks.json;
tests/test_quantized_networks.py compares mxc's. Its executor must not fuse by itself (MXNET_SUBGRAPH_BACKEND=NONE).
"""
import importlib
import json
import os
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
SHAPE = (2, 3, 8, 8)
EXAMPLES = np.random.RandomState(1).uniform(-1, 1, (8, *SHAPE[1:])).astype("float32")


def quantization(mx):
    return importlib.import_module(f"{mx.__name__}.contrib.quantization")


def plain(mx):
    """One of each operator that can be in 8 bits, with a loss."""
    s = mx.sym
    x = s.Convolution(s.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    x = s.Activation(s.BatchNorm(x, name="bn"), act_type="relu", name="relu")
    x = s.Pooling(x, kernel=(2, 2), name="pool")
    y = s.Convolution(x, kernel=(1, 1), num_filter=4, no_bias=True, name="conv2")
    x = s.Concat(s.elemwise_add(y, x, name="add"), y, name="cc")
    x = s.FullyConnected(s.Flatten(x, name="fl"), num_hidden=3, name="fc")
    return s.SoftmaxOutput(x, name="softmax")


def residual(mx):
    """Residual blocks in the forms that are fused, and activations that are and that are not."""
    s = mx.sym

    def conv(x, name, **more):
        return s.Convolution(x, kernel=(1, 1), num_filter=4, name=name, **more)

    def norm(x, name):
        return s.BatchNorm(x, name=name, fix_gamma=False)

    def relu(x, name):
        return s.Activation(x, act_type="relu", name=name)

    x = relu(norm(conv(s.Variable("data"), "c1"), "b1"), "r1")
    x = relu(s.elemwise_add(norm(conv(x, "c2"), "b2"), x, name="a1"), "r2")
    x = relu(s.elemwise_add(conv(x, "c4"), norm(conv(x, "c3", no_bias=True), "b3"), name="a2"), "r3")
    x = s.clip(conv(conv(x, "c5"), "c6"), a_min=0, a_max=6, name="cl")
    x = s.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg", name="gp")
    x = relu(s.FullyConnected(s.Flatten(x, name="f"), num_hidden=4, name="fc1"), "r4")
    return s.FullyConnected(x, num_hidden=3, name="fc2")


def shortcut(mx):
    """A block whose addition has what goes by on the left, as Gluon's networks have it."""
    s = mx.sym
    x = s.Convolution(s.Variable("data"), kernel=(1, 1), num_filter=4, name="c1")
    x = s.Activation(x, act_type="relu", name="r1")
    y = s.BatchNorm(s.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4, name="c2"), name="b2", fix_gamma=False)
    return s.Activation(s.elemwise_add(x, y, name="a1"), act_type="relu", name="r2")


NETWORKS = {"plain": plain, "residual": residual, "shortcut": shortcut}
OFTEN = ("plain", "residual")  # those that are tried in every way


def network(mx, name):
    """A symbol, its arguments and its auxiliary states."""
    made = NETWORKS[name](mx)
    shapes, _, states = made.infer_shape(data=SHAPE)
    random = np.random.RandomState(0)
    args = {key: mx.nd.array(random.uniform(-1, 1, shape))
            for key, shape in zip(made.list_arguments(), shapes, strict=True)
            if key not in ("data", "softmax_label")}
    aux = {key: mx.nd.array(random.uniform(0.5, 1, shape))
           for key, shape in zip(made.list_auxiliary_states(), states, strict=True)}
    return made, args, aux


def graph_of(symbol):
    """The nodes with operator, name, attributes, inputs and subgraphs, and the heads. A least of -0 is written as 0:
    its sign is that of a zero that relu gives."""
    def nodes(graph):
        return [[n["op"], n["name"], {k: v.replace("-0.000000", "0.000000") for k, v in n.get("attrs", {}).items()},
                 n["inputs"], [nodes(inner) for inner in n.get("subgraphs", [])]] for n in graph["nodes"]
                ] + [graph["heads"]]

    return nodes(json.loads(symbol.tojson()))


def graphs(mx, name, **options):
    """The graph, the results whose ranges it can be told, and some numbers of the parameters."""
    made, args, aux = network(mx, name)
    graph, params, _, collector = quantization(mx).quantize_graph(made, args, aux, calib_mode="naive", **options)
    numbers = {key: [str(np.dtype(a.dtype)), a.asnumpy().ravel()[:6].tolist()] for key, a in sorted(params.items())}
    return [graph_of(graph), list(collector.include_layer), numbers]


def model(mx, name, run="quantize_model_mkldnn", **options):
    """The graph with ranges, and what it computes."""
    made, args, aux = network(mx, name)
    labels = np.zeros(len(EXAMPLES)) if name == "plain" else None
    examples = mx.io.NDArrayIter(EXAMPLES, labels, SHAPE[0], label_name="softmax_label")
    if options.get("calib_mode") != "none":
        options["calib_data"] = examples
    graph, params, states = getattr(quantization(mx), run)(made, args, aux, quantize_mode="full", **options)
    types = {key: a.dtype for key, a in params.items()}
    bound = graph.simple_bind(mx.cpu(), grad_req="null", type_dict={**types, "data": "float32"}, data=SHAPE)
    bound.copy_params_from(params, states)
    outputs = bound.forward(is_train=False, data=mx.nd.array(EXAMPLES[:SHAPE[0]]))
    return [graph_of(graph), [out.asnumpy().ravel().tolist() for out in outputs]]


def histogram(bins, seed):
    values = np.random.RandomState(seed).standard_normal(20000)
    values[:50] *= 5
    reach = abs(values).max()
    return np.histogram(values, bins=bins, range=(-reach, reach))


def thresholds(mx):
    """Where histograms are best cut off."""
    found = []
    for bins in (255, 301, 1001, 2001):
        for seed in range(3):
            counts, edges = (mx.nd.array(a) for a in histogram(bins, seed))
            for wanted in (15, 127, 255):
                made = mx.nd.contrib.calibrate_entropy(counts, edges, num_quantized_bins=wanted)
                found.append([array.asnumpy().tolist()[0] for array in made])
    return found


CASES = {
    **{f"{name} graph {label}": lambda mx, name=name, more=more: graphs(mx, name, **more) for name in OFTEN
       for label, more in {"": {}, "smart": {"quantize_mode": "smart"}, "uint8": {"quantized_dtype": "uint8"},
                           "auto": {"quantized_dtype": "auto"},
                           "excluded": {"excluded_sym_names": ["conv2", "c3"],
                                        "excluded_op_names": ["Concat"]}}.items()},
    **{f"{name} fused {mode} {dtype} {wise}": lambda mx, name=name, mode=mode, dtype=dtype, wise=wise: model(
        mx, name, calib_mode=mode, quantized_dtype=dtype, quantize_granularity=wise)
       for name in OFTEN for mode in ("naive",) for dtype in ("int8", "auto")
       for wise in ("tensor-wise", "channel-wise")},
    "shortcut fused": lambda mx: model(mx, "shortcut", calib_mode="naive", quantized_dtype="auto"),
    "plain fused none": lambda mx: model(mx, "plain", calib_mode="none", quantized_dtype="int8"),
    "thresholds": thresholds,
}


if __name__ == "__main__":
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    from answers import run

    run(__file__, PATH, CASES, lambda mx, case: CASES[case](mx))
