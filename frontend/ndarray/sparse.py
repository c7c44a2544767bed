"""MXNet's `mx.nd.sparse`: arrays that are kept in parts, how they are made, and operators on them (`mx.nd.sparse.dot`).

A csr matrix keeps the elements that are not 0, row by row; a row_sparse array keeps the rows that are not 0. The arrays
that `data`, `indices` and `indptr` give are copies.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from mxc.base import NotSupportedForSparseNDArray
from mxc.compiler.error import ArgumentError, ArgumentIndexError, ArgumentTypeError, MXNetError
from mxc.compiler.ops.storage import CSR, DEFAULT, INDEX, ROW_SPARSE, Csr, Parts, Rows, csr_of, refuse_bfloat16
from mxc.ndarray import arithmetic, creation, functions
from mxc.ndarray.ndarray import KINDS, NDArray, wrapped
from mxc.runtime import tape
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import Context, current_context
from mxc.runtime.sparse_array import SparseArray

__all__ = ["BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "_ndarray_cls", "add", "array", "csr_matrix",
           "divide", "empty", "multiply", "row_sparse_array", "subtract", "zeros"]
_, __dir__ = functions.namespace("sparse")


def __getattr__(name: str) -> Any:
    return functions.lookup(name, "sparse")


class BaseSparseNDArray(NDArray):
    """What arrays have in common that are kept in parts."""

    __slots__ = ()
    _array: SparseArray

    @property
    def dtype(self) -> type:
        return np.dtype(self._array.dtype).type

    @property
    def size(self) -> NoReturn:
        """Raises NotImplementedError, as in MXNet: it is not said whether elements that are not stored count."""
        raise NotImplementedError("the size of an array that is kept in parts: take math.prod(x.shape) for all "
                                  "elements, x.data.size for those that are stored")

    def __repr__(self) -> str:
        return f"\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"

    def __bool__(self) -> bool:
        if math.prod(self.shape) > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return bool(self.asnumpy().any())

    def __reduce__(self) -> tuple:
        parts = self._array.parts()
        return _restored, (type(parts), (parts.values, *parts.indices[::-1]), parts.shape, self.context)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"a {self.stype} array cannot be taken as a dense one without a copy")
        return self.asnumpy().astype(self.dtype if dtype is None else dtype, copy=False)

    @property
    def __array_interface__(self) -> NoReturn:
        raise AttributeError(f"a {self.stype} array has no dense memory")  # NumPy then asks __array__

    # -- parts

    @property
    def data(self) -> NDArray:
        """A copy of the stored values."""
        return self._part(self._array.parts().values)

    @property
    def indices(self) -> NDArray:
        """A copy of the numbers of the stored rows (row_sparse), or of the columns of the stored elements (csr)."""
        return self._part(self._array.parts().indices[-1])

    def _part(self, values: np.ndarray) -> NDArray:
        return NDArray(Array.of(values, context=self.context))

    def check_format(self, full_check: bool = True) -> None:
        """Raises MXNetError where the parts do not fit each other or are not in order. full_check=False: only what
        takes no look at every number."""
        parts = self._array.parts()
        if full_check:
            wrong = parts.fault() or parts.disorder()
        elif isinstance(parts, Csr):
            wrong = Csr(parts.values, np.zeros_like(parts.columns), parts.starts, parts.shape).fault()
        else:
            wrong = Rows(parts.values, np.zeros_like(parts.rows), parts.shape).fault()
        if wrong:
            raise MXNetError(f"a {self.stype} array of shape {self.shape}: {wrong}")

    # -- copies

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """A copy of another dtype, kept in the same way; with copy=False the array itself where it has that dtype."""
        name = dtype_name("float32" if dtype is None else dtype)
        if not copy and name == self._array.dtype:
            return self
        return wrapped(tape.record_view("Cast", {"dtype": name}, self._array, self._array.copied(name)))

    def copyto(self, other: Any) -> Any:
        """Copy into a dense array or one that is kept in the same way, of the same shape, or into a new array on a
        device; the target. Raises TypeError for another kind of target."""
        if isinstance(other, NDArray) and other.stype not in (DEFAULT, self.stype):
            raise ArgumentTypeError(f"copyto does not support destination NDArray stype {other.stype}: the source is "
                                    f"{self.stype}; tostype('default') makes it dense")
        if not isinstance(other, (NDArray, Context)):
            raise ArgumentTypeError(f"copyto does not support type {type(other)}")
        return super().copyto(other)

    def tostype(self, stype: str) -> NDArray:
        """A copy in another storage type, "default" for dense. Raises ValueError between csr and row_sparse, MXNetError
        for another name."""
        if stype != self.stype and stype in (CSR, ROW_SPARSE):
            raise ArgumentError(f"cast_storage from {self.stype} to {stype} is not supported: make the array dense "
                                "first, with tostype('default')")
        return self._apply("cast_storage", stype=stype)

    # -- what there is not

    def reshape(self, *shape: Any, **kwargs: Any) -> NoReturn:
        """Raises NotSupportedForSparseNDArray."""
        raise NotSupportedForSparseNDArray("reshape", None, *shape)

    def _at(self, idx: Any) -> NoReturn:
        raise NotSupportedForSparseNDArray("_at", "[idx]", idx)

    def _slice(self, start: Any, stop: Any) -> NoReturn:
        raise NotSupportedForSparseNDArray("_slice", None, start, stop)

    # -- elements and arithmetic

    def __setitem__(self, key: Any, value: Any) -> None:
        """Take all elements of an array (`x[:] = value`), kept in this array's way; a row_sparse array also takes a
        number, of which it stores every row.

        Raises TypeError for another key or value, ValueError for a part of the array and for what csr does not take.
        """
        self._check_writable()
        if not isinstance(key, slice):
            raise ArgumentTypeError(f"{type(self).__name__} only supports [:] for assignment, got the key {key!r}")
        if key != slice(None):
            raise ArgumentError(f"assignment to a part of a {type(self).__name__} is not supported, got the key "
                                f"{key!r}; there is x[:] = values")
        if isinstance(value, np.ndarray):
            value = creation.array(value, self.context, self.dtype)
        if isinstance(value, NDArray):
            if value._array is not self._array:
                value.copyto(self)
        elif isinstance(value, (int, float, np.number, np.bool_)):
            self._fill(value)
        else:
            raise ArgumentTypeError(f"a {type(self).__name__} takes arrays, got {type(value)}")

    def _fill(self, value: Any) -> None:
        raise ArgumentError(f"a {type(self).__name__} takes no numbers: most of its elements are to be 0")

    def __add__(self, other: Any) -> Any:
        return add(self, other)

    def __sub__(self, other: Any) -> Any:
        return subtract(self, other)

    def __mul__(self, other: Any) -> Any:
        return multiply(self, other)

    def __truediv__(self, other: Any) -> Any:
        return divide(self, other)

    __div__ = __truediv__


class CSRNDArray(BaseSparseNDArray):
    """A matrix that keeps the elements that are not 0, row by row; see `csr_matrix`."""

    __slots__ = ()

    @property
    def indptr(self) -> NDArray:
        """A copy of the numbers of where each row begins in `data` and `indices`, and where the last one ends."""
        return self._part(self._array.parts().indices[0])

    def asscipy(self) -> Any:
        """A copy as a `scipy.sparse.csr_matrix`. Raises ImportError without SciPy."""
        parts = self._array.parts()
        assert isinstance(parts, Csr)
        return _scipy().csr_matrix((parts.values.copy(), parts.columns.copy(), parts.starts.copy()), shape=self.shape)

    def __getitem__(self, key: Any) -> NDArray:
        """A row, as a matrix of one row, or rows that follow each other; `x[:]` is the array itself.

        Raises IndexError for a row that there is not, ValueError for other keys.
        """
        rows = self.shape[0]
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -rows <= key < rows:
                raise ArgumentIndexError(f"index {key} is out of bounds for axis 0 with size {rows}")
            begin = int(key) % rows
            return self._apply("slice", begin=(begin,), end=(begin + 1,))
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise ArgumentError("CSRNDArray only supports continuous slicing on axis 0")
            begin, end, _ = key.indices(rows)
            if (begin, end) == (0, rows):
                return self
            if begin >= end:
                raise ArgumentIndexError(f"the rows {key.start}:{key.stop} of a csr array of {rows} rows are none")
            return self._apply("slice", begin=(begin,), end=(end,))
        if isinstance(key, tuple):
            raise ArgumentError("Multi-dimension indexing is not supported: x[begin:end] gives rows, mx.nd.slice a box")
        raise ArgumentError(f"a csr array takes a number or a slice of rows, got {key!r}")


class RowSparseNDArray(BaseSparseNDArray):
    """An array that keeps the rows, along its first axis, that are not 0; see `row_sparse_array`."""

    __slots__ = ()

    def retain(self, *args: Any, **kwargs: Any) -> NDArray:
        """The rows that `indices` name; the others are zero. See mx.nd.sparse.retain."""
        return self._apply("_sparse_retain", *args, **kwargs)

    def __getitem__(self, key: Any) -> NDArray:
        """The array itself, for `x[:]`. Raises ValueError for other keys."""
        if isinstance(key, slice) and key == slice(None):
            return self
        raise ArgumentError(f"RowSparseNDArray only supports [:], got the key {key!r}; retain() gives some rows")

    def _fill(self, value: Any) -> None:
        self._array.assign(np.full((1,) * self.ndim, value))


KINDS.update({CSR: CSRNDArray, ROW_SPARSE: RowSparseNDArray})


def _restored(kind: type, arrays: Sequence[np.ndarray], shape: tuple[int, ...], context: Context) -> NDArray:
    """Make an array again of what its pickle holds."""
    return wrapped(SparseArray.on(kind(*arrays, shape), context, is_checked=False))


def _ndarray_cls(handle: Array, writable: bool = True, stype: int = -1) -> NDArray:
    """The NDArray on an array of the runtime, of its storage type's class."""
    return wrapped(handle, writable)


