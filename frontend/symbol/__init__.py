"""MXNet's `mx.sym`: symbols, and a function for each operator (made from the table when first asked for).

Begin with `symbol.py` (the class) and `construct.py` (how operators are applied); `binding.py` makes executors,
`inference.py` finds shapes and dtypes. Programs and other modules import the names below and what `__getattr__`
finds; the commands ask `binding.py` and `inference.py` too.
"""
# ruff: noqa: F401 (most of what is imported is what the module gives)
from __future__ import annotations

import importlib
from typing import Any

from mxc.symbol import _internal, contrib, functions, image, linalg, op, random, sparse
from mxc.symbol.arithmetic import hypot, maximum, minimum, pow, power
from mxc.symbol.construct import Group, Variable
from mxc.symbol.creation import arange, eye, full, histogram, linspace, ones, split_v2, zeros
from mxc.symbol.symbol import Symbol, fromjson, load, load_json

var = Variable

_OWN = ["Group", "Symbol", "Variable", "arange", "contrib", "eye", "full", "histogram", "hypot", "image", "linalg",
        "linspace", "load", "load_json", "maximum", "minimum", "ones", "pow", "power", "random", "sparse", "split_v2",
        "var", "zeros"]


def __getattr__(name: str) -> Any:
    if name == "__all__":  # `import *` asks for this; other programs do not pay for a list of all operators.
        return [*_OWN, "Custom", *functions.public_names()]
    if name == "Custom":
        return importlib.import_module("mxc.operator").symbol_custom
    if name.startswith("_"):  # Operators with an underscore are in `_internal`, as in MXNet.
        raise AttributeError(f"module 'mxc.symbol' has no attribute {name!r}")
    function = globals()[name] = functions.lookup(name)  # From now on Python finds it without this function.
    return function


def __dir__() -> list[str]:
    return sorted({*_OWN, *functions.public_names()})
