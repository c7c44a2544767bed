"""NDArray: the array that users hold."""
from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, MXNetError
from mxc.ndarray import indexing
from mxc.ndarray.arithmetic import Arithmetic
from mxc.runtime import invoke
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import Context


class NDArray(Arithmetic):
    """An n-dimensional array on a device.

    Made by `mx.nd.array`, `zeros`, ... or by operators. `reshape` and contiguous slices share memory with the array
    that they come from.
    """

    __slots__ = ("__weakref__", "_array", "writable")

    def __init__(self, array: Array, writable: bool = True):
        self._array, self.writable = array, writable

    # -- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> type:
        """NumPy's scalar type, as `numpy.float32`."""
        return self._array.data.dtype.type

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def ndim(self) -> int:
        return len(self._array.shape)

    @property
    def context(self) -> Context:
        return self._array.context

    ctx = context

    @property
    def stype(self) -> str:
        """The storage type: "default" is dense."""
        return "default"

    @property
    def T(self) -> NDArray:
        """A copy with the axes reversed."""
        return NDArray(Array.of(self._array.data.T, context=self.context))

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"\n{self.asnumpy()!s}\n<{type(self).__name__} {shape} @{self.context}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return bool(self.size) and bool(self.asscalar())

    def __iter__(self) -> Iterator[NDArray]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple:
        return _restore, (self.asnumpy(), self.context)

    # -- values

    def asnumpy(self) -> np.ndarray:
        """A NumPy copy, after all pending writes are done."""
        return self._array.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.asnumpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def asscalar(self) -> Any:
        """The only element, as a NumPy scalar. Raises ValueError when there is not exactly one."""
        if self.size != 1:
            raise ValueError(f"the array of shape {self.shape} is not a scalar: it has {self.size} elements, not 1")
        return self.asnumpy().reshape(-1)[0]

    def wait_to_read(self) -> None:
        """Return when pending writes to this array are done; raises what they raised."""
        self._array.wait()

    # -- copies

    def copy(self) -> NDArray:
        """A copy on the same device."""
        return self.copyto(self.context)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into an array of the same shape (cast to its dtype), or into a new array on a device; the target.

        Raises MXNetError when the shapes differ, TypeError for another kind of target.
        """
        if isinstance(other, Context):
            return NDArray(Array.of(self._array.data, context=other))
        if not isinstance(other, NDArray):
            raise TypeError(f"copyto takes an NDArray or a Context, not {type(other)}")
        if other._array is self._array:
            warnings.warn("an array was copied to itself", RuntimeWarning, stacklevel=2)
            return other
        other._check_writable()
        other._array.copy_from(self._array)
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """This array when it is on that device, else a copy there."""
        return self if context == self.context else self.copyto(context)

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """A copy of another dtype; with copy=False the array itself where it has that dtype already."""
        name = dtype_name(dtype)
        if not copy and name == self._array.dtype:
            return self
        return NDArray(Array.of(self._array.data, name, self.context))

    def detach(self) -> NDArray:
        """An array on the same memory that takes no part in recording gradients."""
        return NDArray(self._array)

    def as_nd_ndarray(self) -> NDArray:
        return self

    def tostype(self, stype: str) -> NDArray:
        """This array in a storage type. Raises MXNetError for any but "default": arrays are kept dense."""
        if stype != "default":
            raise MXNetError(f"storage type {stype!r} is not supported; arrays are kept dense ('default')")
        return self

    # -- shapes

    def reshape(self, *shape: Any, reverse: bool = False, **named: Any) -> NDArray:
        """The elements in another shape, sharing memory; the codes 0, -1, -2, -3 and -4 as in the operator Reshape.

        Raises MXNetError when the codes do not fit the shape, ArgumentError when the sizes differ.
        """
        if named.keys() - {"shape"} or bool(named) == bool(shape):
            raise TypeError("reshape takes the new shape, as its arguments or as shape=..., and reverse")
        wanted = named.get("shape", shape[0] if len(shape) == 1 else shape)
        wanted = (wanted,) if isinstance(wanted, (int, np.integer)) else tuple(wanted)
        target = invoke.reshaped(self.shape, wanted, reverse) if any(n <= 0 for n in wanted) else wanted
        if math.prod(target) != self.size:
            raise ArgumentError(f"cannot reshape an array of {self.size} elements (shape {self.shape}) into {target}")
        return NDArray(self._array.reshape(target))

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """With a new axis of extent 1 before `axis`; a copy, or with inplace sharing memory."""
        shape = np.expand_dims(self._array.data, axis).shape
        return self._reshaped(shape, inplace)

    def flatten(self, inplace: bool = False) -> NDArray:
        """Two-dimensional, all axes but the first merged; a copy, or with inplace sharing memory."""
        return self._reshaped((self.shape[0], -1), inplace)

    def squeeze(self, axis: Any = None, inplace: bool = False) -> NDArray:
        """Without the axes of extent 1 (or those named); a copy, or with inplace sharing memory."""
        shape = np.squeeze(self._array.data, axis).shape or (1,)
        return self._reshaped(shape, inplace)

    def _reshaped(self, shape: Sequence[int], inplace: bool) -> NDArray:
        shared = NDArray(self._array.reshape(shape))
        return shared if inplace else shared.copy()

    # -- elements

    def __getitem__(self, key: Any) -> NDArray:
        """The elements under `key`, sharing memory where they lie contiguously; one element has the shape (1,).

        Raises IndexError for an index out of range.
        """
        return NDArray(indexing.select(self._array, indexing.numpy_key(key, _values_of)))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a number, array or nested list, cast and broadcast, to the elements under `key`."""
        self._check_writable()
        values = value._array.data if isinstance(value, NDArray) else np.asarray(value)
        if values.dtype.kind not in "biuf":
            raise TypeError(f"an array cannot be assigned a {type(value)}; use a number, an array or a list of numbers")
        indexing.assign(self._array, indexing.numpy_key(key, _values_of), values)

    def _check_writable(self) -> None:
        if not self.writable:
            raise ValueError("trying to write to a read-only NDArray")

    # -- operators

    def _apply(self, op: str, *others: NDArray, out: NDArray | None = None, **params: Any) -> NDArray:
        if out is not None:
            out._check_writable()
        results = invoke.invoke(op, [self._array, *[o._array for o in others]], params,
                                None if out is None else [out._array])
        return NDArray(results[0]) if out is None else out


def _values_of(part: object) -> np.ndarray | None:
    return part.asnumpy() if isinstance(part, NDArray) else None


def _restore(values: np.ndarray, context: Context) -> NDArray:
    """Unpickle."""
    return NDArray(Array.of(values, context=context))
