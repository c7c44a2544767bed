"""What a key selects: MXNet's rules for integers, slices, None, Ellipsis and index arrays, as one record NumPy can use.

They are NumPy's, with these differences: Python's True and False inside a key select nothing and are left out; arrays
of booleans are no masks (lists and NumPy arrays of them are the indices 0 and 1, NDArrays are refused); a new axis
behind index arrays comes as many places earlier as these give axes.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.runtime.array import Array

BASIC, ADVANCED = 0, 1
INTEGERS = (int, np.int32, np.int64)
_LISTS = (np.ndarray, list, tuple, range)


@dataclass(frozen=True, slots=True)
class Key:
    """A key for an array of one shape, checked.

    parts: the key that NumPy gets: integers, slices, None and int64 index arrays, for every axis. advanced: whether
    there are index arrays. shape: the shape of the selected elements, without new axes; () when integers take every
    axis. inner: `shape` with the new axes that `parts` has. new_axes: the positions of new axes in `result`. result:
    the shape of the array that reading gives; (1,) for one element.
    """

    parts: tuple[Any, ...]
    advanced: bool
    shape: tuple[int, ...]
    inner: tuple[int, ...]
    new_axes: tuple[int, ...]
    result: tuple[int, ...]

    @property
    def without_new_axes(self) -> tuple[Any, ...]:
        """`parts` without None."""
        return tuple(p for p in self.parts if p is not None)


def array_of(value: object) -> Array | None:
    """The runtime's array of an NDArray; None for anything else."""
    array = getattr(value, "_array", None)
    return array if isinstance(array, Array) else None


def _is_index_array(part: object) -> bool:
    return isinstance(part, _LISTS) or array_of(part) is not None


def get_indexing_dispatch_code(key: tuple) -> int:
    """0 for a key of integers, slices and None, 1 for one with an index array (a list, range, NumPy array, NDArray).

    Raises ValueError for what is neither, before the first index array.
    """
    if not isinstance(key, tuple):
        raise ArgumentTypeError(f"the key is a tuple with a part for each axis, not {type(key)}")
    for part in key:
        if _is_index_array(part):
            return ADVANCED
        if part is not None and not isinstance(part, (slice, *INTEGERS)):
            raise ArgumentError(f"NDArray does not support slicing with key {part} of type {type(part)}; use integers, "
                                "slices, None, ..., lists or arrays")
    return BASIC


def indexing_key_expand_implicit_axes(key: Any, shape: Sequence[int]) -> tuple[tuple, int]:
    """The key as a tuple with a part for every axis: Ellipsis and what is left out become slices.

    The second value is the last True (1) or False (0) among the parts, which are left out, or -1.
    Raises IndexError for two Ellipses, ValueError for an NDArray of booleans.
    """
    parts: list[Any] = []
    flag, place = -1, None
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, bool):
            flag = int(part)
        elif part is Ellipsis:
            if place is not None:
                raise IndexError("Cannot use more than one ellipsis (`...`) for indexing")
            place = len(parts)
        else:
            array = array_of(part)
            if array is not None and array.dtype == "bool":
                raise ArgumentError("an NDArray of booleans is no index; use numpy.flatnonzero(mask.asnumpy())")
            parts.append(part)
    missing = len(shape) - sum(p is not None for p in parts)
    place = len(parts) if place is None else place
    return (*parts[:place], *(slice(None),) * missing, *parts[place:]), flag


def get_oshape_of_gather_nd_op(dshape: Sequence[int], ishape: Sequence[int]) -> tuple[int, ...]:
    """The shape of gather_nd's result for data and indices of these shapes. Raises ValueError for indices without
    axes."""
    if not ishape:
        raise ArgumentError("the indices of gather_nd have at least one axis")
    return (*ishape[1:], *dshape[ishape[0]:])


def parse(key: Any, shape: tuple[int, ...]) -> Key:
    """Check a key for an array of that shape.

    Raises IndexError for an index out of range or too many of them, ValueError and TypeError for what is no key,
    MXNetError for index arrays without elements.
    """
    if not shape and key == slice(None):
        key = ()
    expanded, _ = indexing_key_expand_implicit_axes(key, shape)
    if len(expanded) > len(shape) and sum(p is not None for p in expanded) > len(shape):
        raise IndexError(f"too many indices ({sum(p is not None for p in expanded)}) for array with {len(shape)} "
                         "dimensions")
    advanced = get_indexing_dispatch_code(expanded) == ADVANCED
    parts: list[Any] = []
    axis = 0
    for part in expanded:
        if part is None:
            parts.append(None)
            continue
        parts.append(_checked(part, axis, shape[axis]))
        axis += 1
    return _advanced(parts, shape) if advanced else _basic(parts, shape)


