"""Which part of the plan computes a node."""
from __future__ import annotations

import pytest

import mxc as mx
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


def test_only_what_other_phases_read_is_kept():
    """What a BatchNorm multiplies a weight by is needed until the weight is packed."""
    made = mx.sym.Convolution(mx.sym.var("x"), kernel=(3, 3), num_filter=16, name="c")
    executor = mx.sym.BatchNorm(made, fix_gamma=False, name="b").simple_bind(mx.cpu(), grad_req="null", x=(1, 16, 9, 9))
    plan = executor._core.compiled(False).plan
    prepare, buffers = plan.steps_of("prepare"), plan.buffers
    kept = {i for step in prepare for i in step.writes if buffers[i].pool == "prepared"}
    passing = {i for step in prepare for i in step.writes if buffers[i].pool == "arena"}
    read = {i for step in plan.steps_of("forward") for i in step.reads}
    assert kept and kept <= read and passing and not passing & read
    assert plan.prepared_bytes == sum(buffers[i].nbytes for i in kept)
