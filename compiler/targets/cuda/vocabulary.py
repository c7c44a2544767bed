"""What the printed numba.cuda source may say beyond plain Python, as device functions with the IR's semantics."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda
from numba.core import types
from numba.core.types import float16, float32, int64, uint32, uint64

from mxc.compiler.functions import typed
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import LoopKernel
from mxc.compiler.kernel.math import ERFINV_CENTRAL, ERFINV_SPLIT, ERFINV_TAIL, POLYGAMMA
from mxc.compiler.kernel.philox import PHILOX, ROUNDS
from mxc.compiler.ops.functions import find

_device = cuda.jit(device=True, inline="always")
M0, M1, I0, I1 = (uint64(n) for n in PHILOX)
MASK, HALF = uint64(0xFFFFFFFF), uint64(32)
TAIL_LOW, TAIL_HIGH = math.sqrt(ERFINV_SPLIT), 6.2


@_device
def select(condition, yes, no):
    return yes if condition else no


@_device
def half(x):
    return float32(float16(x))


@_device
def udiv(a, b):
    return a // b


@_device
def umod(a, b):
    return a % b


@_device
def min_(a, b):
    return a if a < b or a != a else b  # NaN when either is


@_device
def max_(a, b):
    return a if a > b or a != a else b


@_device
def sum_(total, x):
    return total + x


@_device
def prod_(total, x):
    return total * x


@_device
def div_(a, b):
    if b == 0:
        return a - a
    quotient = a // b
    return quotient + 1 if quotient * b != a and (a < 0) != (b < 0) else quotient  # from floor to truncation


@_device
def mod_(a, b):
    return a - a if b == 0 else a % b


@_device
def pow_(a, b):
    return a**b


@_device
def abs_(x):
    return abs(x)


@_device
def fma_(a, b, c):
    return a * b + c


@_device
def rint_(x):
    return x if x != x or math.isinf(x) else x - x + round(x)


@_device
def sigmoid_(x):
    e = math.exp(-abs(x))
    return (e if x < 0 else e - e + 1) / (1 + e)


@_device
def decay_(x):
    return math.exp(x)


@_device
def normal_cdf_(x):
    return math.erfc(-x * 0.7071067811865476) * 0.5


@_device
def softrelu_(x):
    return (x if x > 0 else x - x) + math.log1p(math.exp(-abs(x)))


@_device
def cbrt_(x):
    return math.copysign(abs(x) ** (1.0 / 3.0), x)


@_device
def digamma_(x):
    """As kernel/math.py."""
    y = 1.0 - x if x < 0.5 else x + 0.0
    below = 0.0
    for k in range(10):
        below += 1.0 / (y + k)
    z = y + 10.0
    w = 1.0 / (z * z)
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132 - w * (691 / 32760))))))
    positive = math.log(z) - 0.5 / z - series - below
    return positive - math.pi / math.tan(math.pi * (x - math.floor(x))) if x < 0.5 else positive


def _polygamma(order: int) -> Any:
    """As kernel/math.py."""
    count, scale, sign = float(math.factorial(order)), math.pi ** (order + 1), -1.0 if order % 2 == 0 else 1.0
    terms, turned = POLYGAMMA[order]
    most, highest = len(terms) - 1, len(turned) - 1

    @_device
    def polygamma(x):
        y = 1.0 - x if x < 0.5 else x + 0.0
        total = 0.0
        for k in range(10):
            total += count * (1.0 / (y + k)) ** (order + 1)
        z = 1.0 / (y + 10.0)
        tail = 0.0
        for k in range(most):
            tail = tail * (z * z) + terms[most - k]
        positive = sign * (total + z**order * (terms[0] + z * count / 2 + z * z * tail))
        if not x < 0.5:
            return positive
        turn = math.tan(math.pi * (x - math.floor(x + 0.5)))
        cotangent = math.inf if turn == 0 else 1.0 / turn
        value = 0.0
        for k in range(highest + 1):
            value = value * cotangent + turned[highest - k]
        return -sign * positive - scale * value

    return polygamma


polygamma1_, polygamma2_, polygamma3_, polygamma4_ = (_polygamma(order) for order in POLYGAMMA)


@_device
def erfinv_(x):
    """As kernel/math.py."""
    if abs(x) >= 1:
        return x * math.inf if abs(x) == 1 else math.nan
    w = -math.log((1.0 - x) * (1.0 + x))
    result = 0.0
    if w < ERFINV_SPLIT:
        t = (w - ERFINV_SPLIT / 2) * (2 / ERFINV_SPLIT)
        for k in range(len(ERFINV_CENTRAL)):
            result = result * t + ERFINV_CENTRAL[len(ERFINV_CENTRAL) - 1 - k]
    else:
        t = (math.sqrt(w) - (TAIL_LOW + TAIL_HIGH) / 2) * (2 / (TAIL_HIGH - TAIL_LOW))
        for k in range(len(ERFINV_TAIL)):
            result = result * t + ERFINV_TAIL[len(ERFINV_TAIL) - 1 - k]
    return x * result


@_device
def rand_(seed, offset, index):
    """As kernel/philox.py, on 64-bit words."""
    c0, c1 = uint64(index) & MASK, uint64(index) >> HALF
    c2, c3 = uint64(offset) & MASK, uint64(offset) >> HALF
    k0, k1 = uint64(seed) & MASK, uint64(seed) >> HALF
    for _ in range(ROUNDS):
        p0, p1 = c0 * M0, c2 * M1
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & MASK, (p0 >> HALF) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + I0) & MASK, (k1 + I1) & MASK
    return uint32(c0)


def _whole(kind: types.Integer, low: float) -> Any:
    """The conversion of floats to integers: `low` stands for what an integer of its size cannot hold."""
    lowest = int(low)

    @_device
    def whole(x):
        return kind(int64(x) if x >= low and x < -low else int64(lowest))

    return whole


PLAIN = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "exp": "exp", "expm1": "expm1",
         "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan",
         "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
         "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "erf": "erf", "gamma": "gamma", "lgamma": "lgamma"}


def names(kernel: LoopKernel) -> dict[str, Any]:
    """The global names of a kernel's printed function."""
    space = {name: value for name, value in globals().items()
             if name.endswith("_") or name in ("select", "half", "udiv", "umod", "cuda")}
    for op, name in PLAIN.items():
        made: dict[str, Any] = {"math": math}
        exec(f"def {op}_(x):\n    return math.{name}(x)\n", made)
        space[f"{op}_"] = _device(made[f"{op}_"])
    for dtype in ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"):
        kind = getattr(types, dtype)
        space[f"whole_{dtype}"] = _whole(kind, -(2.0 ** (max(kind.bitwidth, 32) - 1)))
    made = {"math": math}
    exec("def arctan2_(a, b):\n    return math.atan2(a, b)\n", made)
    space["arctan2_"] = _device(made["arctan2_"])
    dtypes = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "boolean")
    return space | {name: getattr(types, name) for name in dtypes} | {"np": np} | _functions(kernel)


def _functions(kernel: LoopKernel) -> dict[str, Any]:
    """The words of the running program's own functions that a kernel calls. One that it calls on numbers of several
    dtypes computes in the widest."""
    called: dict[str, str] = {}
    for v in ir.walk(kernel.roots()):
        if find(v.op) is not None:
            called[f"{v.op}_"] = max(called.get(f"{v.op}_", ""), v.dtype)
    made = {}
    for word, dtype in called.items():
        function = find(word[:-1])
        assert function is not None and function.source is not None
        text = typed.rewritten(function.source, function.kinds, function.part, word)
        made[word] = typed.build(text, {typed.TYPE: getattr(types, dtype)}, _device)
    return made
