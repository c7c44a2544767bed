"""Common subexpressions."""
from __future__ import annotations

import pytest
from pass_checks import assert_graph, assert_same_numbers, options

from mxc.compiler.graph.text import parse_graph
from mxc.compiler.ops import table
from mxc.compiler.passes.cse import commutes, cse

CASES = {
    "equal nodes, also above equal nodes": (
        "graph(x: float32[2,3])\n a = exp(x)\n b = exp(x)\n c = log(a)\n d = log(b)\n"
        " e = elemwise_sub(c, d)\n return e",
        "graph(x: float32[2,3])\n a = exp(x)\n c = log(a)\n e = elemwise_sub(c, c)\n return e"),
    "other parameters": (
        "graph(x: float32[2,3])\n a = sum(x, axis=(0,))\n b = sum(x, axis=(1,))\n return a, b", None),
    "other operators": ("graph(x: float32[2,3])\n a = exp(x)\n b = expm1(x)\n return a, b", None),
    "the order of a sum": (
        "graph(x: float32[2,3], y: float32[2,3])\n a = elemwise_add(x, y)\n b = elemwise_add(y, x)\n"
        " c = elemwise_mul(a, b)\n return c",
        "graph(x: float32[2,3], y: float32[2,3])\n a = elemwise_add(x, y)\n c = elemwise_mul(a, a)\n return c"),
    "the order of a difference": (
        "graph(x: float32[2,3], y: float32[2,3])\n a = elemwise_sub(x, y)\n b = elemwise_sub(y, x)\n return a, b",
        None),
    "outputs of the graph": (
        "graph(x: float32[2,3])\n a = exp(x)\n b = exp(x)\n return a, output(b) = b",
        "graph(x: float32[2,3])\n a = exp(x)\n return a, output(b) = a"),
    "random numbers of one stream and of two": (
        "graph()\n a = _mxc_rand(shape=(2,), offset=1)\n b = _mxc_rand(shape=(2,), offset=1)\n"
        " c = _mxc_rand(shape=(2,), offset=2)\n d = elemwise_sub(a, b)\n e = elemwise_sub(a, c)\n return d, e",
        "graph()\n a = _mxc_rand(shape=(2,), offset=1)\n c = _mxc_rand(shape=(2,), offset=2)\n"
        " d = elemwise_sub(a, a)\n e = elemwise_sub(a, c)\n return d, e"),
    "constants": (
        "graph()\n a = _full(shape=(2,), value=1)\n b = _full(shape=(2,), value=1)\n c = elemwise_add(a, b)\n return c",
        "graph()\n a = _full(shape=(2,), value=1)\n c = elemwise_add(a, a)\n return c"),
}


@pytest.mark.parametrize("name", CASES)
def test_cse(name):
    before, after = CASES[name]
    graph = parse_graph(before)
    result = cse(graph, options())
    assert_graph(result, after or before)
    if "_mxc_rand" not in before:
        assert_same_numbers(graph, result)


@pytest.mark.parametrize(("op", "does"), [
    ("broadcast_add", True), ("elemwise_mul", True), ("_maximum", True), ("_equal", True),
    ("broadcast_not_equal", True),
    ("_logical_and", True), ("elemwise_sub", False), ("_power", False), ("_lesser", False), ("square", False),
    ("add_n", False), ("where", False), ("dot", False),
])
def test_which_operators_commute(op, does):
    assert commutes(table.get(op)) is does
