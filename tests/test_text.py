"""Golden texts of kernels."""
from __future__ import annotations

from kernel_cases import F, moves, softmax

from mxc.compiler.kernel.ir import apply, axis, const, load
from mxc.compiler.kernel.text import code_text, kernel_text
from mxc.compiler.kernel.value_text import value_text

SOFTMAX = """# softmax rows float32
kernel (float32, float32) domain [a0:2] reduce [a1:5]
  t0 = add(mul(a0, 5), a1)
  t1 = b0[t0]:f4
  acc0 = max t1
  t2 = exp(sub(t1, acc0))
  acc1 = sum t2
  b1[t0] = div(t2, acc1)
"""
PAD = """kernel (float32, float32) domain [a0:#, a1:#] reduce []
  t0 = sub(a1, #2)
  b1[add(mul(a0, #0), a1)] = (b0[add(mul(a0, #1), t0)]:f4 if and(ge(t0, 0), lt(t0, #1)) else -1.0f4)
"""


def test_kernel_text() -> None:
    assert kernel_text(softmax(2, 5, False)) == SOFTMAX


def test_form_text() -> None:
    assert code_text(next(k for k in moves() if k.name == "pad")) == PAD


def test_value_text() -> None:
    x = load(0, axis(0), F)
    assert value_text(apply("mul", x, const(2.0, F))) == "mul(b0[a0]:f4, 2.0f4)"
    assert value_text(apply("mul", x, x)) == "t0 = b0[a0]:f4; mul(t0, t0)"
