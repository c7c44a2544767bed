"""MXNet's `mx.nd`: arrays, and a function for each operator (made from the table when first asked for).

Begin with `ndarray.py` (the class) and `functions.py` (how functions are made of the table); `indexing.py`,
`arithmetic.py` and `creation.py` have what is no operator's function. Programs and other modules import the names below
and what `__getattr__` finds.
"""
# ruff: noqa: F401 (most of what is imported is what the module gives)
from __future__ import annotations

import importlib
from typing import Any

from mxc.ndarray import _internal, contrib, functions, image, linalg, op, random, sparse
from mxc.ndarray.arithmetic import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    lesser,
    lesser_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    modulo,
    multiply,
    not_equal,
    power,
    subtract,
    true_divide,
)
from mxc.ndarray.creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    histogram,
    imdecode,
    linspace,
    moveaxis,
    onehot_encode,
    ones,
    split_v2,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)
from mxc.ndarray.index_keys import (
    get_indexing_dispatch_code,
    get_oshape_of_gather_nd_op,
    indexing_key_expand_implicit_axes,
)
from mxc.ndarray.ndarray import CODES, NDArray
from mxc.ndarray.saving import load, load_frombuffer, save
from mxc.operator_calls import public_names
from mxc.runtime.engine import waitall

_OWN = [
    "NDArray", "add", "arange", "array", "concatenate", "contrib", "divide", "empty", "equal", "eye",
    "from_dlpack", "from_numpy", "full", "get_indexing_dispatch_code", "get_oshape_of_gather_nd_op", "greater",
    "greater_equal", "histogram", "image", "imdecode", "indexing_key_expand_implicit_axes", "lesser", "lesser_equal",
    "linalg", "linspace", "load", "load_frombuffer", "logical_and", "logical_or", "logical_xor", "maximum", "minimum",
    "modulo", "moveaxis", "multiply", "not_equal", "onehot_encode", "ones", "power", "random",
    "save", "sparse", "split_v2", "subtract", "to_dlpack_for_read", "to_dlpack_for_write", "true_divide", "waitall",
    "zeros",
]


def __getattr__(name: str) -> Any:
    if name == "__all__":  # `import *` asks for this; other programs do not pay for a list of all operators.
        return [*_OWN, *CODES.split(), "Custom", *public_names()]
    if name in CODES.split():
        return getattr(importlib.import_module("mxc.codes"), name)
    if name == "Custom":
        return importlib.import_module("mxc.operator").array_custom
    if name.startswith("_"):  # Operators with an underscore are in `_internal`, as in MXNet.
        raise AttributeError(f"module 'mxc.ndarray' has no attribute {name!r}")
    function = globals()[name] = functions.lookup(name)  # From now on Python finds it without this function.
    return function


def __dir__() -> list[str]:
    return sorted({*_OWN, *public_names()})
