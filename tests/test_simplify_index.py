"""Index arithmetic that fusion makes, simplified."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.interpret import Interpreter
from mxc.compiler.kernel.ir import LoopKernel, Value, axis
from mxc.compiler.kernel.simplify_index import Simplifier, index

EXTENTS = (6, 4, 10)
NAMES = {"i": axis(0), "j": axis(1), "k": axis(2)}
OPS = {"+": "add", "-": "sub", "*": "mul", "//": "div", "%": "mod", "<": "lt", ">=": "ge"}


def parse(text: str) -> Value:
    """Fully bracketed index arithmetic: `((i * 4) + j)`."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()

    def read() -> Value:
        word = words.pop(0)
        if word != "(":
            return NAMES[word] if word in NAMES else index(int(word))
        left = read()
        op = OPS[words.pop(0)]
        right = read()
        assert words.pop(0) == ")"
        return ir.apply(op, left, right)

    return read()


@pytest.mark.parametrize(("before", "after"), [
    ("(i * 1)", "i"), ("(i + 0)", "i"), ("(2 * (3 + 4))", "14"), ("((i * 0) + j)", "j"),
    ("(((i * 4) + j) // 4)", "i"), ("(((i * 4) + j) % 4)", "j"), ("(i // 6)", "0"), ("(i % 6)", "i"),
    ("(((i * 40) + ((j * 10) + k)) // 10)", "((i * 4) + j)"), ("((k // 2) // 5)", "0"),
    ("(((k // 2) * 2) % 2)", "0"), ("(((i * 8) + (j * 2)) // 2)", "((i * 4) + j)"),
    ("((i + 6) // 6)", "1"), ("((i + 6) % 6)", "i"), ("((k % 8) % 4)", "(k % 4)"), ("((k // 2) // 2)", "(k // 4)"),
    ("((i + j) - j)", "i"),
])
def test_simplified(before: str, after: str) -> None:
    assert Simplifier(EXTENTS)(parse(before)) is parse(after)


@pytest.mark.parametrize(("text", "truth"), [("(i < 6)", True), ("(i >= 6)", False), ("((i + 3) < 3)", False)])
def test_guards_that_always_or_never_hold(text: str, truth: bool) -> None:
    assert Simplifier(EXTENTS)(parse(text)) is ir.const(truth, "bool")
    load = ir.load(0, axis(0), "float32", parse(text), ir.const(0.0, "float32"))
    assert len(Simplifier(EXTENTS)(load).args) == (1 if truth else 0)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Value:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.one_of(st.sampled_from(list(NAMES.values())), st.integers(0, 12).map(index)))
    op = draw(st.sampled_from(["add", "mul", "div", "mod"]))
    left = draw(expressions(depth - 1))
    right = draw(expressions(depth - 1)) if op == "add" else index(draw(st.integers(1, 12)))
    return ir.apply(op, left, right)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(expressions())
def test_same_numbers(value: Value) -> None:
    kernel = LoopKernel("", (), EXTENTS, (), (), ())
    before, after = (np.broadcast_to(Interpreter(kernel, []).value(v), EXTENTS)
                     for v in (value, Simplifier(EXTENTS)(value)))
    assert np.array_equal(before, after)


def test_bounds() -> None:
    simplify = Simplifier(EXTENTS)
    assert simplify.bounds(parse("((i * 4) + j)")) == (0, 23)
    assert simplify.bounds(parse("(k // 3)")) == (0, 3)
    assert simplify.bounds(parse("(k - 4)")) == (-4, 5)
