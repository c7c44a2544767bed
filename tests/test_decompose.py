"""Composite operators as primitives: what they become, and that they compute what the operator's reference says."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pass_checks import assert_graph, assert_same_numbers, options, outputs_of, values_for

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.building import random_numbers
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator
from mxc.compiler.passes.decompose import decompose, draws
from mxc.compiler.plan import OFFSETS_PER_RUN

BN = "graph(x: {t}[2,3,4], g: {v}[3], b: {v}[3], m: {v}[3], var: {v}[3])\n y = BatchNorm(x, g, b, m, var{more})\n"
# graph text -> what it becomes, or None where only the numbers matter
CASES = [
    ("graph(x: float32[2,3,4])\n y = Flatten(x)\n return y",
     "graph(x: float32[2,3,4])\n y = Reshape(x, shape=(2, 12))\n return y"),
    ("graph(x: float32[2,3])\n y = expand_dims(x, axis=1)\n return y",
     "graph(x: float32[2,3])\n y = Reshape(x, shape=(2, 1, 3))\n return y"),
    ("graph(x: float32[2,3,4], y: float32[4,5])\n z = dot(x, y)\n return z",
     "graph(x: float32[2,3,4], y: float32[4,5])\n a = Reshape(x, shape=(6, 4))\n b = dot(a, y)\n"
     " z = Reshape(b, shape=(2, 3, 5))\n return z"),
    ("graph(x: float32[2,3], l: float32[2,3])\n a = BlockGrad(x)\n b = MakeLoss(a)\n c = make_loss(b)\n"
     " y = LinearRegressionOutput(c, l)\n z = MAERegressionOutput(y, l)\n return z",
     "graph(x: float32[2,3])\n return x"),
    ("graph(x: float32[2,3], l: float32[2,3])\n y = LogisticRegressionOutput(x, l)\n return y",
     "graph(x: float32[2,3])\n y = sigmoid(x)\n return y"),
    ("graph(c: float32[2], x: float32[2,3], y: float32[2,3])\n z = where(c, x, y)\n return z",
     "graph(c: float32[2], x: float32[2,3], y: float32[2,3])\n d = Reshape(c, shape=(2, 1))\n"
     " e = broadcast_to(d, shape=(2, 3))\n z = where(e, x, y)\n return z"),
    ("graph(x: float32[2,3,4], w: float32[5,12], b: float32[5])\n y = FullyConnected(x, w, b, num_hidden=5)\n return y",
     "graph(x: float32[2,3,4], w: float32[5,12], b: float32[5])\n d = Reshape(x, shape=(2, 12))\n"
     " f = FullyConnected(d, w, num_hidden=5, no_bias=True, flatten=False)\n c = Reshape(b, shape=(1, 5))\n"
     " y = broadcast_add(f, c)\n return y"),
    ("graph(x: float32[2,3,4], w: float32[5,4])\n y = FullyConnected(x, w, num_hidden=5, no_bias=True, flatten=False)\n"
     " return y",
     "graph(x: float32[2,3,4], w: float32[5,4])\n d = Reshape(x, shape=(6, 4))\n"
     " f = FullyConnected(d, w, num_hidden=5, no_bias=True, flatten=False)\n y = Reshape(f, shape=(2, 3, 5))\n"
     " return y"),
    ("graph(x: float32[1,2,5,5], w: float32[4,2,3,3], b: float32[4])\n"
     " y = Convolution(x, w, b, kernel=(3, 3), num_filter=4)\n return y",
     "graph(x: float32[1,2,5,5], w: float32[4,2,3,3], b: float32[4])\n f = Convolution(x, w, kernel=(3, 3), "
     "stride=(1, 1), dilate=(1, 1), pad=(0, 0), num_filter=4, no_bias=True)\n c = Reshape(b, shape=(1, 4, 1, 1))\n"
     " y = broadcast_add(f, c)\n return y"),
    ("graph(x: float32[1,4,5], w: float32[4,3,3])\n y = Deconvolution(x, w, kernel=(3,), stride=(2,), pad=(1,), "
     "adj=(1,), num_filter=6, num_group=2)\n return y",
     "graph(x: float32[1,4,5], w: float32[4,3,3])\n y = _mxc_conv_data_grad(x, w, kernel=(3,), stride=(2,), "
     "dilate=(1,), pad=(1,), num_group=2, shape=(1, 6, 10))\n return y"),
    ("graph(x: float32[1,2,4], w: float32[2,3,3], b: float32[3])\n y = Deconvolution(x, w, b, kernel=(3,), "
     "stride=(2,), target_shape=(7,), num_filter=3, no_bias=False)\n return y", None),
    ("graph(x: float32[2,3,4,5])\n y = Pooling(x, global_pool=True, pool_type=avg)\n return y",
     "graph(x: float32[2,3,4,5])\n y = mean(x, axis=(2, 3), keepdims=True)\n return y"),
    ("graph(x: float32[2,3,4])\n y = Pooling(x, kernel=(2,), pool_type=max)\n return y",
     "graph(x: float32[2,3,4])\n y = Pooling(x, kernel=(2,), pool_type=max)\n return y"),
    *[(f"graph(x: float32[2,3,4,5])\n y = Pooling(x, global_pool=True, pool_type={kind})\n return y", None)
      for kind in ("max", "sum", "lp, p_value=1", "lp, p_value=2", "lp, p_value=3")],
    *[(f"graph(x: float32[2,3,4])\n y = Activation(x, act_type={kind})\n return y", None)
      for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign")],
    *[(f"graph(x: float32[2,3,4])\n y = LeakyReLU(x, act_type={kind}, slope=0.3)\n return y", None)
      for kind in ("leaky", "elu", "selu", "gelu", "rrelu")],
    *[(f"graph(x: float32[2,3,4], g: float32[{n}])\n y = LeakyReLU(x, g, act_type=prelu)\n return y", None)
      for n in (3, 1)],
    *[(f"graph(x: float32[2,3,4])\n y = {op}\n return y", None) for op in (
        "softmax(x)", "softmax(x, axis=1, temperature=2.5)", "softmin(x)", "log_softmax(x, axis=0, temperature=0.5)",
        "SoftmaxActivation(x)", "SoftmaxActivation(x, mode=channel)", "softmax(x, dtype=float64)")],
    ("graph(x: float32[2,3,4], n: int32[2,4])\n y = softmax(x, n, axis=1, use_length=True)\n return y", None),
    *[(f"graph(x: float32[2,3,4], l: float32[2,4])\n y = SoftmaxOutput(x, l{more})\n return y", None)
      for more in (", multi_output=True",)],
    *[(f"graph(x: float32[2,3,4], l: float32[2,3])\n y = SoftmaxOutput(x, l{more})\n return y", None)
      for more in ("", ", preserve_shape=True")],
    *[(BN.format(t="float32", v="float32", more=more) + " return y, y.1, y.2", None)
      for more in ("", ", fix_gamma=False", ", fix_gamma=False, eps=0.1", ", use_global_stats=True")],
    ("graph(x: float64[2,4,3], g: float64[3], b: float64[3], m: float64[3], var: float64[3])\n"
     " y = BatchNorm(x, g, b, m, var, axis=-1, fix_gamma=False)\n return y", None),
    ("graph(x: float32[2,3])\n y = Dropout(x, p=0.3)\n return y", "graph(x: float32[2,3])\n return x"),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_inference(before, after):
    graph = parse_graph(before)
    result = decompose(graph, options())
    if after is not None:
        assert_graph(result, after)
    else:
        assert not any(n.op and n.op.rule("decompose") and n.op.name not in ("Pooling", "where") for n in result.nodes)
    assert_same_numbers(graph, result)


HALF = [before.replace("float32", "float16") for before, after in CASES
        if "Batch" not in before and "_mxc_" not in str(after) and "float64" not in before]


@pytest.mark.parametrize("before", HALF)
def test_float16_stays_float16_and_is_computed_wider(before):
    graph = parse_graph(before)
    assert_same_numbers(graph, decompose(graph, options()), rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("more", ["", ", fix_gamma=False, eps=0.1", ", use_global_stats=True, fix_gamma=False"])
@pytest.mark.parametrize(("data", "vectors"), [("float32", "float32"), ("float16", "float32"), ("float64", "float64")])
def test_batch_norm_in_training(more, data, vectors):
    graph = parse_graph(BN.format(t=data, v=vectors, more=more) + " return y, y.1, y.2")
    tolerance = 2e-3 if data == "float16" else 2e-5
    assert_same_numbers(graph, decompose(graph, options(is_train=True)), True, tolerance, tolerance)


@pytest.mark.parametrize(("mode", "is_train"), [("training", True), ("always", True), ("always", False)])
@pytest.mark.parametrize(("axes", "mask"), [("()", (100, 50)), ("(1,)", (100, 1))])
def test_dropout_keeps_and_scales(mode, is_train, axes, mask):
    graph = parse_graph("graph(x: float32[100,50])\n y = Dropout(x, p=0.25, "
                        f"mode={mode}, axes={axes})\n return y, y.1")
    result = decompose(graph, options(is_train=is_train))
    check_graph(result)
    values = values_for(result)
    out, scale = outputs_of(result, values, is_train)
    assert scale.shape == mask
    assert set(np.unique(scale)) == {np.float32(0), np.float32(1 / 0.75)}
    assert 0.6 < (scale > 0).mean() < 0.9
    np.testing.assert_array_equal(out, values["x"] * scale)


def test_every_dropout_has_numbers_of_its_own():
    graph = parse_graph("graph(x: float32[4])\n a = Dropout(x)\n b = Dropout(a)\n c = LeakyReLU(b, act_type=rrelu)\n"
                        " return c")
    result = decompose(graph, options(is_train=True))
    offsets = [n.params.offset for n in result.nodes if n.op and n.op.name == "_mxc_rand"]
    assert sorted(offsets) == [0, 1, 2], graph_text(result)


Rule = Callable[[GraphBuilder, Node, list[Entry], Options], list[Entry]]


def with_rules(monkeypatch: pytest.MonkeyPatch, rules: dict[str, Rule]) -> None:
    """Decompose operators by these rules, by the operators' names."""
    own = Operator.rule
    monkeypatch.setattr(Operator, "rule", lambda op, role: rules[op.name] if role == "decompose" and op.name in rules
                        else own(op, role))


