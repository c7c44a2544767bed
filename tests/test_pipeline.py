"""All passes together, in inference and training: what a graph computes stays the same."""
from __future__ import annotations

import numpy as np
import pytest
from pass_checks import assert_same_numbers, options, outputs_of, values_for

from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.passes.gradient import gradient
from mxc.compiler.passes.pipeline import PASSES, transform

CONVNET = """graph(x: float32[2,3,8,8], w1: float32[4,3,3,3], b1: float32[4], g1: float32[4], s1: float32[4],
    m1: float32[4], v1_var: float32[4], w2: float32[4,1,3,3], g2: float32[4], s2: float32[4], m2: float32[4],
    v2_var: float32[4], w3: float32[5,4], b3: float32[5], label: float32[2])
  c1 = Convolution(x, w1, b1, kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=4)
  n1 = BatchNorm(c1, g1, s1, m1, v1_var, fix_gamma=False)
  r1 = Activation(n1, act_type=relu)
  c2 = Convolution(r1, w2, kernel=(3, 3), pad=(1, 1), num_filter=4, num_group=4, no_bias=True)
  n2 = BatchNorm(c2, g2, s2, m2, v2_var)
  r2 = LeakyReLU(n2, act_type=leaky, slope=0.1)
  a = elemwise_add(r1, r2)
  p = Pooling(a, kernel=(2, 2), stride=(2, 2), pool_type=max)
  q = Pooling(p, global_pool=True, pool_type=avg)
  f = Flatten(q)
  h = FullyConnected(f, w3, b3, num_hidden=5)
  d = Dropout(h, p=0)
  y = SoftmaxOutput(d, label)
  return y""".replace("\n    ", " ")
UPSCALE = """graph(x: float32[1,4,3,3], w: float32[4,3,4,4], b: float32[6], g: float32[6], s: float32[6], m: float32[6],
    var: float32[6])
  d = Deconvolution(x, w, b, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=6, num_group=2, no_bias=False)
  n = BatchNorm(d, g, s, m, var, fix_gamma=False, eps=0.01)
  t = Activation(n, act_type=tanh)
  u = log_softmax(t, axis=1)
  return u""".replace("\n    ", " ")
LEARNED = {CONVNET: ["w1", "b1", "g1", "s1", "w2", "g2", "s2", "w3", "b3"], UPSCALE: ["w", "b", "g", "s", "x"]}
GRAPHS = pytest.mark.parametrize("text", [CONVNET, UPSCALE], ids=["convnet", "upscale"])


def parameters(graph: Graph) -> frozenset[str]:
    return frozenset(node.name for node in graph.variables if node.name not in ("x", "label"))


@GRAPHS
def test_inference(text, monkeypatch):
    monkeypatch.setenv("MXC_CHECK", "1")
    graph = parse_graph(text)
    result = transform(graph, options(static=parameters(graph)))
    assert_same_numbers(graph, result)
    on_data = [n.op.name for n in result.nodes if n.op and _depends(n, "x")]
    assert not {"BatchNorm", "Convolution", "rsqrt"}.intersection(on_data), graph_text(result)
    assert on_data.count("broadcast_mul") == on_data.count("reciprocal"), graph_text(result)  # the softmax's


@GRAPHS
@pytest.mark.parametrize("mode", ["write", "add"])
def test_training(text, mode, monkeypatch):
    monkeypatch.setenv("MXC_CHECK", "1")
    graph = parse_graph(text)
    training = options(is_train=True, grad_req=dict.fromkeys(LEARNED[text], mode))
    joint = gradient(graph, training)
    result = transform(graph, training)
    assert [s.kind for s in result.sinks] == [s.kind for s in joint.sinks]
    assert_same_numbers(joint, result, True, 2e-4, 2e-5)


@pytest.mark.parametrize("skip", [p.name for p in PASSES if p.optional])
def test_without_an_optional_pass(skip, monkeypatch):
    graph = parse_graph(CONVNET)
    training = options(is_train=True, grad_req={"w1": "write"})
    expected = outputs_of(transform(graph, training), values_for(graph), True)
    monkeypatch.setenv("MXC_SKIP", skip)
    got = outputs_of(transform(graph, training), values_for(graph), True)
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def _depends(node, name):
    return any(e.node.name == name or (e.node.op is not None and _depends(e.node, name)) for e in node.inputs)
