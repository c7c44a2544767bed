"""Storage types: how an array's elements are kept.

default      dense: all elements
row_sparse   the rows (along the first axis) that may have elements other than 0, and their numbers
csr          of a matrix the elements that may be other than 0, row by row, their columns, and where each row begins

The parts of such an array are dense (`Rows`, `Csr`). Everything that computes with parts takes for granted that their
numbers are in range and ascend, each there once; `usable` sees to that where parts come from outside.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mxc.compiler.error import MXNetError, OutOfMemoryError

DEFAULT, ROW_SPARSE, CSR = "default", "row_sparse", "csr"
STORAGES = (DEFAULT, ROW_SPARSE, CSR)  # in the order of their numbers in files and attributes
Shape = tuple[int, ...]
INDEX = np.dtype(np.int64)  # of all parts that are numbers of rows or columns


@dataclass(frozen=True)
class Rows:
    """A row_sparse array. values: (count, *shape[1:]). rows: (count,), the numbers of these rows."""

    values: np.ndarray
    rows: np.ndarray
    shape: Shape

    @property
    def indices(self) -> tuple[np.ndarray, ...]:
        """The parts besides the values, in the order of files."""
        return (self.rows,)

    def write(self, out: np.ndarray) -> None:
        """Write the stored elements to a dense array, which has zeros in all other places."""
        out[self.rows] = self.values

    def fault(self) -> str:
        """What is wrong with the parts so that nothing can be computed with them, or ""."""
        if self.rows.shape != self.values.shape[:1] or self.values.shape[1:] != self.shape[1:]:
            return (f"{self.rows.size} row numbers and stored rows of shape {self.values.shape} do not fit the shape "
                    f"{self.shape}")
        return _outside("row numbers", self.rows, self.shape[0])

    def disorder(self) -> str:
        """What is wrong with the order of the numbers, or ""."""
        return "" if np.all(self.rows[1:] > self.rows[:-1]) else "row numbers must ascend, each there once"

    def ordered(self) -> Rows:
        """The same with numbers that ascend; of equal ones, the last one counts."""
        rows, last = np.unique(self.rows[::-1], return_index=True)
        return Rows(self.values[::-1][last], rows, self.shape)


@dataclass(frozen=True)
class Csr:
    """A csr array of shape (rows, columns). values, columns: (count,), row by row. starts: (rows + 1,), where each row
    begins in them, and where the last one ends."""

    values: np.ndarray
    columns: np.ndarray
    starts: np.ndarray
    shape: Shape

    @property
    def indices(self) -> tuple[np.ndarray, ...]:
        """The parts besides the values, in the order of files."""
        return self.starts, self.columns

    def rows(self) -> np.ndarray:
        """The row of each element."""
        return np.repeat(np.arange(self.shape[0], dtype=INDEX), np.diff(self.starts))

    def write(self, out: np.ndarray) -> None:
        """Write the stored elements to a dense array, which has zeros in all other places."""
        out[self.rows(), self.columns] = self.values

    def fault(self) -> str:
        """What is wrong with the parts so that nothing can be computed with them, or ""."""
        if len(self.shape) != 2:
            return f"expected two axes, got the shape {self.shape}"
        if self.values.ndim != 1 or self.columns.shape != self.values.shape:
            return f"{self.columns.size} columns do not fit stored values of shape {self.values.shape}"
        if self.starts.shape != (self.shape[0] + 1,):
            return f"{self.starts.size} row starts do not fit {self.shape[0]} rows: expected {self.shape[0] + 1}"
        if self.starts[0] != 0 or self.starts[-1] != len(self.values) or np.any(np.diff(self.starts) < 0):
            return f"row starts do not rise from 0 to {len(self.values)}, the number of stored values"
        return _outside("columns", self.columns, self.shape[1])

    def disorder(self) -> str:
        """What is wrong with the order of the columns, or ""."""
        rising = self.columns[1:] > self.columns[:-1]
        begins = self.starts[1:-1]
        rising[begins[(begins > 0) & (begins < len(self.columns))] - 1] = True  # from one row to the next
        return "" if np.all(rising) else "the columns of a row must ascend, each there once"

    def ordered(self) -> Csr:
        """The same with columns that ascend in each row; of equal ones, the last element counts."""
        rows = self.rows()
        order = np.lexsort((np.arange(len(rows)), self.columns, rows))
        rows, columns = rows[order], self.columns[order]
        last = np.ones(len(rows), bool)
        last[:-1] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        return csr_of(self.values[order][last], rows[last], columns[last], self.shape)


Parts = Rows | Csr
Given = np.ndarray | Rows | Csr  # what an input of any storage type is
KINDS: dict[str, type[Rows] | type[Csr]] = {ROW_SPARSE: Rows, CSR: Csr}


def _outside(what: str, numbers: np.ndarray, limit: int) -> str:
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < limit):
        return f"{what} run from {numbers.min()} to {numbers.max()}; expected 0 to {limit - 1}"
    return ""


def usable(parts: Parts) -> Parts:
    """Parts from outside as work takes them. Raises MXNetError where no work can be done with them."""
    stype, wrong = stype_of(parts), parts.fault()
    if wrong:
        raise MXNetError(f"a {stype} array: {wrong}")
    return parts.ordered() if parts.disorder() else parts


def stype_of(given: Given) -> str:
    """The storage type of an array or of parts."""
    return ROW_SPARSE if isinstance(given, Rows) else CSR if isinstance(given, Csr) else DEFAULT


def with_values(parts: Parts, values: np.ndarray) -> Parts:
    """Parts with other values in the same places."""
    if isinstance(parts, Rows):
        return Rows(values, parts.rows, parts.shape)
    return Csr(values, parts.columns, parts.starts, parts.shape)


def csr_of(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: Shape) -> Csr:
    """A csr array of elements that are ordered by rows."""
    starts = np.zeros(shape[0] + 1, INDEX)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=starts[1:])
    return Csr(values, columns, starts, shape)


def csr_rows(parts: Csr, rows: slice | np.ndarray) -> Csr:
    """Rows of a csr array: those from one to another (a slice without a step), or these, in this order."""
    if isinstance(rows, slice):
        starts = parts.starts[rows.start:rows.stop + 1]
        inside = slice(starts[0], starts[-1])
        return Csr(parts.values[inside], parts.columns[inside], starts - starts[0], (len(starts) - 1, parts.shape[1]))
    counts = (parts.starts[1:] - parts.starts[:-1])[rows]
    starts = np.append(np.zeros(1, INDEX), np.cumsum(counts))
    places = np.arange(starts[-1]) + np.repeat(parts.starts[rows] - starts[:-1], counts)
    return Csr(parts.values[places], parts.columns[places], starts, (len(rows), parts.shape[1]))


def csr_joined(parts: Sequence[Csr]) -> Csr:
    """Csr arrays of as many columns, one below the other."""
    lengths = np.concatenate([[0], *(np.diff(one.starts) for one in parts)])
    return Csr(np.concatenate([one.values for one in parts]), np.concatenate([one.columns for one in parts]),
               np.cumsum(lengths), (len(lengths) - 1, parts[0].shape[1]))


def dense(given: Given) -> np.ndarray:
    """All elements. Raises OutOfMemoryError: the shapes of parts may be as large as one likes."""
    if isinstance(given, np.ndarray):
        return given
    try:
        made = np.zeros(given.shape, given.values.dtype)
    except MemoryError:
        raise OutOfMemoryError(f"a {stype_of(given)} array of shape {given.shape} is kept in parts; there is no memory "
                               "for all its elements") from None
    given.write(made)
    return made


def refuse_bfloat16(dtype: str) -> None:
    """Raise MXNetError for the dtype whose arrays are dense alone."""
    if dtype == "bfloat16":
        raise MXNetError("an array of bfloat16 is dense; it is not kept as csr or row_sparse")


def empty(stype: str, shape: Shape, dtype: str) -> Parts:
    """An array without stored elements. Raises MXNetError for a csr array that is no matrix, and for bfloat16."""
    refuse_bfloat16(dtype)
    if stype == ROW_SPARSE:
        if not shape:
            raise MXNetError("a row_sparse array has at least one axis, got the shape ()")
        return Rows(np.empty((0, *shape[1:]), dtype), np.empty(0, INDEX), shape)
    if len(shape) != 2:
        raise MXNetError(f"a csr array has two axes, got the shape {shape}")
    return Csr(np.empty(0, dtype), np.empty(0, INDEX), np.zeros(shape[0] + 1, INDEX), shape)


def stored(given: Given, stype: str) -> Given:
    """The array in another storage type, which keeps what is not 0."""
    if stype == DEFAULT or stype_of(given) == stype:
        return dense(given) if stype == DEFAULT else given
    array = dense(given)
    if stype == ROW_SPARSE:
        rows = np.flatnonzero(np.any(array != 0, axis=tuple(range(1, array.ndim))))
        return Rows(array[rows], rows, array.shape)
    rows, columns = np.nonzero(array)
    return csr_of(array[rows, columns], rows, np.ascontiguousarray(columns), array.shape)
