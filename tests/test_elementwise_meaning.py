"""Functions of numbers as operators compute them against Python itself: by formulas and by Numba, case by case and for
random functions."""
from __future__ import annotations

import itertools
import linecache
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mxc as mx
from mxc.compiler.functions import reference
from mxc.compiler.functions.formula import NotFormula, read_formula
from mxc.compiler.functions.source import read
from mxc.compiler.graph.graph import Node
from mxc.compiler.kernel.ir import LoopKernel, Store, Value, axis, cast, load, make
from mxc.compiler.kernel.scalar import ValueReading
from mxc.compiler.ops import functions
from mxc.compiler.ops.derive import by_argument
from mxc.compiler.ops.expr import NumpyReading, evaluate
from mxc.compiler.ops.functions import ScalarFunction
from mxc.compiler.ops.operator import InputSpec, Kind, Operator
from mxc.compiler.targets.cpu.target import cpu_target
from mxc.compiler.targets.numba.functions import native_text
from mxc.runtime import runner
from mxc.runtime.eager import numpy_function
from mxc.runtime.step_table import StepTable

POINTS = np.array([-1e30, -7.5, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 100.0, math.inf,
                   -math.inf, math.nan])
_count = itertools.count()
SCALE = 0.75
COEFFICIENTS = (1.0, -0.5, 0.25)


def function_of(body: str, parameters: str = "x, y") -> Callable[..., Any]:
    """A function with this body, whose text is kept as a notebook keeps its cells."""
    file = f"<cell {next(_count)}>"
    lines = [f"def function({parameters}):", *(f"    {line}" for line in body.splitlines())]
    text = "\n".join(lines) + "\n"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    space: dict[str, Any] = {"math": math, "np": np, "SCALE": SCALE, "COEFFICIENTS": COEFFICIENTS, "cube": cube}
    exec(compile(text, file, "exec"), space)
    return space["function"]


def cube(x, *, factor=1.0):
    return factor * x**3


def by_python(function: Callable[..., float], x: float, y: float) -> float:
    """What Python gives; NaN where it raises an error."""
    try:
        return float(function(np.float64(x), np.float64(y)))
    except (ArithmeticError, ValueError, TypeError):
        return math.nan


