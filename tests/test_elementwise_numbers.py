"""Native functions at the edges of numbers: compiled code against the reference, and the same by every way to it."""
from __future__ import annotations

import math

import numpy as np
import pytest
from test_elementwise_meaning import by_numba, function_of

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.functions.reference import numpy_function
from mxc.compiler.functions.source import read
from mxc.compiler.functions.typed import rewritten

POINTS = [-1e30, -1e19, -7.5, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.5, 3.0, 100.0, 1e19, 1e30, math.inf, -math.inf,
          math.nan]
ONE = "k = 0\nwhile k < 1:\n    k += 1\n"  # what no formula has; k is 1
BODIES = [
    "return x - math.floor(x) + k", "return math.ceil(x) + 0", "return math.trunc(x) * 2", "return round(x * 10) / 10",
    "return int(x) % 3", "return int(x) // 2", "return min(int(x), 10)", "return int(x) / 3", "return int(x) ** 2",
    "return abs(int(x))", "return ~int(x)", "return int(x) & 5", "return math.gcd(k, int(x))",
    "return int(x) ** int(y)", "return int(x) == int(y)", "return int(x) < y", "n = math.floor(x)\nreturn x - n",
    "n = 0\nn = int(x)\nreturn n", "n = int(x)\nn += 1\nreturn n", "return int(x) if y > 0 else k",
    "return (int(x), k)[0]", "return x + 7 // (k - 1)", "return x + 7 % (k - 1)", "return divmod(k + 7, k - 1)[0]",
    "a, b = divmod(x, y)\nreturn a - b", "return np.floor_divide(x, y)", "return (int(min(x, -1e30)) + 0) // -k",
    "return (k - 1) ** -1", "return 1 / (k - 1)", "return (k + 2) ** 62 * 4", "return k + 2 ** 62 + 2 ** 62",
    "return -(k + (2 ** 63 - 1))", "return (k << 62) * 2", "return k << int(min(max(y, -70), 70))",
    "return (k - 5) >> int(min(max(y, -70), 70))", "return math.pow(x, y)", "return np.power(x, y)",
    "return math.log(x)", "return math.log2(x)", "return math.log10(x)", "return math.log1p(x)", "return math.sinh(x)",
    "return math.cosh(x)", "return math.exp(x)", "return math.atanh(x)", "return math.asin(x)",
    "return math.lgamma(x)", "return math.sqrt(x)", "return math.hypot(x, y)", "return math.trunc(k) + round(k > 0)",
    "t = 0\nfor i in range(int(min(max(x, 0), 3))):\n    t += i ** 2\nreturn t",
]


@pytest.mark.parametrize("body", BODIES)
def test_code_gives_what_the_reference_gives(body: str):
    function = function_of(ONE + body)
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(POINTS, POINTS))
    plain = numpy_function(read("f", "function", function), [float, float], None, "float64")
    with np.errstate(all="ignore"):
        want = np.array([plain(*p) for p in zip(x, y, strict=True)])
    np.testing.assert_allclose(by_numba(function, x, y), want, rtol=1e-12)


@pytest.mark.parametrize(("body", "x", "want"), [
    ("x - math.floor(x)", 1e20, 0.0), ("x - math.floor(x)", math.inf, math.nan), ("round(x)", 1e30, 1e30),
    ("int(x)", -math.inf, -math.inf), ("min(int(x), 10)", 1e30, 10.0), ("int(x) + 0", math.nan, 0.0),
    ("int(x) + 0", 1e30, 2.0**63), ("7 // (k - 1) + x", 1.0, 1.0), ("(k << 62) * 2 + 0 * x", 1.0, -2.0**63),
    ("math.log(x)", 0.0, -math.inf), ("math.sinh(x)", -1e30, -math.inf), ("math.pow(x, -1)", 0.0, math.inf)])
def test_what_numbers_become(body: str, x: float, want: float):
    """The same by code, and by the reference."""
    function = function_of(f"{ONE}return {body}")
    plain = numpy_function(read("f", "function", function), [float, float], None, "float64")
    with np.errstate(all="ignore"):
        assert plain(x, 0.0) == want or math.isnan(want)
    np.testing.assert_array_equal(by_numba(function, np.array([x]), np.array([0.0])), [want])


@pytest.mark.parametrize("expression", ["k + 2 ** 70", "x * 10 ** 400", "x + 9223372036854775808", "k * (1 << 63)"])
def test_integers_beyond_64_bits_are_refused(expression: str):
    with pytest.raises(MXNetError, match="a whole number of more than 64 bits; expected a float") as caught:
        mx.operator.elementwise("too_long")(function_of(f"{ONE}return {expression}"))
    assert str(caught.value).endswith(f"\n    return {expression}")


def test_an_operator_gives_the_same_for_any_size():
    """In eager calls of all sizes, in an executor, and of several dtypes."""
    mx.operator.elementwise("edges")(function_of(
        f"{ONE}return x - math.floor(x) + math.sinh(-x) + min(int(x), 3) + 7 // (k - 1) + math.log(abs(x))", "x"))
    for dtype in ("float16", "float32", "float64"):
        values = np.array([p for p in POINTS if abs(p) < 6e4 or not math.isfinite(p)], dtype)
        small = mx.nd.edges(mx.nd.array(values, dtype=dtype)).asnumpy()
        one = [mx.nd.edges(mx.nd.array([v], dtype=dtype)).asnumpy()[0] for v in values]
        large = mx.nd.edges(mx.nd.array(np.tile(values, 30_000), dtype=dtype)).asnumpy()
        executor = mx.sym.edges(mx.sym.Variable("x", dtype=dtype)).simple_bind(mx.cpu(), x=values.shape)
        bound = executor.forward(x=mx.nd.array(values, dtype=dtype))[0].asnumpy()
        assert small.dtype == dtype
        for got in (one, large[:values.size], large[-values.size:], bound):
            np.testing.assert_array_equal(got, small)


def test_a_function_is_compiled_as_one():
    """Numba takes long to put one function into another, by the square of its length; helpers are short."""
    function = function_of(f"{ONE}return int(x) + math.floor(y) * k")
    text = rewritten(read("f", "function", function), [float, int], None, "main")
    assert [*text.functions] == ["mxc_whole", "main"]