# ---- making arrays


def csr_matrix(arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None, dtype: Any = None,
               ) -> CSRNDArray:
    """A csr array of

    - a matrix: an array, nested lists, a csr array, a matrix of SciPy;
    - a shape (M, N): nothing is stored;
    - (data, indices, indptr): the columns of row i are indices[indptr[i]:indptr[i + 1]], its values those of data;
    - (data, (row, col)): elements with their rows and columns; those of one place are added up.

    shape: by default as large as the numbers need. dtype: by default that of arrays, float32 of lists. Columns that
    are out of range or not in order are an error of `check_format`; the former also of operators.
    Raises ValueError for something else, and for a shape that does not fit.
    """
    where = ctx or current_context()
    if isinstance(arg1, tuple):
        if len(arg1) == 2 and all(isinstance(extent, (int, np.integer)) for extent in arg1):
            return creation.kept(CSR, _same_shape(arg1, shape), where, dtype)  # type: ignore[return-value]
        if len(arg1) == 2:
            return _made(_of_places(*arg1, shape, dtype), where)  # type: ignore[return-value]
        if len(arg1) != 3:
            raise ArgumentError(f"csr_matrix takes a tuple of 2 or 3, got one of {len(arg1)}")
        data, columns, starts = _values(arg1[0], dtype), _numbers(arg1[1]), _numbers(arg1[2])
        if shape is None:
            shape = len(starts) - 1, int(columns.max(initial=-1)) + 1
        extents = _matrix_shape(shape)
        if data.shape != columns.shape:
            raise ArgumentError(f"csr_matrix: {len(columns)} columns do not fit data of shape {data.shape}")
        return _made(Csr(data, columns, starts, extents), where, checked=False)  # type: ignore[return-value]
    if isinstance(arg1, RowSparseNDArray):
        raise ArgumentError("csr_matrix takes no RowSparseNDArray: make it dense first, with tostype('default')")
    if hasattr(arg1, "tocsr"):
        matrix = arg1.tocsr()
        _same_shape(matrix.shape, shape)
        parts = Csr(_values(matrix.data, dtype), _numbers(matrix.indices), _numbers(matrix.indptr), tuple(matrix.shape))
        return _made(parts, where, checked=False)  # type: ignore[return-value]
    return _of_dense(CSR, arg1, shape, where, dtype)  # type: ignore[return-value]


