"""What functions over whole arrays may use of arrays and of NumPy. All else is refused. Much of what Numba compiles
reads memory without checks, such as `flat`, strides, and functions that write to an array that they are given; members
that nobody has examined may do so too."""
from __future__ import annotations

import builtins
from typing import Any

import numpy as np

CALLED = frozenset(["abs", "bool", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow", "range", "round",
                    "sum", "zip"])  # functions of Python's own
METHODS = frozenset(["all", "any", "argmax", "argmin", "fill", "max", "mean", "min", "prod", "std", "sum", "var"])
# Attributes of arrays, of dtypes, and of the results of numpy.finfo.
ATTRIBUTES = METHODS | {"T", "dtype", "eps", "ndim", "shape", "size", "tiny", "type"}
OF_ARRAYS = frozenset(["all", "amax", "amin", "any", "argmax", "argmin", "max", "mean", "min",
                       "nanmax", "nanmean", "nanmin", "nansum", "ndenumerate", "ndindex", "prod", "searchsorted", "std",
                       "sum", "var"])  # functions of NumPy that only read their arrays
OF_NUMBERS = frozenset(["around", "finfo", "iinfo", "nan_to_num", "round", "sinc"])
TAKE_ARRAYS = frozenset([*(getattr(np, name) for name in OF_ARRAYS),
                         *(getattr(builtins, name) for name in ("enumerate", "len", "max", "min", "sum", "zip"))])


def is_known(name: str) -> bool:
    """Whether functions may use this member of NumPy."""
    value: Any = getattr(np, name, None)
    is_number = isinstance(value, float) or (isinstance(value, type) and issubclass(value, (np.number, np.bool_)))
    return name in OF_ARRAYS or name in OF_NUMBERS or is_number or isinstance(value, np.ufunc)
