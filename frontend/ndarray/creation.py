"""Functions that make arrays from values and shapes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.ndarray.ndarray import NDArray
from mxc.runtime.array import Array
from mxc.runtime.context import Context, current_context

Shape = int | Sequence[int]


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array holding a copy of an array, a number or nested lists.

    dtype: by default that of an NDArray source, and float32 for every other source, NumPy arrays included.
    """
    if isinstance(source_array, NDArray):
        values: np.ndarray = source_array.asnumpy()
        dtype = values.dtype if dtype is None else dtype
    else:
        if isinstance(source_array, (list, tuple)) and any(isinstance(v, NDArray) for v in source_array):
            source_array = [np.asarray(v) for v in source_array]
        try:
            values = np.asarray(source_array)
        except ValueError as error:
            raise TypeError(f"source_array must be like an array: {error}") from None
        if values.dtype.kind not in "biuf":
            raise TypeError(f"source_array must be like an array of numbers, got {type(source_array)}")
    return NDArray(Array.of(values, "float32" if dtype is None else dtype, ctx or current_context()))


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True) -> NDArray:
    """An array on the memory of a C-contiguous NumPy array (zero_copy), or a copy of it, of the same dtype."""
    if zero_copy:
        return NDArray(Array.sharing(ndarray, current_context()))
    return NDArray(Array.of(ndarray, context=current_context()))


def empty(shape: Shape, ctx: Context | None = None, dtype: Any = None, stype: str | None = None) -> NDArray:
    """A new array whose elements are arbitrary."""
    return NDArray(Array.empty(_dense_shape(shape, stype), "float32" if dtype is None else dtype,
                               ctx or current_context()))


def full(shape: Shape, val: float, ctx: Context | None = None, dtype: Any = np.float32,
         out: NDArray | None = None) -> NDArray:
    """A new array of one value (or `out`, filled with it)."""
    made = out if out is not None else empty(_known_shape(shape), ctx, dtype)
    made[:] = val
    return made


def zeros(shape: Shape, ctx: Context | None = None, dtype: Any = None, stype: str | None = None,
          out: NDArray | None = None) -> NDArray:
    """A new array of zeros."""
    return full(_dense_shape(shape, stype), 0, ctx, "float32" if dtype is None else dtype, out)


def ones(shape: Shape, ctx: Context | None = None, dtype: Any = None, out: NDArray | None = None) -> NDArray:
    """A new array of ones."""
    return full(shape, 1, ctx, "float32" if dtype is None else dtype, out)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1,
           infer_range: bool | None = None, ctx: Context | None = None, dtype: Any = np.float32) -> NDArray:
    """start, start + step, ... before stop (0 to start when stop is None), each `repeat` times."""
    first, last = (0, start) if stop is None else (start, stop)
    return array(np.repeat(np.arange(first, last, step), repeat), ctx, dtype)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None,
             dtype: Any = np.float32) -> NDArray:
    """`num` values in equal steps from start to stop (included when `endpoint`)."""
    return array(np.linspace(start, stop, num, endpoint), ctx, dtype)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = np.float32) -> NDArray:
    """An N x M array (M = 0: N x N), one on the k-th diagonal, else zero."""
    return array(np.eye(N, M or N, k), ctx, dtype)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """The arrays, joined along an axis; a single one itself when `always_copy` is False."""
    if not arrays:
        raise ValueError("concatenate needs at least one array")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    try:
        values: np.ndarray = np.concatenate([a._array.data for a in arrays], axis, dtype=arrays[0].dtype,
                                            casting="unsafe")
    except ValueError as error:
        raise MXNetError(f"concatenate along axis {axis}: the shapes {', '.join(str(a.shape) for a in arrays)} "
                         f"do not fit: {error}") from None
    return NDArray(Array.of(values, context=arrays[0].context))


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """A copy with the axes at `source` moved to `destination`."""
    return NDArray(Array.of(np.moveaxis(tensor._array.data, source, destination), context=tensor.context))


def _dense_shape(shape: Shape, stype: str | None) -> tuple[int, ...]:
    if stype not in (None, "default"):
        raise MXNetError(f"storage type {stype!r} is not supported; arrays are kept dense ('default')")
    return _known_shape(shape) if isinstance(shape, (int, np.integer)) else tuple(shape)


def _known_shape(shape: Shape) -> tuple[int, ...]:
    """The shape as a tuple. Raises MXNetError for 0 or no dimensions: they mean "unknown" to shape inference."""
    known = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not known or 0 in known:
        raise MXNetError(f"the shape {known} is not complete: a dimension of 0 means that it is unknown, as does the "
                         "empty shape")
    return known
