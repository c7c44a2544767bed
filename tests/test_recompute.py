"""Which forward values the backward part computes again."""
from __future__ import annotations

import pytest
from pass_checks import assert_same_numbers, options

from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.graph.phases import BACKWARD, FORWARD, phases
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.passes.recompute import recompute

BIG = "4,16,32,32"  # 256 KiB
NORM = """
  c = Convolution(x, w, kernel=(1, 1), num_filter=16, no_bias=True)
  m = mean(c, axis=(0, 2, 3), keepdims=True)
  d = broadcast_sub(c, m)
  r = relu(d)"""
HEAD = f"graph(x: float32[{BIG}], w: float32[16,16,1,1], h: float32[{BIG}])"


def kept(graph: Graph) -> set[str]:
    """Names of the forward nodes that backward nodes read after the pass."""
    phase = phases(graph, frozenset())
    return {e.node.name for n in graph.nodes if not n.is_variable and phase[n] == BACKWARD for e in n.inputs
            if not e.node.is_variable and phase[e.node] == FORWARD}


CASES = {
    # name: (graph, what backward reads of forward's values)
    "what no kernel stores is computed again": (
        f"{HEAD}\n a = exp(x)\n b = tanh(a)\n g = elemwise_mul(h, a)\n return b, grad(x) = g", set()),
    "a result of an anchor is kept": (
        f"{HEAD}\n c = Convolution(x, w, kernel=(1, 1), num_filter=16, no_bias=True)\n b = tanh(c)\n"
        " g = elemwise_mul(h, c)\n return b, grad(x) = g", {"c"}),
    "an output is read from the output": (
        f"{HEAD}\n b = tanh(x)\n g = elemwise_mul(h, b)\n return b, grad(x) = g", {"b"}),
    "what an anchor reads is stored, and kept where it is costly": (
        f"{HEAD}\n a = tanh(x)\n c = Convolution(a, w, kernel=(1, 1), num_filter=16, no_bias=True)\n"
        " g = elemwise_mul(h, a)\n return c, grad(x) = g", {"a"}),
    "or computed again where it is simple and made of what is there": (
        f"{HEAD}\n a = relu(x)\n c = Convolution(a, w, kernel=(1, 1), num_filter=16, no_bias=True)\n"
        " g = elemwise_mul(h, a)\n return c, grad(x) = g", set()),
    "an activation behind a normalization whose input is kept anyway": (
        f"{HEAD}{NORM}\n y = Convolution(r, w, kernel=(1, 1), num_filter=16, no_bias=True)\n"
        " g = elemwise_mul(h, r)\n k = elemwise_mul(g, c)\n l = broadcast_mul(k, m)\n"
        " return y, grad(x) = l", {"c", "m"}),
    "not when its input would be kept for it alone": (
        f"{HEAD}{NORM}\n y = Convolution(r, w, kernel=(1, 1), num_filter=16, no_bias=True)\n"
        " g = elemwise_mul(h, r)\n return y, grad(x) = g", {"r"}),
    "not a chain: every second residual sum is kept": (
        f"{HEAD}\n a = Convolution(x, w, kernel=(1, 1), num_filter=16, no_bias=True)\n"
        " b = Convolution(a, w, kernel=(1, 1), num_filter=16, no_bias=True)\n p = elemwise_add(a, b)\n"
        " c = Convolution(p, w, kernel=(1, 1), num_filter=16, no_bias=True)\n q = elemwise_add(p, c)\n"
        " e = Convolution(q, w, kernel=(1, 1), num_filter=16, no_bias=True)\n"
        " g = add_n(a, b, p, c, q, num_args=5)\n return e, grad(x) = g", {"a", "b", "c", "q"}),
    "a view of an argument or of something stored costs nothing": (
        f"{HEAD}\n v = Reshape(x, shape=(16, -1))\n y = dot(v, v, transpose_b=True)\n"
        f" t = Reshape(h, shape=(16, -1))\n u = elemwise_mul(v, t)\n"
        f" g = Reshape(u, shape=({BIG}))\n return y, grad(x) = g", set()),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept(name):
    text, expected = CASES[name]
    before = parse_graph(text)
    after = recompute(before, options(grad_req={"x": "write"}))
    assert_same_numbers(before, after)
    assert kept(after) == expected


def test_small_values_are_not_worth_a_kernel():
    text = CASES["or computed again where it is simple and made of what is there"][0].replace(BIG, "1,16,2,2")
    after = recompute(parse_graph(text), options(grad_req={"x": "write"}))
    assert kept(after) == {"a"}


def test_every_user_has_its_own_constant():
    before = parse_graph("graph(x: float32[2,3])\n o = _ones(shape=(2, 3))\n a = elemwise_add(x, o)\n"
                         " b = elemwise_mul(x, o)\n return a, b")
    after = recompute(before, options())
    assert_same_numbers(before, after)
    makers = [n for n in after.nodes if n.op is not None and n.op.name == "_ones"]
    assert [len(after.consumers()[Entry(n)]) for n in makers] == [1, 1]


def test_what_an_anchor_reads_is_no_register_constant():
    text = "graph(x: float32[2,3])\n o = _ones(shape=(3, 2))\n a = dot(x, o)\n b = dot(o, x)\n return a, b"
    after = recompute(parse_graph(text), options())
    assert sum(n.op is not None and n.op.name == "_ones" for n in after.nodes) == 1


def test_inference_keeps_its_nodes():
    before = parse_graph(f"{HEAD}{NORM}\n return r")
    assert recompute(before, options()).nodes == before.nodes