def _checked(part: Any, axis: int, extent: int) -> Any:
    """One part of a key for an axis: slices with their bounds, integers and arrays in range."""
    if isinstance(part, slice):
        return part
    if isinstance(part, INTEGERS):
        if not -extent <= part < extent:
            raise IndexError(f"index {part} is out of bounds for axis {axis} with size {extent}")
        return part
    if _is_index_array(part):
        return _index_array(part, axis, extent)
    raise MXNetError(f"illegal index type {type(part)}")


def _index_array(part: Any, axis: int, extent: int) -> np.ndarray:
    array = array_of(part)
    try:
        values = array.numpy() if array is not None else np.asarray(part)
    except ValueError as error:
        raise ArgumentTypeError(f"an index must be like an array of numbers: {error}") from None
    if values.dtype.kind not in "biuf":
        raise ArgumentTypeError(f"an index must be like an array of numbers, got {part}")
    if not values.ndim or not values.size:
        raise MXNetError(f"an index array of shape {values.shape} for axis {axis}: it must have axes and elements")
    with np.errstate(invalid="ignore"):  # NaN becomes an integer that is out of range.
        values = values.astype(np.int64)
    low, high = int(values.min()), int(values.max())
    if low < -extent or high >= extent:
        raise IndexError(f"index {low if low < -extent else high} is out of bounds for axis {axis} with size {extent}")
    return values


def _length(part: slice, extent: int) -> int:
    return len(range(*part.indices(extent)))


def _basic(parts: list[Any], shape: tuple[int, ...]) -> Key:
    selected: list[int] = []
    inner: list[int] = []
    new_axes = []
    axis = 0
    for part in parts:
        if part is None:
            new_axes.append(len(inner))
            inner.append(1)
            continue
        if isinstance(part, slice):
            selected.append(_length(part, shape[axis]))
            inner.append(selected[-1])
        axis += 1
    whole = tuple(inner)
    return Key(tuple(parts), False, tuple(selected), whole, tuple(new_axes), whole if whole or not shape else (1,))


def _advanced(parts: list[Any], shape: tuple[int, ...]) -> Key:
    arrays = [p for p in parts if isinstance(p, np.ndarray)]
    try:
        block = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        raise ArgumentError(f"index arrays of the shapes {', '.join(str(a.shape) for a in arrays)} cannot be broadcast "
                            "to one shape") from None
    places = [i for i, p in enumerate(parts) if p is not None and not isinstance(p, slice)]
    adjacent = places[-1] - places[0] == len(places) - 1
    dims: list[Any] = []  # extents of slices, and None for new axes: these axes stay where they are
    axis, before = 0, 0
    late: list[int] = []
    kept: list[Any] = []
    for i, part in enumerate(parts):
        if i == places[0] and adjacent:
            before = len(dims)
        if part is None and adjacent and i > places[-1]:
            late.append(len(dims) + len(late))
            continue
        kept.append(part)
        if part is None:
            dims.append(None)
            continue
        if isinstance(part, slice):
            dims.append(_length(part, shape[axis]))
        axis += 1
    whole = [*dims[:before], *block, *dims[before:]]
    new_axes = [i for i, n in enumerate(whole) if n is None]
    inner = tuple(1 if n is None else n for n in whole)
    result = list(inner)
    for place in late:
        result.insert(place, 1)
    found = Key(tuple(kept), True, tuple(n for n in whole if n is not None), inner, (*new_axes, *late), tuple(result))
    if 0 in found.shape:
        raise MXNetError(f"the key selects no elements: the slices beside its index arrays leave the shape {inner}")
    return found


def check_empty(key: Key) -> None:
    """Refuse a basic key that selects no elements, unless only its first axis selects none.

    Raises MXNetError: shapes with 0 elsewhere mean that an extent is not known.
    """
    if math.prod(key.shape):
        return
    if not isinstance(key.parts[0], slice) or key.result[0] != 0 or 0 in key.result[1:]:
        raise MXNetError(f"the key selects no elements: its result would have the shape {key.result}; only the first "
                         "axis may be sliced to nothing")


def check_forward(key: Key, shape: tuple[int, ...]) -> None:
    """Raise MXNetError for a slice that begins behind its end."""
    for axis, part in enumerate(key.without_new_axes):
        if isinstance(part, slice):
            start, stop, step = part.indices(shape[axis])
            if (stop - start) * step < 0:
                raise MXNetError(f"invalid slice {part} of axis {axis} with size {shape[axis]}: it begins at {start}, "
                                 f"behind its end {stop}")
