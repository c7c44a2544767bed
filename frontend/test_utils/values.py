"""Arrays, shapes and matrices to test with; NumPy's global generator makes what is random."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.context import Context, current_context
from mxc.ndarray import NDArray, arange, array
from mxc.runtime.context import set_default

Shape = tuple[int, ...]


def default_context() -> Context:
    """The device that tests run on: the current one."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Make `ctx` what `current_context()` gives outside of `with` scopes, in this thread."""
    set_default(ctx)


def default_dtype() -> type:
    """The dtype of test data: float32."""
    return np.float32


def random_arrays(*shapes: Shape) -> Any:
    """Arrays of normally distributed float32 numbers: a list, or the only one."""
    made: list[np.ndarray] = [np.array(np.random.standard_normal(shape), dtype=default_dtype()) for shape in shapes]
    return made[0] if len(made) == 1 else made


def random_uniform_arrays(*shapes: Shape, **kwargs: Any) -> list[np.ndarray]:
    """Arrays of uniformly distributed numbers; low (0.0), high (1.0) and dtype (float32) by name."""
    low, high, dtype = kwargs.pop("low", 0.0), kwargs.pop("high", 1.0), kwargs.pop("dtype", default_dtype())
    if kwargs:
        raise TypeError(f"random_uniform_arrays takes low, high and dtype, not {', '.join(kwargs)}")
    return [np.random.uniform(low, high, size=shape).astype(dtype) for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> list[Any]:
    """`k` different elements, in a random order."""
    order = np.random.permutation(len(population))
    return [population[i] for i in order[:k]]


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Shape:
    """A random shape of extents up to those given, from 1 or 0 on."""
    return _random_shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> Shape:
    """A random shape of extents up to those given, from 1 or 0 on."""
    return _random_shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Shape:
    """A random shape of `num_dim` extents up to `dim`, from 1 or 0 on."""
    return _random_shape((dim,) * num_dim, allow_zero_size)


def _random_shape(limits: Shape, allow_zero_size: bool) -> Shape:
    return tuple(int(np.random.randint(0 if allow_zero_size else 1, limit + 1)) for limit in limits)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[int, int]:
    """A random place: x_low <= x < x_high and y_low <= y < y_high."""
    return int(np.random.randint(x_low, x_high)), int(np.random.randint(y_low, y_high))


def create_vector(size: int, dtype: Any = np.int64) -> NDArray:
    """0, 1, ... as an array of `size` elements."""
    return arange(0, size, dtype=dtype)


def create_2d_tensor(rows: int, columns: int, dtype: Any = np.int64) -> NDArray:
    """A matrix whose elements are the numbers of their rows."""
    return array(np.repeat(np.arange(rows), columns).reshape(rows, columns), dtype=dtype)


def get_identity_mat(size: int) -> NDArray:
    """The identity matrix, float32."""
    return array(np.eye(size))


def get_identity_mat_batch(size: int) -> NDArray:
    """Two identity matrices, float32, of shape (2, size, size)."""
    return array(np.stack([np.eye(size)] * 2))


def new_orthonormal_matrix_2d(n: int) -> np.ndarray:
    """A random orthonormal matrix: its transpose is its inverse."""
    return np.linalg.qr(np.random.standard_normal((n, n)))[0]


def new_sym_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """A random symmetric matrix."""
    q = new_orthonormal_matrix_2d(n)
    return q.T @ np.diag(_eigenvalues(n)) @ q


def new_sym_matrix_with_real_eigvals_nd(shape: Shape) -> np.ndarray:
    """Random symmetric matrices: the last two extents, which are equal, are theirs."""
    return _matrices(shape, new_sym_matrix_with_real_eigvals_2d)


def new_matrix_with_real_eigvals_2d(n: int) -> np.ndarray:
    """A random matrix that has n real eigenvalues."""
    # triangular in some orthonormal basis: the diagonal holds the eigenvalues
    q = new_orthonormal_matrix_2d(n)
    return q.T @ (np.triu(np.random.standard_normal((n, n)), 1) + np.diag(_eigenvalues(n))) @ q


def new_matrix_with_real_eigvals_nd(shape: Shape) -> np.ndarray:
    """Random matrices with real eigenvalues: the last two extents, which are equal, are theirs."""
    return _matrices(shape, new_matrix_with_real_eigvals_2d)


def _eigenvalues(n: int) -> np.ndarray:
    return np.random.uniform(-10, 10, n)


def _matrices(shape: Shape, make: Callable[[int], np.ndarray]) -> np.ndarray:
    if len(shape) < 2 or shape[-2] != shape[-1]:
        raise AssertionError(f"the last two extents of {shape} must be equal: those of square matrices")
    made = [make(shape[-1]) for _ in range(int(np.prod(shape[:-2])))]
    return np.array(made).reshape(shape)


def np_reduce(dat: np.ndarray, axis: int | Sequence[int] | None, keepdims: bool,
              numpy_reduce_func: Callable[..., np.ndarray]) -> np.ndarray:
    """A NumPy reduction that takes one axis, over several axes (None: all)."""
    if axis is None:
        axes = list(range(dat.ndim))
    else:
        axes = [a % dat.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    result = dat
    for a in sorted(axes, reverse=True):
        result = numpy_reduce_func(result, axis=a)
    kept = [1 if a in axes else n for a, n in enumerate(dat.shape)]
    return np.reshape(result, kept) if keepdims else result


def collapse_sum_like(a: np.ndarray, shape: Shape) -> np.ndarray:
    """The sum over the axes along which an array of `shape` was broadcast to the shape of `a`."""
    extra = a.ndim - len(shape)
    if extra < 0 or any(n not in (1, m) for n, m in zip(shape, a.shape[extra:], strict=True)):
        raise AssertionError(f"an array of the shape {shape} does not broadcast to {a.shape}")
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1))
    return np.sum(a, axis=axes).reshape(shape) if axes else a


def assign_each(the_input: np.ndarray, function: Callable[[Any], Any] | None) -> np.ndarray:
    """An array of function(element); a copy when there is no function."""
    made = np.array(the_input)
    if function is not None:
        for place in np.ndindex(made.shape):
            made[place] = function(the_input[place])
    return made


def assign_each2(input1: np.ndarray, input2: np.ndarray, function: Callable[[Any, Any], Any] | None) -> np.ndarray:
    """An array of function(element of input1, element of input2); a copy of input1 when there is no function."""
    made = np.array(input1)
    if function is not None:
        for place in np.ndindex(made.shape):
            made[place] = function(input1[place], input2[place])
    return made


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Whether two arrays have one memory, so that writing one changes the other."""
    return array1.shape == array2.shape and array1._array.address == array2._array.address
