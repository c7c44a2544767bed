"""A function's source is what runs: of reloaded and edited files, wrapped functions, `python -O`."""
from __future__ import annotations

import functools
import importlib
import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from elsewhere import run

import mxc as mx
from mxc.compiler.error import MXNetError

_count = itertools.count()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Writes a module's text, and imports it for the first time or once more."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # whose times are of whole seconds
    name = f"written_{next(_count)}"

    def written(text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)

    return written


def value(function: Callable[..., float], x: float = 2.0, **parameters: float) -> float:
    """What the function gives as an operator."""
    name = f"sourced_{next(_count)}"
    mx.operator.elementwise(name)(function)
    return float(getattr(mx.nd, name)(mx.nd.array([x]), **parameters).asscalar())


def test_a_reloaded_function(module: Callable[[str], ModuleType]):
    assert value(module("def act(x): return x * 2\n").act) == 4
    assert value(module("def act(x): return x * 333\n").act) == 666
    assert value(module("def act(x): return x * 444\n").act) == 888  # of the same size


@pytest.mark.parametrize("edited", [
    "def act(x): return x * 333\n", "def act(x): return x + 2\n", "def act(x): return -x * 2\n", "def act(x): return (",
    "def act(y): return y * 2\n", "\ndef act(x): return x * 2\n", "def other(x): return x * 2\n",
    "def act(x): return SCALE * 2\n"])
def test_an_edited_file_that_was_not_imported_again(module: Callable[[str], ModuleType], edited: str):
    made = module("def act(x): return x * 2\n")
    Path(made.__file__ or "").write_text(edited)
    with pytest.raises(MXNetError, match=r"function act.*(not in its file as it is now|has changed since)"):
        value(made.act)
    Path(made.__file__ or "").write_text("def act(x): return x * 2  # with a comment\n")
    assert value(made.act) == 4


def test_an_edited_helper(module: Callable[[str], ModuleType]):
    made = module("def help(x): return x * 2\ndef act(x): return help(x)\n")
    Path(made.__file__ or "").write_text("def help(x): return x * 5\ndef act(x): return help(x)\n")
    with pytest.raises(MXNetError, match="not in its file as it is now"):
        value(made.act)


def test_lambdas_on_a_line():
    scale = 3.0
    first, second = (lambda x: x + 1), (lambda x: scale * x)
    assert (value(first), value(second)) == (3, 6)


def test_methods_and_closures(module: Callable[[str], ModuleType]):
    made = module("class Act:\n    @staticmethod\n    def act(x): return x * 2\n"
                  "def closed(n):\n    def act(x):\n        return sum_of(x, n)\n"
                  "    def sum_of(a, b): return a + b\n    return act\n")
    assert (value(made.Act.act), value(made.closed(5))) == (4, 7)


def wrapped(x, *, s=2.0):
    return x * s


def without(x):
    return x


@pytest.mark.parametrize("inner", [wrapped, without, math.sin])
def test_wrapped_functions_have_their_own_defaults(inner: Callable[..., float]):
    @functools.wraps(inner)
    def outer(x, *, s=5.0):
        return x * s

    assert (value(outer), value(outer, s=3.0)) == (10, 6)


def test_a_helper_without_its_argument():
    def help_(x, *, s):
        return x * s

    def act(x):
        while x > 9:
            x = x / 2
        return help_(x)

    with pytest.raises(MXNetError, match="the argument s is missing") as caught:
        value(act)
    assert str(caught.value).endswith("\n    return help_(x)")


OPTIMISED = """
import mxc as mx

@mx.operator.elementwise("halved")
def halved(x):
    "What it is."
    while x > 1:
        x = x / 2
    return x

print(mx.nd.halved(mx.nd.array([3.0])).asscalar())
"""


def test_optimised_python(tmp_path: Path):
    (tmp_path / "made.py").write_text(OPTIMISED)
    for level in ("0", "1", "2"):
        got = run("import made", PYTHONPATH=str(tmp_path), PYTHONOPTIMIZE=level, MXC_CACHE_DIR=str(tmp_path / "cache"))
        assert got.strip() == "0.75"
