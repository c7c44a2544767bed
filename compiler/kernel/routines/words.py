"""The words that routines may say beyond plain Python, as NumPy; a target compiles them as its own primitives.

Each ends in `_`, or is the name of a dtype, which converts. Arguments have one dtype, which is the result's too; what
`product_` does is said there.
"""
from __future__ import annotations

import numpy as np
from numpy import float32, float64, int8, int32, int64, uint8, uint32, uint64

from mxc.compiler.ops import philox, special
from mxc.compiler.ops.shapes import PANEL

__all__ = [
    "abs_",
    "ceil_",
    "erfinv_",
    "exp_",
    "expm1_",
    "float32",
    "float64",
    "floor_",
    "fma_",
    "int8",
    "int32",
    "int64",
    "lgamma_",
    "log1p_",
    "log_",
    "max_",
    "min_",
    "pow_",
    "product_",
    "rand_",
    "sigmoid_",
    "sqrt_",
    "sum_",
    "tanh_",
    "trunc_",
    "uint8",
    "uint32",
    "uint64",
    "uniform_",
]

abs_, ceil_, exp_, expm1_, floor_, log1p_, log_, sqrt_, tanh_, trunc_ = (
    np.abs, np.ceil, np.exp, np.expm1, np.floor, np.log1p, np.log, np.sqrt, np.tanh, np.trunc)
max_, min_ = np.maximum, np.minimum  # NaN when either is NaN
pow_, sum_ = np.power, np.add  # sum_: in any order, so that a loop of them can be vector code


def fma_(a, b, c):
    """a * b + c, rounded once where the machine can."""
    return a * b + c


def sigmoid_(x):
    """1 / (1 + exp(-x))."""
    return type(x)(1) / (type(x)(1) + np.exp(-x))


def erfinv_(x):
    """The inverse of the error function."""
    return type(x)(special.erfinv(x))


def lgamma_(x):
    """The logarithm of the gamma function."""
    return type(x)(special.lgamma(x))


def rand_(seed, offset, index):
    """uint32 of the counter-based generator."""
    return uint32(philox.words(seed, offset, index))


def uniform_(seed, offset, index):
    """float64 in [0, 1), of two words of the counter-based generator."""
    return float64(philox.uniform((seed, offset), index))


def product_(to, at, rows, left, start, depth, packed, columns):
    """Adds left, (rows, depth) from `start` on, times a matrix (depth, columns) to `to`, (rows, columns) from `at` on.

    packed: the matrix as (ceil(columns / PANEL), depth, PANEL), what fills the last panel being anything. All are dense
    float32 or float64.
    """
    panels = -(-columns // PANEL)
    matrix = packed[:panels * depth * PANEL].reshape(panels, depth, PANEL).transpose(1, 0, 2).reshape(depth, -1)
    result = left[start:start + rows * depth].reshape(rows, depth) @ matrix[:, :columns]
    to[at:at + rows * columns] += result.ravel()
