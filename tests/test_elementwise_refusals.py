"""What is no function of an elementwise operator: one error each, which quotes the line of the user's function."""
from __future__ import annotations

import itertools
import linecache
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import run

import mxc as mx
from mxc.compiler.error import MXNetError

_count = itertools.count()


def function_of(body: str, parameters: str) -> Callable[..., Any]:
    """A function whose text is kept as a notebook keeps its cells."""
    file = f"<refused {next(_count)}>"
    text = f"def f({parameters}):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    space: dict[str, Any] = {"math": math, "np": np, "mx": mx, "ARRAY": np.zeros(3), "TABLE": (1.0, 2.0), "NAMES": {},
                             "NESTED": ((1.0,),)}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def refusal(body: str, parameters: str = "x", gradient: tuple[str, str] | None = None, name: str = "") -> str:
    slopes = None if gradient is None else function_of(gradient[1], gradient[0])
    with pytest.raises(MXNetError) as caught:
        mx.operator.elementwise(name or f"refused_{next(_count)}", gradient=slopes)(function_of(body, parameters))
    return str(caught.value)


ENDLESS = "while x > 1:\n    x = x / 2\n"
CASES = {  # body -> (what is said, the line that is quoted)
    "return 'a'": ("it returns a string; expected a number", "return 'a'"),
    "return None": ("it returns None", "return None"),
    "return [x]": ("it returns a list", "return [x]"),
    "return x, x": ("it returns 2 values; expected one number", "return x, x"),
    "y = x, x\nreturn y": ("it returns 2 values; expected one number", "return y"),
    "if x > 0:\n    return x": ("a path through it ends without a return", "if x > 0:"),
    "while x > 1:\n    return x": ("a path through it ends without a return", "while x > 1:"),
    "x + 1": ("a path through it ends without a return", "x + 1"),
    "return other(x)": ("other is not defined", "return other(x)"),
    "return math.other(x)": ("math has no member other", "return math.other(x)"),
    "return math.comb(x, 2)": ("Numba cannot compile it: it knows no comb of math", "return math.comb(x, 2)"),
    "return np.linalg.norm(x)": ("Numba cannot compile it: it has no norm(float32)", "return np.linalg.norm(x)"),
    "return x @ x": ("Numba cannot compile it: it has no matmul(float32, float32)", "return x @ x"),
    "t = 1.0\nreturn x.real.part": ("it knows no part of float32", "return x.real.part"),
    "print(x)\nreturn x": ("it needs Python as it runs", "print(x)"),
    "raise ValueError(x)": ("it raises an error", "raise ValueError(x)"),
    "assert x > 0\nreturn x": ("it asserts", "assert x > 0"),
    "try:\n    return 1 / x\nexcept ZeroDivisionError:\n    return 0": ("it catches errors", "try:"),
    "with open('a'):\n    return x": ("it has a with block", "with open('a'):"),
    "global COUNT\nCOUNT = 1\nreturn x": ("it changes global names", "global COUNT"),
    "yield x": ("it yields", "yield x"),
    "return (y := x * 2) + y": ("it assigns within an expression; expected an assignment of its own",
                               "return (y := x * 2) + y"),
    "while x > 1:\n    x = x / 2\nreturn round(x, 2)": ("it rounds to digits; expected round of one argument",
                                                       "return round(x, 2)"),
    "while x > 1:\n    x = x / 2\nreturn round(x, ndigits=1)": ("the argument ndigits of round is given by its name",
                                                               "return round(x, ndigits=1)"),
    "t = x, x\nwhile x > 1:\n    x = x / 2\nreturn max(*t)": ("it has a * before a name or value", "return max(*t)"),
    "import os\nreturn x": ("it imports", "import os"),
    "t = 'abc'\nreturn t": ("it computes what is no number", "return t"),
    "return x if x else None": ("it computes what is no number", "return x if x else None"),
    "t = [x, x]\nwhile x > t[0]:\n    x = x - 1\nreturn x": ("it allocates memory", "t = [x, x]"),
    "k = 0\nwhile k < x:\n    k += int(TABLE[k])\nreturn k": ("it may raise an error", "k += int(TABLE[k])"),
    "n = int(min(max(x, 0), 1))\nt = x\nwhile t < 3:\n    t += 1\nreturn TABLE[n] + t": (
        "it may raise an error", "return TABLE[n] + t"),
    "return NESTED[0][0] * x": ("NESTED is a tuple of more than numbers; expected numbers, tuples of numbers",
                               "return NESTED[0][0] * x"),
    "a, *b = x, 2.0\nreturn a": ("it has a * before a name or value; expected each by itself", "a, *b = x, 2.0"),
    "x.real = 1\nreturn x": ("it writes to a part of something", "x.real = 1"),
    # Python 3.13 has a return of its own for each branch, whose values Numba need not unify.
    "return x if x else 'a'": ("Numba cannot compile it: Cannot unify float32 and Literal[str](a)\n"
                              if sys.version_info < (3, 13) else "it computes what is no number",
                              "return x if x else 'a'"),
    "for k in range(3):\n    if x > k:\n        break\nelse:\n    return x": (
        "a path through it ends without a return", "for k in range(3):"),
    "return ARRAY[0] * x": ("ARRAY is a ndarray; expected numbers", "return ARRAY[0] * x"),
    "return NAMES['a'] * x": ("NAMES is a dict; expected numbers", "return NAMES['a'] * x"),
    "return mx.nd.exp(x)": ("mx is a module; expected numbers", "return mx.nd.exp(x)"),
}


