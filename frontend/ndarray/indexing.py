"""Indexing of arrays: which element a key selects, when the result shares memory, and assignment.

A basic key (integers, slices, None, Ellipsis) whose elements lie contiguously gives a view; any other key a copy.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.runtime.array import Array


def is_basic(key: object) -> bool:
    """Whether `key` has integers, slices, None and Ellipsis only."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(p is None or p is Ellipsis or (isinstance(p, (int, slice, np.integer)) and not isinstance(p, bool))
               for p in parts)


def numpy_key(key: object, values_of: Any) -> Any:
    """`key` as NumPy takes it: `values_of` turns an NDArray into a NumPy array (other things into None), and index
    arrays of floats, as MXNet makes them by default, become integers."""

    def convert(part: object) -> object:
        values = values_of(part)
        if values is None and isinstance(part, (list, np.ndarray)):
            values = np.asarray(part)
        if values is None:
            return part
        return values.astype(np.int64) if values.dtype.kind == "f" else values

    return tuple(map(convert, key)) if isinstance(key, tuple) else convert(key)


def select(array: Array, key: Any) -> Array:
    """The elements under a NumPy key: a view of `array` where that is possible, else a new array.

    A single element has the shape (1,). Raises IndexError for an index out of range or too many indices.
    """
    basic = is_basic(key)
    if basic:
        parts = key if isinstance(key, tuple) else (key,)
        key = parts if Ellipsis in parts else (*parts, Ellipsis)  # with it, integers for all axes give a view, too
    found = np.asarray(array.data[key])
    found = found.reshape(1) if found.ndim == 0 else found
    if basic and found.flags.c_contiguous:
        return array.view(found)
    return Array.of(found, context=array.context)


def assign(array: Array, key: Any, value: np.ndarray) -> None:
    """Write `value`, cast and broadcast, to the elements under a NumPy key.

    Raises IndexError for an index out of range and ArgumentError when the shapes do not fit.
    """
    if is_basic(key) and value.ndim:
        target = array.data[key].shape
        try:
            fits = np.broadcast_shapes(target, value.shape[max(0, value.ndim - len(target)):]) == target
        except ValueError:
            fits = False
        if not fits or any(n != 1 for n in value.shape[:max(0, value.ndim - len(target))]):
            raise ArgumentError(f"a value of shape {value.shape} does not fit the selected elements of shape {target}")
    array.assign(value, key)
