"""Arrays: a shape and a dtype over a contiguous piece of an allocation, which views share.

`Array` is what NDArray, executors and files exchange. All views of one allocation share its engine variable, so a write
through any of them is seen as a change of all.
"""
from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentTypeError, MXNetError
from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops.infer import check_extent
from mxc.runtime import engine
from mxc.runtime.context import Context, cpu
from mxc.runtime.storage import Block

DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
_ELEMENTS = {name: np.dtype(name) for name in DTYPES}


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: object) -> str:
    """The name of a dtype given as a name, a NumPy dtype or a scalar type.

    Raises ArgumentTypeError for one not supported.
    """
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise ArgumentTypeError(f"dtype {name!r} is not supported; use one of {', '.join(DTYPES)}")
    return name


class Array:
    """A C-contiguous array on a device.

    data: its memory as a NumPy array, for the runtime's own use (whoever writes it goes through `engine.push`, or calls
    `touched`). variable: the engine variable, one for all views of an allocation. entry: the place of this array, not
    of its views, in the graph that autograd records (see `runtime/tape.py`).
    """

    __slots__ = ("__weakref__", "context", "data", "dtype", "entry", "variable")

    def __init__(self, data: np.ndarray, context: Context, variable: engine.Variable):
        self.data, self.context, self.variable = data, context, variable
        self.dtype = dtype_name(data.dtype)
        self.entry: Entry | None = None

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: object = "float32", context: Context | None = None) -> Array:
        """A new array of uninitialised memory."""
        where = context if context is not None else cpu()
        if not isinstance(where, Context):
            raise ArgumentTypeError(f"expected a Context such as mx.cpu(), got {where!r}")
        name, shape = dtype_name(dtype), tuple(operator.index(n) for n in shape)
        check_extent(shape)
        element = _ELEMENTS[name]
        memory = np.asarray(Block(math.prod(shape) * element.itemsize, where))
        return cls(np.ndarray(shape, element, memory), where, engine.Variable())

    @classmethod
    def of(cls, values: np.ndarray, dtype: object = None, context: Context | None = None) -> Array:
        """A new array holding a copy of `values`, cast to `dtype` (default: as they are)."""
        array = cls.empty(values.shape, values.dtype if dtype is None else dtype, context)
        with np.errstate(all="ignore"):
            np.copyto(array.data, values, casting="unsafe")
        return array

    @classmethod
    def sharing(cls, values: np.ndarray, context: Context | None = None) -> Array:
        """An array on the memory of `values`, not copied: volatile, since its owner may change it unseen."""
        dtype_name(values.dtype)
        if not (values.flags.c_contiguous and values.flags.aligned and values.dtype.isnative):
            raise MXNetError("only a C-contiguous NumPy array of aligned elements in native byte order can be shared; "
                             "copy it first")
        return cls(values, context if context is not None else cpu(), engine.Variable(volatile=True))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    @property
    def address(self) -> int:
        """Of the first element."""
        return self.data.__array_interface__["data"][0]

    def __repr__(self) -> str:
        return f"<Array {'x'.join(map(str, self.shape))} {self.dtype} @{self.context}>"

    def view(self, data: np.ndarray) -> Array:
        """Another array on the same allocation: `data` is a C-contiguous NumPy view made from this array's `data`."""
        return Array(data, self.context, self.variable)

    def reshape(self, shape: Sequence[int]) -> Array:
        """The same elements in another shape of the same size, sharing memory."""
        return self.view(self.data.reshape(tuple(shape)))

    def prefix(self, shape: Sequence[int]) -> Array:
        """An array of a smaller shape on the first elements, sharing memory."""
        return self.view(self.data.reshape(-1)[:math.prod(shape)].reshape(tuple(shape)))

    def wait(self) -> None:
        """Return when the pending writes are done; raises what they raised."""
        engine.wait_to_read(self.variable)

    def numpy(self) -> np.ndarray:
        """A copy of the values."""
        self.wait()
        return self.data.copy()

    def share(self) -> np.ndarray:
        """The memory itself, writable; from now on the array is volatile."""
        self.wait()
        self.variable.volatile = True
        return self.data

    def touched(self) -> None:
        """State that `data` was written outside the engine."""
        self.variable.version += 1

    def assign(self, values: np.ndarray, key: Any = ...) -> None:
        """Write `values`, cast to this dtype and broadcast, to the elements that NumPy's index `key` selects.

        Raises ValueError when the shapes do not fit and IndexError for an index out of range.
        """

        def write() -> None:
            with np.errstate(all="ignore"):
                self.data[key] = values.astype(self.dtype, copy=False)

        engine.push(write, (), (self.variable,))

    def copy_from(self, other: Array) -> None:
        """Write the elements of `other`, which has the same shape, cast to this dtype."""
        if other.shape != self.shape:
            raise MXNetError(f"copy: the source has the shape {other.shape}, the destination {self.shape}; "
                             "they must be the same")

        def write() -> None:
            with np.errstate(all="ignore"):
                np.copyto(self.data, other.data, casting="unsafe")

        engine.push(write, (other.variable,), (self.variable,))
