"""Which part of the plan computes a node."""
from __future__ import annotations

import pytest

from mxc.compiler.graph.phases import phases
from mxc.compiler.graph.text import parse_graph

HEAD = "graph(x: float32[2,3], w: float32[2,3])\n"
CASES = {
    "what depends on parameters alone is prepared": (
        f"{HEAD} a = exp(w)\n y = elemwise_add(x, a)\n return y", {"a": "prepare", "y": "forward"}),
    "an output is not": (f"{HEAD} a = exp(w)\n y = elemwise_add(x, a)\n return y, a", {"a": "forward", "y": "forward"}),
    "a constant goes with its user": (
        f"{HEAD} o = _ones(shape=(2, 3))\n a = elemwise_add(w, o)\n y = elemwise_add(x, a)\n return y",
        {"o": "prepare", "a": "prepare", "y": "forward"}),
    "and with the earliest phase of its users, whatever their order": (
        f"{HEAD} o = _ones(shape=(2, 3))\n y = elemwise_add(x, o)\n n = norm(o)\n z = broadcast_add(y, n)\n return z",
        {"o": "prepare", "y": "forward", "n": "prepare", "z": "forward"}),
    "what is made of an output comes after it": (
        f"{HEAD} o = _ones(shape=(2, 3))\n r = Reshape(o, shape=(3, 2))\n a = dot(w, r)\n n = norm(a)\n"
        " y = broadcast_add(x, n)\n return o, y", dict.fromkeys("orany", "forward")),
    "random numbers are drawn in every run": (
        f"{HEAD} r = _mxc_rand(shape=(2, 3))\n s = _mul_scalar(r, scalar=2)\n a = elemwise_mul(w, s)\n b = exp(a)\n"
        " y = elemwise_add(x, b)\n return y", dict.fromkeys("rsaby", "forward")),
    "what only a gradient needs is backward": (
        f"{HEAD} y = exp(x)\n g = elemwise_mul(y, x)\n return y, grad(x) = g", {"y": "forward", "g": "backward"}),
}


@pytest.mark.parametrize("name", CASES)
def test_phases(name):
    text, expected = CASES[name]
    found = phases(parse_graph(text), frozenset(["w"]))
    assert {node.name: phase for node, phase in found.items()} == expected