@pytest.mark.parametrize("body", CASES)
def test_functions(body: str):
    said, line = CASES[body]
    text = refusal(body)
    assert said in text and text.endswith(f"\n    {line}"), text
    number = body.splitlines().index(next(each for each in body.splitlines() if each.strip() == line)) + 2
    assert re.match(rf"operator refused_\d+: function f \(<refused \d+>, line {number}\): ", text)


@pytest.mark.parametrize(("parameters", "said"), [
    ("", "it has no inputs"), ("*, beta=1.0", "it has no inputs"), ("x, y=1", "an input has a default"),
    ("*x", "it has * or ** parameters"), ("x, **more", "it has * or ** parameters"),
    ("x, *, name=1.0", "an argument is called name"), ("e", "an argument is called e"),
    ("x, *, a='b'", "the parameter a is 'b' by default; expected float, int or bool"),
    ("x, *, a: str", "the parameter a is annotated with str"),
    ("x, *, a: int = 0.5", "the default of a: expected int, got 0.5")])
def test_parameters(parameters: str, said: str):
    text = refusal("return 1.0", parameters)
    assert said in text and text.endswith(f"\n    def f({parameters}):")


@pytest.mark.parametrize(("gradient", "said", "line"), [
    (("x, y", "return y"), "it returns one value; expected a tuple of 2, the derivative by each input", "return y"),
    (("x, y", "return y, x, x"), "it returns 3 values; expected a tuple of 2", "return y, x, x"),
    (("x, y", "t = y, x, y\nreturn t"), "it returns 3 values; expected a tuple of 2", "return t"),
    (("x, y", ENDLESS + "t = y, x, y\nreturn t"), "it returns 3 values; expected a tuple of 2", "return t"),
    (("x, y", ENDLESS + "return abs(x)"), "it returns one value; expected a tuple of 2", "return abs(x)"),
    (("x", "return x, x"), "it has 1 inputs; expected those of the function, x, y", "def f(x):"),
    (("x, y, *, k=1", "return x, y"), "the function has no parameter k", "def f(x, y, *, k=1):"),
    (("x, y", "return 'a'"), "it returns a string; expected a number for each of 2 inputs", "return 'a'")])
def test_gradients(gradient: tuple[str, str], said: str, line: str):
    text = refusal("return x * y", "x, y", gradient)
    assert said in text and ": gradient f (" in text and text.endswith(f"\n    {line}"), text


