"""Parts of values and gradients between workers and servers: rows along the first axis, of dense and row_sparse arrays.

What is row_sparse goes as `Rows`, whose numbers count from the part's first row.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.storage import Rows, dense, stored
from mxc.kvstore.parts import Layout, Part
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import wrapped
from mxc.runtime.array import Array
from mxc.runtime.sparse_array import SparseArray

Value = np.ndarray | Rows


def value_of(array: NDArray) -> Value:
    """The elements of an array, after all pending writes. Raises MXNetError for a csr array."""
    if not isinstance(array._array, SparseArray):
        return array.asnumpy()
    found = array._array.parts()
    if not isinstance(found, Rows):
        raise MXNetError(f"kvstore: values are dense or row_sparse arrays, got a {array.stype} array")
    return array._array.given()  # type: ignore[return-value]


def held(value: Value, stype: str) -> NDArray:
    """An array of its own memory, for an optimizer that changes it."""
    value = stored(value, stype)  # type: ignore[assignment]
    if isinstance(value, Rows):
        return wrapped(SparseArray.on(copied(value)))  # type: ignore[arg-type]
    return wrapped(Array.of(value))


def shared(value: Value) -> NDArray:
    """An array on the memory of `value`, for an optimizer that reads it."""
    return wrapped(SparseArray.on(value) if isinstance(value, Rows) else Array.sharing(value))


def dtype_of(value: Value) -> np.dtype:
    return value.values.dtype if isinstance(value, Rows) else value.dtype


def nbytes_of(value: Value) -> int:
    return value.values.nbytes + value.rows.nbytes if isinstance(value, Rows) else value.nbytes


def copied(value: Value) -> Value:
    return Rows(value.values.copy(), value.rows.copy(), value.shape) if isinstance(value, Rows) else np.array(value)


def piece(value: Value, layout: Layout, part: Part) -> Value:
    """A part of a value, not copied."""
    if len(layout.parts) == 1:
        return value
    if not isinstance(value, Rows):
        return value[part.begin:part.end]
    first, last = np.searchsorted(value.rows, (part.begin, part.end))
    return Rows(value.values[first:last], value.rows[first:last] - part.begin,
                (part.end - part.begin, *value.shape[1:]))


def chosen(value: Value, rows: np.ndarray) -> np.ndarray:
    """A copy of rows of a value, with zeros for those that are not stored. rows: their numbers, which ascend."""
    if not isinstance(value, Rows):
        return value[rows]
    found = np.zeros((len(rows), *value.shape[1:]), value.values.dtype)
    _, here, there = np.intersect1d(rows, value.rows, assume_unique=True, return_indices=True)
    found[here] = value.values[there]
    return found


def joined(answers: Sequence[tuple[Part, Value]], layout: Layout, rows: np.ndarray | None) -> Value:
    """A value, copied from those of its parts. rows: the numbers of the rows that were asked for, where these are all
    that the answers have."""
    ordered = sorted(answers, key=lambda pair: pair[0].number)
    values = [value for _, value in ordered]
    if rows is not None:
        none = np.empty((0, *layout.shape[1:]), layout.dtype)
        return Rows(np.concatenate([none, *map(dense, values)]), rows.copy(), layout.shape)
    if all(isinstance(value, Rows) for value in values):
        numbers = [value.rows + part.begin for part, value in ordered if isinstance(value, Rows)]
        return Rows(np.concatenate([value.values for value in values if isinstance(value, Rows)]),
                    np.concatenate(numbers), layout.shape)
    return np.concatenate([dense(value) for value in values]).reshape(layout.shape)


def total(values: Sequence[Value]) -> Value:
    """The sum, made in the order of the values; row_sparse where all of them are. A single value itself."""
    if len(values) == 1:
        return values[0]
    sparse = [value for value in values if isinstance(value, Rows)]
    if len(sparse) < len(values):
        whole = [dense(value) for value in values]
        found = whole[0] + whole[1]
        for each in whole[2:]:
            found += each
        return found
    numbers = np.unique(np.concatenate([value.rows for value in sparse]))
    sums = np.zeros((len(numbers), *sparse[0].shape[1:]), sparse[0].values.dtype)
    for value in sparse:
        sums[np.searchsorted(numbers, value.rows)] += value.values
    return Rows(sums, numbers, sparse[0].shape)
