"""NaN, infinities, denormals, zeros of both signs, overflow and wrap-around: generated code against the operators'
references."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from instruction_sets import InstructionSet
from programs import lowered

import mxc as mx
from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.reference import interpreter

X, Y = mx.sym.Variable("x"), mx.sym.Variable("y")
FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int8", "uint8", "int32", "int64")
TOLERANCE = {"float16": 2e-3, "float32": 3e-6, "float64": 1e-12}


def edges(dtype: str) -> np.ndarray:
    """Every kind of number that the dtype has."""
    if dtype.startswith("float"):
        info = np.finfo(dtype)
        some = [0, -0.0, 1, -1, 0.5, -2.5, 3, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, -info.tiny,
                info.smallest_subnormal, -info.smallest_subnormal, float(info.tiny) / 4, info.eps, 1e-5, 100, -100,
                float(info.max) / 2, 88.8, -104.5, 11.2]
    else:
        limits = np.iinfo(dtype)
        some = [0, 1, 2, 3, limits.max, limits.min, limits.max - 1, limits.min + 1, limits.max // 2 + 1, 7,
                -1 if limits.min else 5]
    with np.errstate(all="ignore"):
        return np.array(some).astype(dtype)


def pairs(dtype: str) -> dict[str, np.ndarray]:
    """Every edge with every other."""
    one = edges(dtype)
    return {"x": np.repeat(one, len(one)), "y": np.tile(one, len(one))}


UNARY: dict[str, Callable[[Any], Any]] = {
    "chain": lambda x: mx.sym.relu(x * 2 + 1) / 3 - mx.sym.clip(-x, a_min=-9, a_max=9),
    "clip": lambda x: mx.sym.clip(x, a_min=-1, a_max=2),
    "clip half": lambda x: mx.sym.clip(x, a_min=-1, a_max=float("inf")),
    "relu": mx.sym.relu, "activation": lambda x: mx.sym.Activation(x, act_type="relu"), "abs": mx.sym.abs,
    "negative": lambda x: -x, "sign": mx.sym.sign, "square": mx.sym.square, "reciprocal": mx.sym.reciprocal,
    "by zero": lambda x: x / 0, "zero by": lambda x: 0 / x, "leaky": lambda x: mx.sym.LeakyReLU(x, slope=0.1),
    "maximum": lambda x: mx.sym.maximum(x, 0.5), "minimum": lambda x: mx.sym.minimum(x, 0.5), "round": mx.sym.round,
    "floor": mx.sym.floor, "ceil": mx.sym.ceil, "trunc": mx.sym.trunc, "rint": mx.sym.rint, "equal": lambda x: x == x,
    "greater": lambda x: x > 0, "not": mx.sym.logical_not, "power": lambda x: x ** 2, "root": lambda x: x ** 0.5,
    "smooth": lambda x: mx.sym.smooth_l1(x, scalar=1.0), "hard": mx.sym.hard_sigmoid,
}
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "exp": mx.sym.exp, "log": mx.sym.log, "log1p": mx.sym.log1p, "expm1": mx.sym.expm1, "sqrt": mx.sym.sqrt,
    "rsqrt": mx.sym.rsqrt, "tanh": mx.sym.tanh, "sigmoid": mx.sym.sigmoid, "erf": mx.sym.erf,
    "softsign": mx.sym.softsign,
    "softrelu": lambda x: mx.sym.Activation(x, act_type="softrelu"), "cbrt": mx.sym.cbrt, "arctan": mx.sym.arctan,
    "elu": lambda x: mx.sym.LeakyReLU(x, act_type="elu"), "selu": lambda x: mx.sym.LeakyReLU(x, act_type="selu"),
    "gelu": lambda x: mx.sym.LeakyReLU(x, act_type="gelu"), "sinh": mx.sym.sinh, "cosh": mx.sym.cosh,
    "arcsin": mx.sym.arcsin, "arcsinh": mx.sym.arcsinh, "arctanh": mx.sym.arctanh,
    "gamma": mx.sym.gamma, "gammaln": mx.sym.gammaln, "erfinv": mx.sym.erfinv,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "remainder": lambda x, y: x % y, "power": lambda x, y: x ** y, "max": mx.sym.maximum,
    "min": mx.sym.minimum, "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y, "where": lambda x, y: mx.sym.where(x, x, y),
    "and": lambda x, y: mx.sym.broadcast_logical_and(x, y),
}
ROWS = np.array([[1, 2, 3, 4], [1e4, -1e4, 0, 1e4], [-1e4, -1e4, -1e4, -1e4], [-np.inf, 1, 2, -np.inf],
                 [np.nan, 1, 2, 3], [np.inf, 1, 2, 3], [-np.inf] * 4, [-0.0, 0, -0.0, 0], [1e38, 1e38, -1e38, 3]])
WITHOUT_OVERFLOW = ("norm",)  # squares are summed as they are: docs/differences.md
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": mx.sym.softmax, "log_softmax": mx.sym.log_softmax, "softmin": mx.sym.softmin,
    "SoftmaxActivation": mx.sym.SoftmaxActivation, "SoftmaxOutput": lambda x: mx.sym.SoftmaxOutput(x, X),
    "log of softmax": lambda x: mx.sym.log(mx.sym.softmax(x)), "columns": lambda x: mx.sym.softmax(x, axis=0),
    "max": lambda x: mx.sym.max(x, axis=1), "min": lambda x: mx.sym.min(x, axis=1), "all": mx.sym.max,
    "max columns": lambda x: mx.sym.max(x, axis=0), "sum": lambda x: mx.sym.sum(x, axis=1),
    "nansum": lambda x: mx.sym.nansum(x, axis=1), "prod": lambda x: mx.sym.prod(x, axis=1),
    "norm": lambda x: mx.sym.norm(x, axis=1), "mean": lambda x: mx.sym.mean(x, axis=1),
    "softmax of lengths": lambda x: mx.sym.softmax(x, mx.sym.arange(len(ROWS), dtype="int32") % 5, use_length=True),
}
Case = tuple[Any, dict[str, np.ndarray], bool]


def images() -> np.ndarray:
    """Images with a window of each kind for pooling."""
    image = np.arange(64.0).reshape(1, 1, 8, 8)
    image[0, 0, 0:2, 0:2] = -np.inf
    image[0, 0, 0, 3], image[0, 0, 3, 3], image[0, 0, 5, 5] = np.nan, np.inf, -np.inf
    return image.astype("float32")


def cases() -> dict[str, Case]:
    """By name: a symbol, its arguments, whether in training mode."""
    made: dict[str, Case] = {}
    for dtype in (*FLOATS, *INTEGERS):
        exact = {n: f for n, f in UNARY.items()
                 if dtype in FLOATS or n not in ("root", "reciprocal", "leaky", "by zero",
                                                 "zero by", "activation", "clip half", "smooth", "hard", "clip")}
        for name, f in {**exact, **(SMOOTH if dtype in FLOATS else {})}.items():
            made[f"{name} {dtype}"] = f(X), {"x": edges(dtype)}, False
        for name, g in BINARY.items():
            if dtype in FLOATS or name != "power":  # beyond an integer's range it is the machine's
                made[f"{name} of two {dtype}"] = g(X, Y), pairs(dtype), False
    for dtype in FLOATS:
        with np.errstate(over="ignore"):
            rows = ROWS.astype(dtype)
        for name, f in REDUCTIONS.items():
            made[f"{name} {dtype}"] = f(X), {"x": rows[:-1] if name in WITHOUT_OVERFLOW else rows}, False
    for name, given in {"max": {}, "avg": {}, "sum": {}, "global max": {"global_pool": True}}.items():
        net = mx.sym.Pooling(X, kernel=(2, 2), stride=(2, 2), pool_type=name.split()[-1], **given)
        made[f"pooling {name}"] = net, {"x": images()}, False
    made["pooling padded"] = mx.sym.Pooling(X, kernel=(3, 3), stride=(2, 2), pad=(1, 1)), {"x": images()}, False
    constant = {"x": np.full((4, 2, 3), 7, "float32"), "b_gamma": np.array([2, 3], "float32"),
                "b_beta": np.array([0.5, 1], "float32"), "b_moving_mean": np.array([7, 1e30], "float32"),
                "b_moving_var": np.zeros(2, "float32")}
    for training in (False, True):
        net = mx.sym.BatchNorm(X, name="b", fix_gamma=False, eps=1e-3 if training else 1)
        made[f"variance 0, training {training}"] = net, constant, training
    for source, target, some in [
            ("float32", "float16", [65504, 65519.9, 65520, 1e6, -1e6, 6e-8, 2e-8, 3e-8, np.nan, np.inf, -0.0]),
            ("float64", "float32", [1e39, -1e39, 1e-46, 1e-45, np.nan, np.inf, 3.4028235677973366e38]),
            ("int32", "int8", [127, 128, -129, 255, 256, 2**31 - 1]),
            ("int64", "int32", [2**31, -2**31 - 1, 2**40 + 5]),
            ("float32", "int32", [1.9, -1.9, 2.5, -0.0, 2**24 + 1]), ("int32", "uint8", [-1, 256, 255]),
            ("int64", "float32", [2**53 + 1, 2**24 + 1, -2**63]), ("float32", "bool", [0, -0.0, np.nan, 0.1, np.inf])]:
        made[f"cast {source} {target}"] = mx.sym.Cast(X, dtype=target), {"x": np.array(some, source)}, False
    return made


CASES = cases()


def computed(name: str, instructions: InstructionSet) -> np.ndarray:
    net, given, training = CASES[name]
    program = lowered(net.graph, {k: v.shape for k, v in given.items()}, {k: str(v.dtype) for k, v in given.items()},
                      {}, training, instructions.target)
    return program.run(given, run=instructions.run)[0][0]


def reference(net: Any, given: dict[str, np.ndarray], training: bool) -> np.ndarray:
    graph = infer(net.graph, {k: v.shape for k, v in given.items()}, {k: str(v.dtype) for k, v in given.items()})
    with np.errstate(all="ignore"):
        return interpreter.run(graph, given, {}, training)[Entry(graph.outputs[0].node, graph.outputs[0].index)]


@pytest.mark.widest
@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_reference(name: str, instructions: InstructionSet) -> None:
    got, want = computed(name, instructions), reference(*CASES[name])
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    tolerance = TOLERANCE.get(str(got.dtype), 0)
    tiny = float(np.finfo(got.dtype).tiny) if tolerance else 0
    if tolerance:
        got, want = got.astype("float64"), want.astype("float64")
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tiny * 8)


@pytest.mark.widest
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["negative", "abs", "floor", "trunc", "chain"])
def test_the_sign_of_zero(name: str, dtype: str, instructions: InstructionSet) -> None:
    net, given, _ = CASES[f"{name} {dtype}"]
    got, want = computed(f"{name} {dtype}", instructions), reference(net, given, False)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


@pytest.mark.parametrize(("name", "points", "exact"), [
    ("expm1", (-60, -20, -9.2, 1), np.exp), ("log2", (2e38, 5), lambda x: 1 / (x * np.log(2))),
    ("log10", (1e38, 5), lambda x: 1 / (x * np.log(10))),
    ("arcsinh", (1e18, -1e20, 1e30, 0.5), lambda x: 1 / np.hypot(x, 1)),
    ("arccosh", (1e18, 1e20, 1e30, 1.5), lambda x: 1 / np.sqrt(x * x - 1)),
    ("elu", (-60, -20, -9.2, 0.5, 200), lambda x: np.exp(np.minimum(x, 0)))])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_keep_their_digits_far_from_zero(name: str, points: tuple[float, ...], exact: Callable[[Any], Any],
                                                  dtype: str) -> None:
    f = (lambda x: mx.nd.LeakyReLU(x, act_type="elu", slope=1.0)) if name == "elu" else getattr(mx.nd, name)
    x = mx.nd.array(points, dtype=dtype)
    x.attach_grad()
    with mx.autograd.record():
        first = mx.autograd.grad(f(x), x, create_graph=True)[0]
    first.backward()
    wanted = exact(np.array(points, dtype).astype("float64"))
    np.testing.assert_allclose(first.asnumpy(), wanted, rtol=1e-6 if dtype == "float32" else 1e-14)
    assert np.isfinite(x.grad.asnumpy()).all(), "the second derivative"