@pytest.mark.parametrize(("name", "said"), [
    ("relu", "operator relu: there is an operator of this name already; expected another name"),
    ("array", "operator array: there is mx.nd.array already; expected another name"),
    ("Variable", "operator Variable: there is mx.sym.Variable already; expected another name"),
    ("two words", "operator 'two words': expected the name of a function"),
    ("_hidden", "operator '_hidden': expected the name of a function"),
    ("lambda", "operator 'lambda': expected the name of a function")])
def test_names(name: str, said: str):
    assert said in refusal("return x", name=name)


def test_a_name_is_given_once():
    first = function_of("return x", "x")
    mx.operator.elementwise("given_once")(first)
    text = refusal("return x + 1", name="given_once")
    assert f"there is an operator of this name already ({first.__code__.co_filename}, line 1)" in text


@pytest.mark.parametrize("function", [max, math.exp, "a", 3, len])
def test_what_is_no_function_in_python(function: Any):
    with pytest.raises(MXNetError, match="expected a function written in Python"):
        mx.operator.elementwise(f"refused_{next(_count)}")(function)


def test_a_refused_operator_may_be_given_again():
    body = "while x > 1:\n    x = x / 2\nreturn x"
    refusal(body, gradient=("x", "return x, x"), name="second_try")
    mx.operator.elementwise("second_try", gradient=lambda x: 0.5 * x)(function_of(body, "x"))
    x = mx.nd.array([5.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.second_try(x)
    y.backward()
    assert (y.asscalar(), x.grad.asscalar()) == (0.625, 2.5)


def test_a_gradient_that_is_missing():
    mx.operator.elementwise("no_slope")(function_of("while x > 1:\n    x = x / 2\nreturn x", "x"))
    executor = mx.sym.no_slope(mx.sym.Variable("data")).simple_bind(mx.cpu(), data=(3,))
    with pytest.raises(MXNetError, match=r"operator no_slope \(.*line 1\) is no plain formula.*gradient="):
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones(3))
    x = mx.nd.ones(3)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.no_slope(x)
    with pytest.raises(MXNetError, match="operator no_slope"):
        y.backward()


def test_parameters_of_calls_are_checked():
    made = function_of("return x * times if on else x", "x, *, times=2, on=True")
    mx.operator.elementwise("checked", gradient=None)(made)
    x = mx.nd.ones(2)
    assert mx.nd.checked(x, times=3).asnumpy().tolist() == [3, 3]
    assert mx.nd.checked(x, times=3, on=False).asnumpy().tolist() == [1, 1]
    with pytest.raises(MXNetError, match=r"operator checked.*'times': expected int, got 0.5"):
        mx.nd.checked(x, times=0.5)
    with pytest.raises(MXNetError, match=r"operator checked.*unknown attribute 'tines'"):
        mx.nd.checked(x, tines=2)


@pytest.mark.parametrize("body", [
    "".join(f"{'el' if i else ''}if x > {400 - i}:\n    return x * {i}.0\n" for i in range(400)) + "return x",
    "return " + " + ".join(["x"] * 900), "while x > 1:\n    x = x / 2\nreturn " + "-" * 400 + "x"])
def test_what_is_nested_too_deeply(body: str):
    with pytest.raises(MXNetError, match=r"operator deep: its function is nested too deeply"):
        mx.operator.elementwise("deep")(function_of(body, "x"))


def test_a_decorator_without_a_name():
    with pytest.raises(MXNetError, match=r'got the function f where a name is expected.*elementwise\("f"\)'):
        mx.operator.elementwise(function_of("return x", "x"))  # type: ignore[arg-type]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import mxc as mx
try:
    import elementwise_operators
except mx.base.MXNetError as error:
    print(error)
"""


def test_without_numba(tmp_path: Path):
    said = run(WITHOUT_NUMBA, MXC_CACHE_DIR=str(tmp_path))
    assert "Numba cannot be imported" in said
    assert "operator often_halved is compiled by it" in said
    assert "Traceback" not in said
