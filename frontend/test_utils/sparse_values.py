"""Arrays of any storage type to test with; NumPy's global generator makes what is random."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, AssertedError
from mxc.context import Context
from mxc.ndarray import NDArray, array
from mxc.ndarray.sparse import CSRNDArray, csr_matrix, row_sparse_array, zeros
from mxc.test_utils.values import assign_each, default_dtype, random_arrays

Shape = tuple[int, ...]
Modifier = Callable[[float], float]


def rand_ndarray(shape: Shape, stype: str = "default", density: float | None = None, dtype: Any = None,
                 modifier_func: Modifier | None = None, shuffle_csr_indices: bool = False,
                 distribution: str | None = None, ctx: Context | None = None) -> NDArray:
    """An NDArray of a storage type: a dense one of normally distributed numbers (default dtype float32), or what
    `rand_sparse_ndarray` makes."""
    if stype == "default":
        return array(random_arrays(shape), ctx, default_dtype() if dtype is None else dtype)
    return rand_sparse_ndarray(shape, stype, density, dtype, distribution, modifier_func=modifier_func,
                               shuffle_csr_indices=shuffle_csr_indices, ctx=ctx)[0]


# MXNet's signature
def rand_sparse_ndarray(shape: Shape, stype: str, density: float | None = None, dtype: Any = None,
                        distribution: str | None = None, data_init: float | None = None,
                        rsp_indices: Sequence[int] | None = None, modifier_func: Modifier | None = None,
                        shuffle_csr_indices: bool = False, ctx: Context | None = None) -> tuple[NDArray, tuple]:
    """A random array and what it is made of: (values, row numbers) of a row_sparse one, (indptr, indices, values) of a
    csr one, as NumPy arrays.

    density: the part of the rows, or elements, that is stored (default: random). distribution: "uniform", or for csr
    "powerlaw". data_init: what all stored values are. rsp_indices: the rows that are stored. modifier_func: made of
    each value. shuffle_csr_indices: the columns of a row are in no order.
    Raises AssertionError for a distribution that the storage type does not have, and for another storage type.
    """
    density = np.random.rand() if density is None else density
    kind = default_dtype() if dtype is None else dtype
    distribution = "uniform" if distribution is None else distribution
    if stype == "row_sparse":
        if distribution != "uniform":
            raise AssertedError(f"a row_sparse array has the distribution uniform, got {distribution!r}")
        rows = np.flatnonzero(np.random.rand(shape[0]) < density) if rsp_indices is None else np.array(rsp_indices)
        values = _values((len(rows), *shape[1:]), kind, data_init, modifier_func)
        return row_sparse_array((values, rows), shape, ctx, kind), (values, rows)
    if stype != "csr":
        raise AssertedError(f"unknown storage type {stype!r}; expected row_sparse or csr")
    if len(shape) != 2:
        raise AssertedError(f"a csr array is a matrix, got the shape {shape}")
    makers = {"uniform": _get_uniform_dataset_csr, "powerlaw": _get_powerlaw_dataset_csr}
    if distribution not in makers:
        raise AssertedError(f"a csr array has the distribution uniform or powerlaw, got {distribution!r}")
    made = makers[distribution](*shape, density, data_init, shuffle_csr_indices, kind, modifier_func)
    parts = tuple(array.asnumpy() for array in (made.indptr, made.indices, made.data))
    return (made if ctx is None else made.as_in_context(ctx)), parts


def _values(shape: Shape, dtype: Any, data_init: float | None, modifier_func: Modifier | None) -> np.ndarray:
    values = np.random.rand(*shape).astype(dtype)
    if data_init is not None:
        values.fill(data_init)
    return values if modifier_func is None else assign_each(values, modifier_func)


def _validate_csr_generation_inputs(num_rows: int, num_cols: int, density: float, distribution: str = "uniform") -> int:
    """How many elements are stored. Raises ValueError for a density that is not from 0 to 1, and for one that a
    distribution cannot have."""
    if not 0 <= density <= 1:
        raise ArgumentError(f"the density is from 0 to 1, got {density}")
    if num_rows <= 0 or num_cols <= 0:
        raise ArgumentError(f"expected rows and columns, got {num_rows} and {num_cols}")
    count = int(num_rows * num_cols * density)
    if distribution == "powerlaw" and count < 2 * num_rows:
        raise ArgumentError(f"a powerlaw distribution over {num_rows} rows needs {2 * num_rows} elements or more, the "
                            f"density {density} gives {count}")
    return count


def _get_uniform_dataset_csr(num_rows: int, num_cols: int, density: float = 0.1, data_init: float | None = None,
                             shuffle_csr_indices: bool = False, dtype: Any = None,
                             modifier_func: Modifier | None = None) -> CSRNDArray:
    """A csr array whose elements are anywhere."""
    count = _validate_csr_generation_inputs(num_rows, num_cols, density)
    rows, columns = np.divmod(np.random.choice(num_rows * num_cols, count, replace=False), num_cols)
    return _csr(rows, columns, (num_rows, num_cols), data_init, shuffle_csr_indices, dtype, modifier_func)


def _get_powerlaw_dataset_csr(num_rows: int, num_cols: int, density: float = 0.1, data_init: float | None = None,
                              shuffle_csr_indices: bool = False, dtype: Any = None,
                              modifier_func: Modifier | None = None) -> CSRNDArray:
    """A csr array whose every row has twice as many elements as the one before, until all are used."""
    left = _validate_csr_generation_inputs(num_rows, num_cols, density, "powerlaw") - num_rows
    counts, step = np.ones(num_rows, int), 1
    for row in range(num_rows):
        more = min(step, left, num_cols - 1)
        counts[row] += more
        left, step = left - more, 2 * step
    rows = np.repeat(np.arange(num_rows), counts)
    columns = np.concatenate([np.arange(count) for count in counts])
    return _csr(rows, columns, (num_rows, num_cols), data_init, shuffle_csr_indices, dtype, modifier_func)


def _csr(rows: np.ndarray, columns: np.ndarray, shape: Shape, data_init: float | None, is_shuffled: bool, dtype: Any,
         modifier_func: Modifier | None) -> CSRNDArray:
    kind = default_dtype() if dtype is None else dtype
    values = _values((len(rows),), kind, data_init, modifier_func)
    made = csr_matrix((values, (rows, columns)), shape, dtype=kind)
    return shuffle_csr_column_indices(made) if is_shuffled else made


def shuffle_csr_column_indices(csr: Any) -> Any:
    """A csr array, or a csr matrix of SciPy, with the columns of each row in a random order: another array, or the
    matrix itself."""
    is_array = isinstance(csr, NDArray)
    starts = csr.indptr.asnumpy() if is_array else csr.indptr
    columns = csr.indices.asnumpy() if is_array else csr.indices
    for begin, end in itertools.pairwise(starts):
        np.random.shuffle(columns[begin:end])
    return csr_matrix((csr.data, columns, starts), csr.shape, dtype=csr.dtype) if is_array else csr


def create_sparse_array(shape: Shape, stype: str, data_init: float | None = None,
                        rsp_indices: Sequence[int] | None = None, dtype: Any = None,
                        modifier_func: Modifier | None = None, density: float = 0.5,
                        shuffle_csr_indices: bool = False) -> NDArray:
    """A random array of a storage type; see `rand_sparse_ndarray`."""
    if stype == "row_sparse" and rsp_indices is None and not density:
        return zeros(stype, shape, dtype=dtype)
    return rand_sparse_ndarray(shape, stype, density, dtype, None, data_init, rsp_indices, modifier_func,
                               shuffle_csr_indices)[0]


def create_sparse_array_zd(shape: Shape, stype: str, density: float, data_init: float | None = None,
                           rsp_indices: Sequence[int] | None = None, dtype: Any = None,
                           modifier_func: Modifier | None = None, shuffle_csr_indices: bool = False) -> NDArray:
    """As `create_sparse_array`; of a row_sparse array only rsp_indices tell what is stored."""
    if stype == "row_sparse":
        density = 0.0
        if rsp_indices is not None and len(rsp_indices) > shape[0]:
            raise AssertedError(f"{len(rsp_indices)} rows are to be stored of an array of {shape[0]}")
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func, density,
                               shuffle_csr_indices)
