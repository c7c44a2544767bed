"""Variables that may have no value where they are used: refused with the line, and nothing else is."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_elementwise_meaning import cube, function_of

import mxc as mx
from mxc.compiler.error import MXNetError

_count = itertools.count()
ONE = "while x > 9:\n    x = x / 2\n"  # what no formula has

REFUSED = {  # body -> the name, and the line that is quoted
    "n = 0\nwhile n < 2 and x > 0:\n    n += 1\n    b = x\nreturn b": ("b", "return b"),
    "if x > 0:\n    b = x\nreturn b": ("b", "return b"),
    "if x > 0:\n    b = x\nelif x < -1:\n    b = 2\nreturn b + 1": ("b", "return b + 1"),
    f"{ONE}b += x\nreturn b": ("b", "b += x"),
    f"{ONE}c = b\nb = x\nreturn c": ("b", "c = b"),
    "for k in range(int(x)):\n    b = k\nreturn b": ("b", "return b"),
    "for k in range(int(x)):\n    x += 1\nreturn k": ("k", "return k"),
    "for k in range(3):\n    if x > k:\n        continue\n    b = k\nreturn b": ("b", "return b"),
    "for k in range(3):\n    if x > k:\n        break\n    b = k\nreturn b": ("b", "return b"),
    "while True:\n    if x > 1:\n        break\n    b = x\n    x += 1\nreturn b": ("b", "return b"),
    "for k in range(3):\n    if x > k:\n        break\nelse:\n    b = 1\nreturn b": ("b", "return b"),
    "while x > b:\n    b = 1\nreturn x": ("b", "while x > b:"),
    "for k in range(0):\n    b = k\nfor k in range(int(x)):\n    x = x + b\nreturn x": ("b", "x = x + b"),
    f"{ONE}b: float\nreturn b": ("b", "return b"),
}
ACCEPTED = [
    "for k in range(3):\n    if x > 99:\n        break\n    b = x\nelse:\n    return b\nreturn x",
    "for k in range(1, 4):\n    b = k\n    if x > 99:\n        return 0.0\nwhile x > 9:\n    x = x / 2\nreturn b + k",
    "while True:\n    b = x\n    x = x / 2\n    if x < 1:\n        break\nreturn b",
    "for c in COEFFICIENTS:\n    b = c\n    while x > 9:\n        x = x / 2\nreturn b",
    f"{ONE}if x > 0:\n    b = 1.0\nelif x < -1:\n    b = 2.0\nelse:\n    return x\nreturn b",
    f"{ONE}a, b = x, 2.0\nif x > 0:\n    a = b\nreturn a",
    "while x > 1:\n    b = 2.0\n    x = x / b\nreturn x",
    "for k in range(3):\n    if x > k:\n        continue\n    b = k\n    x = x + b\nreturn x",
]


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body: str):
    name, line = REFUSED[body]
    with pytest.raises(MXNetError, match=f"{name} may have no value here; expected one on every path") as caught:
        mx.operator.elementwise(f"unbound_{next(_count)}")(function_of(body, "x"))
    assert str(caught.value).endswith(f"\n    {line}")


def test_in_helpers_and_gradients():
    body = "if x > 0:\n    b = x\nreturn b"
    with pytest.raises(MXNetError, match=r"gradient function .*b may have no value here"):
        mx.operator.elementwise(f"unbound_{next(_count)}", gradient=function_of(body, "x"))(cube)
    helper = function_of(body, "x")

    def act(x):
        return helper(x)

    with pytest.raises(MXNetError, match="b may have no value here"):
        mx.operator.elementwise(f"unbound_{next(_count)}")(act)


@pytest.mark.parametrize("body", ACCEPTED)
def test_accepted(body: str):
    function = function_of(body, "x")
    name = f"unbound_{next(_count)}"
    mx.operator.elementwise(name)(function)
    points = np.array([-2.0, 0.5, 1.5, 20.0])
    got = getattr(mx.nd, name)(mx.nd.array(points, dtype="float64")).asnumpy()
    np.testing.assert_allclose(got, [function(p) for p in points])