def row_sparse_array(arg1: Any, shape: Sequence[int] | None = None, ctx: Context | None = None, dtype: Any = None,
                     ) -> RowSparseNDArray:
    """A row_sparse array of

    - an array, nested lists, or a row_sparse array;
    - a shape, of two axes or more: nothing is stored;
    - (data, indices): stored rows, and their numbers, which should ascend.

    shape: by default as many rows as the numbers need. dtype: by default that of arrays, float32 of lists. Numbers that
    are out of range or not in order are an error of `check_format`; the former also of operators.
    Raises ValueError for something else, and for a shape that does not fit.
    """
    where = ctx or current_context()
    if isinstance(arg1, tuple):
        if len(arg1) > 1 and all(isinstance(extent, (int, np.integer)) for extent in arg1):
            return creation.kept(ROW_SPARSE, _same_shape(arg1, shape), where, dtype)  # type: ignore[return-value]
        if len(arg1) != 2:
            raise ArgumentError(f"row_sparse_array takes a shape or (data, indices), got a tuple of {len(arg1)}")
        data, rows = _values(arg1[0], dtype), _numbers(arg1[1])
        if not data.size and not len(rows) and shape is not None:
            data = data.reshape(0, *shape[1:])
        extents = (int(rows.max(initial=-1)) + 1, *data.shape[1:]) if shape is None else tuple(map(int, shape))
        parts = Rows(data, rows, extents)
        if parts.values.shape != (len(rows), *extents[1:]):
            raise ArgumentError(f"row_sparse_array: {parts.fault()}")
        return _made(parts, where, checked=False)  # type: ignore[return-value]
    if isinstance(arg1, CSRNDArray) or hasattr(arg1, "tocsr"):
        raise ArgumentError("row_sparse_array takes no csr matrix: make it dense first")
    return _of_dense(ROW_SPARSE, arg1, shape, where, dtype)  # type: ignore[return-value]


