"""Arrays: `mx.nd`. Functions for all operators of the table are found by name."""
from __future__ import annotations

from typing import Any

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
from mxc.ndarray.operators import function
from mxc.ndarray.saving import load, load_frombuffer, save
from mxc.runtime.engine import waitall

__all__ = [
    "NDArray", "add", "arange", "array", "concatenate", "divide", "empty", "equal", "eye", "from_numpy", "full",
    "greater", "greater_equal", "lesser", "lesser_equal", "linspace", "load", "load_frombuffer", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "modulo", "moveaxis", "multiply", "not_equal", "ones", "power",
    "save", "subtract", "true_divide", "waitall", "zeros",
]


def __getattr__(name: str) -> Any:
    """The function of an operator, made at its first use."""
    from mxc.compiler.ops import table

    if name.startswith("__") or not table.has(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: no function or operator of that name")
    made = globals()[name] = function(name)
    return made
