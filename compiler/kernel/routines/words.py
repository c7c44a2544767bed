"""The words that routines may say beyond plain Python, as NumPy; a target compiles them as its own primitives.

Each ends in `_`, or is the name of a dtype, which converts. Every function of scalar_functions/records.py is a word,
but `where` and the logical ones, which Python says itself. Arguments have one dtype, which is the result's too; what
`product_` does is said there.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float32, float64, int8, int32, int64, uint8, uint32, uint64

from mxc.compiler.ops import philox
from mxc.compiler.ops.shapes import PANEL
from mxc.compiler.scalar_functions.records import BUILTINS

__all__ = [
    "float32",
    "float64",
    "fma_",
    "int8",
    "int32",
    "int64",
    "pow_",
    "product_",
    "rand_",
    "sum_",
    "uint8",
    "uint32",
    "uint64",
    "uniform_",
]

pow_, sum_ = np.power, np.add  # sum_: in any order, so that a loop of them can be vector code


def __getattr__(name: str) -> Any:
    """The word of a built-in function, such as `exp_` for `exp`."""
    found = BUILTINS.get(name.removesuffix("_"))
    if found is None or not name.endswith("_") or found.step in ("where", "and", "or", "not"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = found.numpy
    if isinstance(function, np.ufunc):
        return function
    return lambda *numbers: type(numbers[0])(function(*numbers))


def fma_(a, b, c):
    """a * b + c, rounded once where the machine can."""
    return a * b + c


def rand_(seed, offset, index):
    """A uint32 of the counter-based generator."""
    return uint32(philox.words(seed, offset, index))


def uniform_(seed, offset, index):
    """A float64 in [0, 1), made of two words of the counter-based generator."""
    return float64(philox.uniform((seed, offset), index))


def product_(to, at, rows, left, start, depth, packed, columns):
    """Adds left, (rows, depth) from `start` on, times a matrix (depth, columns) to `to`, (rows, columns) from `at` on.

    packed: the matrix as (ceil(columns / PANEL), depth, PANEL), where anything may fill up the last panel. All arrays
    are dense, of float32 or float64.
    """
    panels = -(-columns // PANEL)
    matrix = packed[:panels * depth * PANEL].reshape(panels, depth, PANEL).transpose(1, 0, 2).reshape(depth, -1)
    result = left[start:start + rows * depth].reshape(rows, depth) @ matrix[:, :columns]
    to[at:at + rows * columns] += result.ravel()
