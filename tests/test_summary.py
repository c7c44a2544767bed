"""Layers with their parameters and FLOPs: numbers that can be told by hand, and those of known networks."""
from __future__ import annotations

from math import prod

import models
import networks
import pytest

import mxc as mx
from mxc.compiler.graph.summary import Layer, layers
from mxc.compiler.ops import table
from mxc.compiler.ops.flops import flops, operations
from mxc.compiler.passes.infer_shape import infer_shape

X = mx.sym.Variable("x")


def summary(symbol: mx.sym.Symbol, **shapes: tuple[int, ...]) -> list[Layer]:
    """The layers; arguments without a shape are parameters."""
    return layers(symbol.graph, infer_shape(symbol.graph, shapes), {*shapes})


OPERATORS = {
    "Convolution": ({"kernel": (3, 5), "num_filter": 6, "num_group": 2}, [(2, 4, 8, 9), (6, 2, 3, 5), (6,)],
                    2 * 6 * 6 * 5 * (2 * 2 * 3 * 5 + 1)),
    "Convolution without bias": ({"kernel": (3,), "num_filter": 6, "no_bias": True}, [(2, 4, 8), (6, 4, 3)],
                                 2 * 6 * 6 * 2 * 4 * 3),
    "Deconvolution": ({"kernel": (4, 4), "stride": (2, 2), "num_filter": 6}, [(1, 3, 5, 5), (3, 6, 4, 4)],
                      1 * 3 * 5 * 5 * 2 * 6 * 4 * 4),
    "FullyConnected": ({"num_hidden": 7}, [(3, 4, 5), (7, 20), (7,)], 3 * 7 * (2 * 20 + 1)),
    "FullyConnected of the last axis": ({"num_hidden": 7, "flatten": False}, [(3, 4, 5), (7, 5), (7,)],
                                        3 * 4 * 7 * (2 * 5 + 1)),
    "dot": ({}, [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
    "dot transposed": ({"transpose_a": True, "transpose_b": True}, [(4, 3), (5, 4)], 2 * 3 * 4 * 5),
    "batch_dot": ({"transpose_a": True}, [(2, 4, 3), (2, 4, 5)], 2 * 2 * 3 * 4 * 5),
    "RNN": ({"mode": "lstm", "state_size": 4, "num_layers": 2, "bidirectional": True},
            [(5, 2, 3), (2 * 16 * (3 + 4) + 2 * 16 * (8 + 4) + 4 * 32,), (4, 2, 4), (4, 2, 4)],
            5 * 2 * (2 * (2 * 16 * (3 + 4) + 2 * 16 * (8 + 4)) + 4 * 32)),
    "Pooling": ({"kernel": (3, 3), "stride": (2, 2)}, [(1, 2, 7, 7)], 2 * 3 * 3 * 9),
    "Pooling of all": ({"global_pool": True, "pool_type": "avg"}, [(1, 2, 7, 7)], 2 * 7 * 7),
    "Activation": ({"act_type": "relu"}, [(4, 5)], 20),
    "elemwise_add": ({}, [(4, 5), (4, 5)], 20),
    "add_n": ({"num_args": 3}, [(4, 5)] * 3, 40),
    "_copy": ({}, [(4, 5)], 0),
    "Cast": ({"dtype": "float16"}, [(4, 5)], 0),
    "broadcast_mul": ({}, [(4, 1), (1, 5)], 20),
    "sum": ({"axis": 1}, [(4, 5)], 20),
    "transpose": ({}, [(4, 5)], 0),
    "BatchNorm": ({}, [(4, 5), (5,), (5,), (5,), (5,)], 20),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_flops_of_operators(name: str):
    params, shapes, expected = OPERATORS[name]
    op = table.get(name.split()[0])
    parsed = op.make_params(params)
    rule = op.rule("shape")
    assert rule is not None
    _, outs = rule(parsed, list(shapes), [None] * op.num_outputs(parsed))
    assert flops(op, parsed, shapes, outs) == expected


def test_operations_of_expressions():
    texts = ("a", "-1", "cast(a, 'int32')", "-a", "a + b * 2", "where(a > 0, a, exp(a))")
    assert [operations(text) for text in texts] == [0, 0, 0, 1, 2, 3]


def test_rows_name_what_they_read():
    hidden = mx.sym.FullyConnected(X, num_hidden=3, name="fc")
    found = summary(mx.sym.elemwise_add(hidden, hidden, name="twice"), x=(2, 4))
    assert found == [Layer("x", "null", ((2, 4),), 0, 0, 0, ()),
                     Layer("fc", "FullyConnected", ((2, 3),), 15, 0, 2 * 3 * (2 * 4 + 1), ("x",)),
                     Layer("twice", "elemwise_add", ((2, 3),), 0, 0, 6, ("fc", "fc"))]


def test_a_shared_parameter_counts_once():
    weight = mx.sym.Variable("w")
    net = mx.sym.FullyConnected(X, weight, num_hidden=4, no_bias=True, name="one")
    net = mx.sym.FullyConnected(net, weight, num_hidden=4, no_bias=True, name="two")
    assert [layer.parameters for layer in summary(net, x=(2, 4))] == [0, 16, 0]


def test_an_argument_that_is_no_input_is_a_parameter():
    net = mx.sym.broadcast_mul(X, mx.sym.Variable("scale", shape=(1, 4)))
    assert [layer.parameters for layer in summary(net, x=(2, 4))] == [0, 4]
    unknown = layers(net.graph, infer_shape(net.graph, {}, partial=True))
    assert [(layer.name, layer.outputs) for layer in unknown[:2]] == [("x", (None,)), ("scale", ((1, 4),))]


def test_what_shapes_do_not_tell_is_none():
    net = mx.sym.FullyConnected(X, num_hidden=3, name="fc")
    row = layers(net.graph, infer_shape(net.graph, {}, partial=True))[1]
    assert (row.outputs, row.parameters, row.flops) == ((None,), None, None)


def test_outputs_are_the_visible_ones():
    net = mx.sym.BatchNorm(X, name="bn")
    (row,) = (layer for layer in summary(net, x=(2, 4)) if layer.name == "bn")
    assert (row.outputs, row.parameters, row.states) == (((2, 4),), 8, 8)


@pytest.mark.parametrize(("make", "shapes"), [
    (networks.cifar_resnet20, {"data": (4, 3, 32, 32)}),
    (networks.lenet, {"data": (64, 1, 8, 8), "softmax_label": (64,)})])
def test_parameters_are_the_sizes_of_the_arrays(make, shapes: dict[str, tuple[int, ...]]):
    net = make()
    found = summary(net, **shapes)
    arguments, _, states = net.infer_shape(**shapes)
    sizes = {name: prod(shape) for name, shape in zip(net.list_arguments(), arguments, strict=True)}
    assert sum(layer.parameters or 0 for layer in found) == sum(n for name, n in sizes.items() if name not in shapes)
    assert sum(layer.states or 0 for layer in found) == sum(map(prod, states))


@pytest.mark.parametrize(("name", "parameters", "products"), [
    ("resnet50", 25_575_912, 7.72e9), ("resnet18", 11_689_512, 3.63e9), ("mobilenet_v2", 3_503_872, 0.6e9)])
def test_known_networks(name: str, parameters: int, products: float):
    """Twice the multiply-adds that papers give: 3.86e9, 1.8e9, 0.3e9. ResNet-50 with the stride in the 3x3 convolution
    has 4.1e9; this one has it in the 1x1 convolution before that."""
    symbol, shapes = models.network(name)
    found = summary(symbol, **shapes)
    assert sum(layer.parameters or 0 for layer in found) == parameters
    work = sum(layer.flops or 0 for layer in found if layer.op in ("Convolution", "FullyConnected"))
    assert work == pytest.approx(products, rel=0.02)
