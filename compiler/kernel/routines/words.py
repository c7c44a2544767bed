"""The words that routines may say beyond plain Python, as NumPy; a target compiles them as its own primitives.

Each ends in `_`, or is the name of a dtype, which converts. Arguments have one dtype, which is the result's too.
"""
from __future__ import annotations

import numpy as np
from numpy import float32, float64, int8, int32, int64, uint8, uint32, uint64

__all__ = [
    "abs_",
    "ceil_",
    "exp_",
    "expm1_",
    "float32",
    "float64",
    "floor_",
    "fma_",
    "int8",
    "int32",
    "int64",
    "log1p_",
    "log_",
    "max_",
    "min_",
    "pow_",
    "sigmoid_",
    "sqrt_",
    "sum_",
    "tanh_",
    "trunc_",
    "uint8",
    "uint32",
    "uint64",
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