def by_formula(function: Callable[..., float], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    formula = read_formula(read("f", "function", function), [float, float])
    reading = NumpyReading("float64")
    env = {"a0": x, "a1": y}
    for name, text in formula.lines:
        env[name] = evaluate(text, reading, env)
    return np.broadcast_to(evaluate(formula.results[0], reading, env), x.shape).astype(np.float64)


def known(function: Callable[..., float]) -> ScalarFunction:
    """The function's formula, known by a name."""
    source = read("f", "function", function)
    formula = read_formula(source, [float, float])
    return functions.add(ScalarFunction(f"formula_{source.digest[:8]}", 2, formula.lines, formula.results[0]))


def by_eager_numpy(function: Callable[..., float], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By the function of NumPy's that small arrays are computed with; a formula that has none is not compared."""
    op = Operator("o", Kind.ELEMENTWISE, (InputSpec("x"), InputSpec("y")), expr=f"{known(function).name}(x, y)",
                  rules={"shape": "same_shape", "dtype": "same_dtype"})
    made, _ = numpy_function(Node(op, "o"), [x.shape] * 2, ["float64"] * 2, x.shape, "float64")
    return by_formula(function, x, y) if made is None else made(x, y)


def by_kernel(function: Callable[..., float], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By a kernel of the formula's arithmetic."""
    env = {"x": load(0, axis(0), "float64"), "y": load(1, axis(0), "float64")}
    value = evaluate(f"{known(function).name}(x, y)", ValueReading("float64"), env)
    return in_kernel(cast(value, "float64"), x, y)


def by_numba(function: Callable[..., float], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By a native function's code, in a kernel."""
    source = read("f", "function", function)
    name = f"native_{source.digest[:8]}"
    functions.add(ScalarFunction(name, 2, source=source, kinds=(float, float)))
    return in_kernel(make(name, [load(0, axis(0), "float64"), load(1, axis(0), "float64")], "float64"), x, y)


def in_kernel(value: Value, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a kernel that stores a value of x and y gives."""
    kernel = LoopKernel("k", ("float64",) * 3, (x.size,), (), (), (Store(2, axis(0), value),))
    target = cpu_target()
    launch = target.launch(kernel)
    library = target.load({launch.key: kernel})
    out = np.empty_like(x)
    addresses = [a.__array_interface__["data"][0] for a in (x, y, out)]
    runner.run(StepTable([(library.address(launch.key), [*addresses, *launch.values], launch.units)], 0, 0))
    return out


def pairs() -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(POINTS, POINTS)
    return np.ascontiguousarray(x.ravel()), np.ascontiguousarray(y.ravel())


def compare(function: Callable[..., float], ways: Sequence[Callable[..., np.ndarray]], finite: bool = False) -> None:
    x, y = pairs()
    if finite:
        kept = np.isfinite(x) & np.isfinite(y) & (np.abs(x) < 1e6) & (np.abs(y) < 1e6)
        x, y = x[kept], y[kept]
    with np.errstate(all="ignore"):
        want = np.array([by_python(function, *p) for p in zip(x, y, strict=True)])
        for way in ways:
            np.testing.assert_allclose(way(function, x, y), want, rtol=1e-12, atol=1e-300, err_msg=way.__name__)


FORMULAS = {
    "precedence": "return -x ** 2 + y",
    "floor division": "return x // 2 + y // -3.0",
    "remainder": "return x % 2 + y % -3",
    "truth": "return (not x) + (x and y) + (x or 2)",
    "truth in arithmetic": "return (x > 0) + (y > 0) * 2 - (x == y)",
    "chain": "return 1.0 if 0 < x < 1 else 2.0 if -1 <= y != x else 3.0",
    "itself": "return 1 if x == x else 0",
    "bits of truth": "t = 2 * ((x > 1) | (y > 1)) + 4 * ((x > 0) & (y < 0))\n"
                     "return (x > 0 and y > 0) + t + 8 * ((x > 0) ^ (y > 0))",
    "powers": "return x ** 3 + 2 ** y + y ** 2",
    "min and max": "return min(x, y) + 3 * max(x, y, 1)",
    "of numpy": "return np.minimum(x, y) + 3 * np.maximum(x, 1)",
    "where": "return np.where(x > y, x, y) + np.clip(x, -1, 1) + np.sign(y)",
    "rounding": "return math.floor(x) + 2 * math.ceil(y) + math.trunc(x) + int(y) + round(x)",
    "floats": "return float(x > 1) + abs(-y) + math.fabs(x) + float(True)",
    "copysign": "return math.copysign(x, y)",
    "tests": "return math.isnan(x) + 2 * math.isinf(y) + 4 * math.isfinite(x)",
    "augmented": "t = x\nt += y\nt *= 2\nt -= SCALE\nreturn t",
    "tuples": "a, b = x, y\na, b = b, a\nreturn a - 2 * b",
    "shadow": "x = x + 1\ny = x\nreturn x * y",
    "unused": "return x + 0.5",
    "constant": "return 2",
    "early returns": "if x > 1:\n    return x\nif y > 1:\n    return y\nreturn x * y",
    "assigned in branches": "if x > y:\n    t = x\nelif x < 0:\n    t = y * 2\nelse:\n    t = 0\nreturn t + 1",
    "loop": "t = 0\nfor k in range(5):\n    if x > k:\n        t += x * k\nreturn t + y",
    "loop that returns": "for k in range(3):\n    if x < k:\n        return k * y\nreturn -1.0",
    "coefficients": "t = 0.0\nfor c in reversed(COEFFICIENTS):\n    t = t * x + c\n"
                    "return t + COEFFICIENTS[1] * len(COEFFICIENTS)",
    "functions": "return cube(x) + cube(y, factor=SCALE)",
    "math": "return math.exp(-x * x) + math.tanh(y) + math.atan2(x, y) + math.erf(y)",
    "pi": "return math.pi * x + np.e * y",
    "nested": "t = 1.0\nif x > 0:\n    if y > 0:\n        t = x\n    else:\n        t = y\nreturn t",
    "known branch": "if SCALE > 0.5:\n    return x\nreturn y",
    "docstring": '"""What it does."""\nreturn x - y',
}
ONLY_PYTHON = {  # where Numba has other types
    "truth", "rounding", "coefficients", "where", "of numpy", "bits of truth", "floor division"}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_mean_what_python_means(name: str):
    function = function_of(FORMULAS[name])
    finite = name in ("rounding", "remainder", "floor division", "powers", "functions", "truth", "math", "tests")
    compare(function, [by_formula, by_eager_numpy, by_kernel], finite)


@pytest.mark.parametrize("name", sorted(FORMULAS.keys() - ONLY_PYTHON))
def test_numba_means_what_python_means(name: str):
    finite = name in ("remainder", "powers", "functions", "math", "min and max")
    compare(function_of(FORMULAS[name]), [by_numba], finite)


LOOPS = {
    "for and else": "for k in range(int(min(max(x, 0), 5))):\n    if y > k:\n        return y * k\n    x += 1\n"
                    "else:\n    return x",
    "while and else": "while x > 1:\n    x = x / 2\nelse:\n    return x + y",
    "while": "n = 0\nwhile x > 1 and n < 50:\n    x = x / 2\n    n += 1\nreturn n + y",
    "break": "t = 0.0\nfor k in range(10):\n    if k > x:\n        break\n    t += k\nreturn t",
    "continue": "t = 0.0\nfor k in range(10):\n    if k < x:\n        continue\n    t += y\nreturn t",
    "range of data": "t = x\nfor k in range(int(min(max(y, 0), 5))):\n    t = t * 0.5 + k\nreturn t",
    "divisor": "return x % y if y else 0.0",
    "newton": "t = abs(x) + 1\nwhile abs(t * t - abs(x)) > 1e-9 * (1 + abs(x)):\n"
              "    t = 0.5 * (t + abs(x) / t)\nreturn t",
    "whole powers": "n = int(min(max(x, -3), 3))\nk = 0\nwhile k < 3:\n    k += 1\nreturn 2 ** n + n ** 2 + k ** n + y",
    "gcd": "n = 0\nwhile n < 4:\n    n += math.gcd(4, n) if n else 1\nreturn n + x",
    "a third": "t = 0\nwhile t < 2:\n    t += 1 / 3\nreturn t * x",
}


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_no_formula(name: str):
    function = function_of(LOOPS[name])
    with pytest.raises(NotFormula):
        read_formula(read("f", "function", function), [float, float])
    compare(function, [by_numba], finite=True)


@pytest.mark.parametrize("name", sorted(FORMULAS.keys() | LOOPS.keys()))
def test_the_rewritten_text_means_the_same(name: str):
    """What Numba gets, called by Python on numbers of float64."""
    function = function_of({**FORMULAS, **LOOPS}[name])
    plain = reference.numpy_function(read("f", "function", function), [float, float], None, "float64")

    def rewritten(_: object, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.array([plain(*p) for p in zip(x, y, strict=True)])

    compare(function, [rewritten], finite=True)


@pytest.mark.parametrize("name", ["while", "newton", "range of data", "a third", "loop", "augmented"])
def test_float32_stays_float32(name: str):
    """No step of what Numba makes is of float64."""
    source = read("f", "function", function_of({**FORMULAS, **LOOPS}[name]))
    text = native_text(ScalarFunction("f_0", 2, source=source, kinds=(float, float)), "float32")
    assert "double" not in text


def test_equal_steps_are_one_line():
    squares = function_of("for _ in range(30):\n    x = x * x\nreturn x + y")
    assert len(read_formula(read("f", "function", squares), [float, float]).lines) == 31
    same = function_of("return (x * y + 1) / (x * y + 1)")
    assert len(read_formula(read("f", "function", same), [float, float]).lines) == 3


def test_a_long_loop_is_no_formula():
    long = function_of("for k in range(1000):\n    x = x * y + k\nreturn x")
    with pytest.raises(NotFormula):
        read_formula(read("f", "function", long), [float, float])
    compare(long, [by_numba], finite=True)


# --- random functions

NAMES = ("x", "y", "s", "t")
leaf = st.one_of(st.sampled_from(NAMES), st.sampled_from(["0", "1", "2", "0.5", "-1.5", "SCALE", "True"]))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda a: f"({a} / 3)"), inner.map(lambda a: f"({a} % 4)"), inner.map(lambda a: f"-{a}"),
        st.tuples(st.sampled_from(["abs", "math.tanh", "math.sin", "math.atan", "float", "cube"]), inner).map(
            lambda p: f"{p[0]}({p[1]})"),
        two.map(lambda p: f"min({p[0]}, {p[1]})"), two.map(lambda p: f"max({p[0]}, {p[1]})"),
        st.tuples(inner, inner, condition(inner)).map(lambda p: f"({p[0]} if {p[2]} else {p[1]})"))


def condition(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    plain = st.tuples(inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner).map(" ".join)
    return st.one_of(plain, st.tuples(plain, st.sampled_from(["and", "or"]), plain).map(" ".join),
                     plain.map(lambda a: f"not {a}"))


expression = st.recursive(leaf, larger, max_leaves=6)
assigned = st.tuples(st.sampled_from(["s", "t", "x"]), st.sampled_from(["=", "+=", "*="]), expression).map(" ".join)


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for statement in lines for line in statement.splitlines()]


def blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=2)
    branch = st.tuples(condition(expression), body, body).map(
        lambda p: "\n".join([f"if {p[0]}:", *indented(p[1]), "else:", *indented(p[2])]))
    early = st.tuples(condition(expression), expression).map(lambda p: f"if {p[0]}:\n    return {p[1]}")
    loop = st.tuples(st.integers(1, 3), body).map(
        lambda p: "\n".join([f"for k in range({p[0]}):", *indented(p[1]), "    t += k"]))
    return st.one_of(branch, early, loop)


statement = st.recursive(assigned, blocks, max_leaves=4)
program = st.tuples(st.lists(statement, min_size=1, max_size=3), expression).map(
    lambda p: "\n".join(["s = 1", "t = y", *p[0], f"return {p[1]} + s"]))


def read_short(body: str) -> Callable[..., Any]:
    """The function of this body, which is no case for the tests of formulas where it takes too many steps for one."""
    function = function_of(body)
    try:
        read_formula(read("f", "function", function), [float, float])
    except NotFormula as reason:
        assume("more than" not in str(reason))
        raise
    return function


def agree(body: str, ways: Sequence[Callable[..., np.ndarray]]) -> None:
    function = read_short(body)
    x, y = pairs()
    kept = np.isfinite(x) & np.isfinite(y) & (np.abs(x) < 200) & (np.abs(y) < 200)
    x, y = x[kept], y[kept]
    with np.errstate(all="ignore"):
        want = np.array([by_python(function, *p) for p in zip(x, y, strict=True)])
        sure = np.isfinite(want) & (np.abs(want) < 1e9)  # beyond, rounding decides
        for way in ways:
            got = way(function, x, y)
            np.testing.assert_allclose(got[sure], want[sure], rtol=1e-9, atol=1e-9, err_msg=f"{way.__name__}\n{body}")


@given(program)
@settings(max_examples=150, deadline=None)
def test_random_functions_as_formulas(body: str):
    agree(body, [by_formula, by_eager_numpy])


@given(program)
@settings(max_examples=12, deadline=None)
def test_random_functions_compiled(body: str):
    agree(body, [by_kernel, by_numba])


@given(program)
@settings(max_examples=60, deadline=None)
def test_derivatives_of_random_formulas(body: str):
    """Against central differences, where two of them agree: not at steps and bends. Their lengths are in no ratio of
    small whole numbers, as a steep value that is taken modulo 4 may wrap about in both, by as much for its length."""
    made = known(read_short(body))
    reading = NumpyReading("float64")
    points = np.random.default_rng(0).uniform(-3, 3, (2, 40))

    def value(text: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = evaluate(text, reading, {"a0": x, "a1": y})
        return np.broadcast_to(np.asarray(found, np.float64), x.shape)

    call = f"{made.name}(a0, a1)"
    for i in range(2):
        slope = value(by_argument(made, i), *points)
        steps = [np.array([[h], [0.0]])[::1 - 2 * i] for h in (1e-5, 1.618034e-5)]
        with np.errstate(all="ignore"):
            once, twice = ((value(call, *(points + step)) - value(call, *(points - step))) / (2 * step.max())
                           for step in steps)
            sure = (np.abs(once - twice) < 1e-5 * (1 + np.abs(once))) & (np.abs(once) < 1e6)
            sure &= np.abs(value(call, *points)) < 1e6
        np.testing.assert_allclose(slope[sure], once[sure], rtol=1e-3, atol=1e-3, err_msg=body)


def test_operators_of_both_kinds_agree():
    """The same function as a formula, and as what only Numba compiles."""
    formula = function_of(FORMULAS["loop"])
    native = function_of("t = 0\nk = 0\nwhile k < 5:\n    if x > k:\n        t += x * k\n    k += 1\nreturn t + y")
    mx.operator.elementwise("both_formula")(formula)
    mx.operator.elementwise("both_native")(native)
    x, y = (mx.nd.array(a) for a in np.random.default_rng(0).uniform(-3, 8, (2, 300, 300)))
    np.testing.assert_allclose(mx.nd.both_formula(x, y).asnumpy(), mx.nd.both_native(x, y).asnumpy(), rtol=1e-6)
