"""Reading and assigning elements of arrays.

Integers and slices whose elements lie contiguously give a view; any other key a copy. `index_keys` has the rules.
"""
from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.ops import dtypes
from mxc.ndarray.index_keys import INTEGERS, array_of, check_empty, check_forward, parse
from mxc.runtime import engine
from mxc.runtime.array import LARGE, Array
from mxc.util import is_np_shape


def select(array: Array, key: Any) -> Array:
    """The elements under a key: a view of `array` where they lie contiguously, else a new array.

    A single element has the shape (1,); under NumPy's shape semantics (), where integers alone select it. Raises
    IndexError for an index out of range or too many indices, ValueError and TypeError for what is no key, MXNetError
    where nothing is selected (but by the first axis).
    """
    memory = array.layout
    if isinstance(key, INTEGERS):
        key = int(key)
        if memory.ndim > 1:
            return array.view(memory[key])
        if -memory.size <= key < memory.size and memory.ndim:
            return array.view(memory[key, ...] if is_np_shape() else memory[key:key + 1 or None])
    elif isinstance(key, tuple) and len(key) == memory.ndim and all(isinstance(k, INTEGERS) for k in key):
        places: tuple[Any, ...] = (*map(int, key), ...)  # With the Ellipsis NumPy gives a view.
        element = memory[places]
        return array.view(element.reshape(1) if key and not is_np_shape() else element)
    elif _is_range(key) and memory.ndim:
        start, stop, _ = key.indices(len(memory))
        if start > stop:
            raise MXNetError(f"invalid slice {key} of axis 0 with size {len(memory)}: it begins at {start}, behind its "
                             f"end {stop}")
        return array.view(memory[start:stop])
    found = parse(key, memory.shape)
    if found.advanced:
        return _copied(array, found.parts, found.result)
    check_empty(found)
    parts = (*found.parts, ...)  # With the Ellipsis NumPy gives a view, also where integers take every axis.
    elements = memory[parts]
    if elements.flags.c_contiguous:
        return array.view(elements.reshape(found.result))
    return _copied(array, parts, found.result)


def _copied(array: Array, key: Any, shape: tuple[int, ...]) -> Array:
    """A new array of what NumPy's key selects, in another shape."""
    made, source = Array.empty(shape, array.dtype, array.context.computing), array

    def copy() -> None:
        np.copyto(made.memory, source.read()[key].reshape(shape))

    engine.push(copy, (array.variable,), (made.variable,), "index", made.size < LARGE)
    return made


def assign(array: Array, key: Any, value: Any) -> None:
    """Write a number, an array or nested lists, cast and broadcast, to the elements under a key.

    Raises IndexError for an index out of range, TypeError for a value of no numbers, ValueError when the shapes do not
    fit, MXNetError for a slice that begins behind its end.
    """
    if (isinstance(key, INTEGERS) and not isinstance(key, bool)) or _is_range(key):  # Most keys are such; this is fast.
        target, source = select(array, key), array_of(value)
        if source is not None and source.shape == target.shape:
            target.copy_from(source)
        else:
            target.assign(_fitted(_values(value, array.dtype), target.shape, ()))
        return
    found = parse(key, array.shape)
    values = _fitted(_values(value, array.dtype), found.shape, found.new_axes)
    if found.advanced:
        if found.inner != found.shape:
            values = np.broadcast_to(values, found.shape).reshape(found.inner)
        array.assign(values, found.parts)
    else:
        check_forward(found, array.shape)
        array.assign(values, (*found.without_new_axes, ...))


def _is_range(key: object) -> bool:
    """Whether a key is a slice without steps."""
    return isinstance(key, slice) and (key.step is None or key.step == 1)


def _values(value: Any, dtype: str) -> np.ndarray:
    """The assigned value as a NumPy array: a number as float64, arrays of numbers as they are, others in `dtype`."""
    if isinstance(value, (numbers.Real, np.bool_)):
        return np.asarray(float(value))
    source = array_of(value)
    if source is not None:
        return source.data
    try:
        values = np.asarray(value)
        if dtypes.is_number(values.dtype):
            return values
        return np.array(value, "float32" if dtype == "bfloat16" else dtype)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"NDArray does not support assignment with non-array-like object {value} of type "
                                f"{type(value)}") from None


def _fitted(values: np.ndarray, shape: tuple[int, ...], new_axes: tuple[int, ...]) -> np.ndarray:
    """`values` with no more axes than `shape`, to which they can be broadcast.

    Where they have more axes, those that the key adds are dropped, and then leading ones of extent 1.
    Raises ArgumentError, an MXNetError and a ValueError, when the shapes do not fit.
    """
    if not values.ndim:
        return values
    if 0 in shape:
        if values.size:
            raise ArgumentError(f"a value of shape {values.shape} does not fit the key, which selects no elements")
        return np.zeros(())
    given = values.shape
    if new_axes and len(given) > max(1, len(shape)):
        if any(axis >= len(given) or given[axis] != 1 for axis in new_axes):
            raise ArgumentError(f"a value of shape {given} does not fit: the key adds the axes {new_axes}, which must "
                                "have the extent 1 in a value with all axes")
        given = tuple(n for axis, n in enumerate(given) if axis not in new_axes)
    extra = len(given) - len(shape)
    if extra > 0 and all(n == 1 for n in given[:extra]):
        given = given[extra:]
    if len(given) > len(shape) or any(n not in (1, m) for n, m in zip(given[::-1], shape[::-1], strict=False)):
        raise ArgumentError(f"a value of shape {values.shape} does not fit the selected elements of shape "
                            f"{shape or (1,)}")
    return values.reshape(given)