def test_what_a_rule_makes_is_decomposed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With random numbers that nothing of the rounds before draws."""
    with_rules(monkeypatch, {"Flatten": lambda builder, node, inputs, options: [builder.make("Dropout", inputs[0])]})
    graph = parse_graph("graph(x: float32[2,3])\n a = Flatten(x)\n b = Dropout(a)\n c = Flatten(b)\n return c")
    assert_graph(decompose(graph, options()), "graph(x: float32[2,3])\n return x")
    made = decompose(graph, options(is_train=True))
    assert not [n for n in made.nodes if n.op and n.op.name in ("Flatten", "Dropout")], graph_text(made)
    assert sorted(n.params.offset for n in made.nodes if n.op and n.op.name == "_mxc_rand") == [0, 1, 2]
    flatten = table.get("Flatten")
    assert draws(flatten, flatten.make_params({}), [(2, 3)], ["float32"], True)
    assert not draws(flatten, flatten.make_params({}), [(2, 3)], ["float32"], False)


def test_operators_that_make_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of = {"Flatten": "SoftmaxActivation", "SoftmaxActivation": "Flatten"}
    with_rules(monkeypatch, dict.fromkeys(made_of, lambda builder, node, inputs, options: [
        builder.make(made_of[node.op.name], *inputs)]))
    graph = parse_graph("graph(x: float32[2,3])\n y = Flatten(x)\n return y")
    with pytest.raises(MXNetError, match="still not primitive after 10 rounds: the decompose rules of Flatten make"):
        decompose(graph, options())


def test_a_graph_that_uses_up_the_offsets_of_a_run_is_refused() -> None:
    builder = GraphBuilder()
    builder.streams = OFFSETS_PER_RUN - 1
    random_numbers(builder, (2,))
    with pytest.raises(MXNetError, match="random numbers in more than 65536 places"):
        random_numbers(builder, (2,))


def test_rrelu_in_training_draws_slopes_between_its_bounds():
    graph = parse_graph("graph(x: float32[20,30])\n y = LeakyReLU(x, act_type=rrelu, lower_bound=0.1, upper_bound=0.2)"
                        "\n return y")
    result = decompose(graph, options(is_train=True))
    values = values_for(result)
    (out,) = outputs_of(result, values, True)
    x = values["x"]
    np.testing.assert_array_equal(out[x > 0], x[x > 0])
    slopes = out[x < 0] / x[x < 0]
    assert 0.0999 < slopes.min() < 0.12 and 0.18 < slopes.max() < 0.2001