def zeros(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """A new array of zeros, of a storage type. kwargs: as of `mx.nd.zeros`. Raises ValueError for another one."""
    return creation.zeros(shape, ctx, dtype, stype, **kwargs)


def empty(stype: str, shape: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """The same as `zeros`, of "csr" or "row_sparse"."""
    if stype not in (CSR, ROW_SPARSE):
        raise ArgumentError(f"unknown storage type {stype!r}; expected csr or row_sparse")
    return creation.kept(stype, shape, ctx, dtype)


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A copy of an array that is kept in parts, or of a matrix of SciPy. Raises ValueError for dense ones."""
    if isinstance(source_array, BaseSparseNDArray):
        return creation.array(source_array, ctx, dtype)
    if hasattr(source_array, "tocsr"):
        return csr_matrix(source_array, None, ctx, dtype)
    raise ArgumentError(f"mx.nd.sparse.array takes csr and row_sparse arrays, got {type(source_array)}; mx.nd.array "
                        "makes dense ones")


def _made(parts: Parts, context: Context, checked: bool = True) -> NDArray:
    return wrapped(SparseArray.on(parts, context, checked))


def _of_dense(stype: str, source: Any, shape: Sequence[int] | None, context: Context, dtype: Any) -> NDArray:
    if not isinstance(source, NDArray):
        kind = (source.dtype if isinstance(source, np.ndarray) else None) if dtype is None else dtype
        source = creation.array(source, context, kind)
    if stype == CSR and source.ndim != 2:
        raise ArgumentError(f"a csr array is a matrix, got an array of shape {source.shape}")
    _same_shape(source.shape, shape)
    kept = source if source.stype == stype else wrapped(_cast(source._array, stype))
    copied = kept.astype(source.dtype if dtype is None else dtype, copy=kept is source)
    return copied.as_in_context(context)


def _cast(array: Array, stype: str) -> SparseArray:
    """A copy in another storage type, of an array with or without elements."""
    made = SparseArray.of_nothing(stype, array.shape, array.dtype, array.context)
    made.copy_from(array)
    return made


def _of_places(data: Any, places: Any, shape: Sequence[int] | None, dtype: Any) -> Csr:
    """The elements at (row, col); those of one place are added up."""
    if not isinstance(places, (tuple, list)) or len(places) != 2:
        raise ArgumentError(f"csr_matrix takes (data, (row, col)), got {type(places)} as the second")
    values, rows, columns = _values(data, dtype), _numbers(places[0]), _numbers(places[1])
    if not len(values) == len(rows) == len(columns):
        raise ArgumentError(f"csr_matrix: {len(values)} values for {len(rows)} rows and {len(columns)} columns")
    if shape is None:
        shape = int(rows.max(initial=-1)) + 1, int(columns.max(initial=-1)) + 1
    extents = _matrix_shape(shape)
    for what, numbers, limit in (("rows", rows, extents[0]), ("columns", columns, extents[1])):
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < limit):
            raise ArgumentError(f"csr_matrix: {what} run from {numbers.min()} to {numbers.max()}; expected 0 to "
                                f"{limit - 1}")
    keys, place = np.unique(rows * extents[1] + columns, return_inverse=True)
    sums = np.zeros(len(keys), values.dtype)
    np.add.at(sums, place, values)
    return csr_of(sums, *np.divmod(keys, max(extents[1], 1)), extents)


def _values(source: Any, dtype: Any) -> np.ndarray:
    """Stored values of a dtype; by default that of an array, and float32 of anything else."""
    given = source.asnumpy() if isinstance(source, NDArray) else source
    kind = given.dtype if dtype is None and isinstance(given, np.ndarray) else "float32" if dtype is None else dtype
    name = dtype_name(kind)
    refuse_bfloat16(name)
    return np.array(given, name, order="C")


def _numbers(source: Any) -> np.ndarray:
    """Numbers of rows or columns. Raises ValueError for what is no list of whole numbers."""
    given = np.asarray(source.asnumpy() if isinstance(source, NDArray) else source)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iuf"):
        raise ArgumentError(f"indices are a list of whole numbers, got an array of {given.dtype} of shape "
                            f"{given.shape}")
    made = given.astype(INDEX)
    if given.dtype.kind == "f" and not np.array_equal(made, given):
        raise ArgumentError("indices are whole numbers, got some that are not")
    return made


def _matrix_shape(shape: Sequence[int]) -> tuple[int, ...]:
    made = tuple(map(int, shape))
    if len(made) != 2:
        raise ArgumentError(f"a csr array is a matrix, got the shape {made}")
    return made


def _same_shape(own: Sequence[int], given: Sequence[int] | None) -> tuple[int, ...]:
    """The shape. Raises ValueError where another one was given."""
    if given is not None and tuple(given) != tuple(own):
        raise ArgumentError(f"Shape mismatch detected. {tuple(own)} v.s. {tuple(given)}")
    return tuple(map(int, own))


def _scipy() -> Any:
    try:
        import scipy.sparse
    except ImportError as error:
        raise ImportError(f"SciPy could not be imported ({error})\npip install 'mxc-compiler[scipy]'") from None
    return scipy.sparse


# ---- arithmetic


def _elementwise(lhs: Any, rhs: Any, alike: str, function: Any) -> Any:
    """An operator of two arrays of one shape, for which there are more sparse forms than for arrays that are
    broadcast."""
    if isinstance(lhs, NDArray) and isinstance(rhs, NDArray) and lhs.shape == rhs.shape:
        return lhs._apply(alike, rhs)
    return function(lhs, rhs)


def add(lhs: Any, rhs: Any) -> Any:
    """lhs + rhs; of two arrays that are kept in the same way the sum is, too."""
    return _elementwise(lhs, rhs, "elemwise_add", arithmetic.add)


def subtract(lhs: Any, rhs: Any) -> Any:
    """lhs - rhs; of two arrays that are kept in the same way the difference is, too."""
    return _elementwise(lhs, rhs, "elemwise_sub", arithmetic.subtract)


def multiply(lhs: Any, rhs: Any) -> Any:
    """lhs * rhs, kept as the array that is kept in parts."""
    return _elementwise(lhs, rhs, "elemwise_mul", arithmetic.multiply)


def divide(lhs: Any, rhs: Any) -> Any:
    """lhs / rhs; dense, but for a number or a broadcast array rhs."""
    return _elementwise(lhs, rhs, "elemwise_div", arithmetic.divide)
