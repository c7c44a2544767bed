"""Arrays: `mx.nd`. Functions for all operators of the table are found by name."""
from __future__ import annotations

from typing import Any

from mxc.ndarray import _internal, functions, image, linalg, op, sparse
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
    from_numpy,
    full,
    linspace,
    moveaxis,
    ones,
    zeros,
)
from mxc.ndarray.ndarray import NDArray
from mxc.ndarray.saving import load, load_frombuffer, save
from mxc.runtime.engine import waitall

__all__ = [
    "NDArray", "add", "arange", "array", "concatenate", "divide", "empty", "equal", "eye", "from_numpy", "full",
    "greater", "greater_equal", "lesser", "lesser_equal", "linspace", "load", "load_frombuffer", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "modulo", "moveaxis", "multiply", "not_equal", "ones", "power",
    "save", "subtract", "true_divide", "waitall", "zeros",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # underscore operators are found in _internal, as in MXNet
        raise AttributeError(f"module 'mxc.ndarray' has no attribute {name!r}")
    return functions.lookup(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *functions.operator_calls.public_names()})
