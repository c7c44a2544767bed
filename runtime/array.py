"""Arrays: a shape and a dtype over a contiguous piece of an allocation, which views share.

`Array` is what NDArray, executors and files exchange. All views of one allocation share its engine variable, so a write
through any of them is seen as a change of all.
"""
from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mxc.compiler.error import ArgumentTypeError, MXNetError
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.extent import check_extent
from mxc.compiler.ops.storage import DEFAULT, Given
from mxc.runtime import engine
from mxc.runtime.context import GPU, Context, cpu
from mxc.runtime.storage import MemoryBlock

if TYPE_CHECKING:
    from mxc.compiler.graph.graph import Entry
    from mxc.runtime.updates import Ready

DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "bfloat16")
SMALL_BYTES = 1024  # arrays of at most so many bytes lie in NumPy's own memory: that is quicker, and is not counted
LARGE = 1 << 18  # elements from which on an operation is worth the hand-over to another thread


class _Semantics(threading.local):
    """np_shape: whether an extent of 0 and the shape () mean themselves in this thread, instead of "not known"."""

    np_shape = False


semantics = _Semantics()
_ELEMENTS = {name: dtypes.numpy_dtype(name) for name in DTYPES}


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: object) -> str:
    """The name of a dtype given as a name, a NumPy dtype or a scalar type.

    Raises ArgumentTypeError for one not supported.
    """
    try:
        name = dtypes.dtype_name(dtype)
    except (TypeError, ValueError, SyntaxError):  # NumPy evaluates texts as "(2,3)f4"
        name = str(dtype)[:40]
    if name not in DTYPES:
        raise ArgumentTypeError(f"dtype {name!r} is not supported; use one of {', '.join(DTYPES)}")
    return name


class InPartsError(MXNetError):
    """The dense memory of an array was asked for that is kept in parts (sparse_array.py)."""


class Array:
    """A C-contiguous array on a device.

    memory: a NumPy array, for work that goes through `engine.push`. data: the same, after all pending work on it is
    done, for whoever reads or writes it outside the engine (and then calls `touched`). variable: the engine variable,
    one for all views of an allocation. entry: the place of this array, not of its views, in the graph that autograd
    records (see `runtime/tape.py`). update: the last update of it by an optimizer (see `runtime/updates.py`).
    """

    __slots__ = ("__weakref__", "_address", "context", "dtype", "entry", "memory", "update", "variable")
    stype = DEFAULT  # the storage type (compiler/ops/storage.py)

    def __init__(self, memory: np.ndarray, context: Context, variable: engine.Variable, dtype: str = ""):
        self.memory, self.context, self.variable = memory, context, variable
        self.dtype = dtype or dtype_name(memory.dtype)
        self.entry: Entry | None = None
        self.update: Ready | None = None
        self._address = 0

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: object = "float32", context: Context | None = None,
              zeroed: bool = False) -> Array:
        """A new array of uninitialised memory; zeroed: of zeros."""
        where = context if context is not None else cpu()
        if not isinstance(where, Context):
            raise ArgumentTypeError(f"expected a Context such as mx.cpu(), got {where!r}")
        if where.device_id < 0:
            where = where.home
        name = dtype_name(dtype)
        try:
            shape = tuple(map(operator.index, shape))
        except TypeError:
            raise ArgumentTypeError(f"a shape is a tuple of integers, got {tuple(shape)!r}") from None
        check_extent(shape)
        element = _ELEMENTS[name]
        nbytes = math.prod(shape) * element.itemsize
        if where.device_typeid == GPU:
            from mxc.runtime.device_array import DeviceArray  # only now: it is a kind of array

            return DeviceArray.made(shape, name, where, zeroed)
        if nbytes <= SMALL_BYTES:
            where.require()
            return cls((np.zeros if zeroed else np.empty)(shape, element), where, engine.Variable(), name)
        return cls(np.ndarray(shape, element, np.asarray(MemoryBlock(nbytes, where, zeroed))), where, engine.Variable(),
                   name)

    @classmethod
    def of(cls, values: np.ndarray, dtype: object = None, context: Context | None = None) -> Array:
        """A new array holding a copy of `values`, cast to `dtype` (default: as they are)."""
        array = cls.empty(values.shape, values.dtype if dtype is None else dtype, context)
        if array.context.gpu_number < 0:
            dtypes.write(array.memory, values)
        else:
            array.have(values)
        return array

    @classmethod
    def sharing(cls, values: np.ndarray, context: Context | None = None) -> Array:
        """An array on the memory of `values`, not copied: volatile, since its owner may change it unseen."""
        dtype_name(values.dtype)
        if not (values.flags.c_contiguous and values.flags.aligned and values.dtype.isnative):
            raise MXNetError("only a C-contiguous NumPy array of aligned elements in native byte order can be shared; "
                             "copy it first")
        where = context if context is not None and context.device_typeid != GPU else cpu()  # it is the host's memory
        return cls(values, where, engine.Variable(volatile=True))

    @property
    def data(self) -> np.ndarray:
        engine.wait_to_write(self.variable)
        return self.memory

    @property
    def identity(self) -> object:
        """What this array has in common with those, and only those, that are on the same elements in the same shape,
        made of it by `plain`."""
        return self.memory

    def plain(self) -> Array:
        """Another array on the same elements, without a place in the graph of autograd."""
        return Array(self.memory, self.context, self.variable, self.dtype)

    def given(self) -> Given:
        """The elements, in the middle of work that reads them: memory, or parts."""
        return self.read()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.memory.shape

    @property
    def size(self) -> int:
        return self.memory.size

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    @property
    def layout(self) -> np.ndarray:
        """What tells how the elements lie, for views. Nothing is copied for it; the elements may be elsewhere."""
        return self.memory

    @property
    def owner(self) -> MemoryBlock | np.ndarray:
        """What the memory of an array that `empty` made belongs to: it is there as long as anybody can reach a part of
        the memory."""
        base = self.memory.base
        return self.memory if base is None else cast(np.ndarray, base).base  # type: ignore[return-value]

    @property
    def address(self) -> int:
        """The address of the first element."""
        if not self._address:  # NumPy makes a dictionary to tell it
            self._address = self.memory.__array_interface__["data"][0]
        return self._address

    def __repr__(self) -> str:
        return f"<Array {'x'.join(map(str, self.shape))} {self.dtype} @{self.context}>"

    def view(self, data: np.ndarray) -> Array:
        """Another array on the same allocation: `data` is a C-contiguous NumPy view made from this array's `data`."""
        return Array(data, self.context, self.variable)

    def reshape(self, shape: Sequence[int]) -> Array:
        """The same elements in another shape of the same size, sharing memory."""
        return self.view(self.memory.reshape(tuple(shape)))

    def prefix(self, shape: Sequence[int]) -> Array:
        """An array of a smaller shape on the first elements, sharing memory."""
        return self.view(self.memory.reshape(-1)[:math.prod(shape)].reshape(tuple(shape)))

    def wait(self) -> None:
        """Return when the pending writes are done; raises what they raised."""
        if self.variable.busy is not None:
            engine.wait_to_read(self.variable)

    def numpy(self) -> np.ndarray:
        """A copy of the values, after all pending writes are done."""
        if self.variable.busy is not None:
            engine.wait_to_read(self.variable)
        return self.memory.copy()

    def share(self) -> np.ndarray:
        """The memory itself, writable; from now on the array is volatile."""
        memory = self.data
        self.variable.volatile = True
        self.touched()
        return memory

    def touched(self) -> None:
        """State that `data` was written outside the engine."""
        self.variable.version += 1

    def assign(self, values: np.ndarray, key: Any = ...) -> None:
        """Write `values`, cast to this dtype and broadcast, to the elements that NumPy's index `key` selects.

        Raises ValueError when the shapes do not fit and IndexError for an index out of range.
        """

        engine.is_inside()
        engine.complete((self.place(values, key),))

    def copy_from(self, other: Array) -> None:
        """Write the elements of `other`, which has the same shape, cast to this dtype."""
        if other.shape != self.shape:
            raise MXNetError(f"copy: the source has the shape {other.shape}, the destination {self.shape}; "
                             "they must be the same")
        engine.is_inside()
        engine.complete((self.place(other),))

    def place(self, values: Array | np.ndarray, key: Any = ...) -> engine.Placed:
        """The part of `copy_from` and `assign` that waits for nothing, see `engine.place`; `key` is for the latter."""
        variable = self.variable
        if isinstance(values, Array):
            return engine.place(partial(self.fill, values), (values.variable,), (variable,), "copy", self.size < LARGE)
        is_free = engine.is_free(variable)
        if not is_free:  # the caller may change them before it is their turn
            values = np.array(dtypes.converted(values, self.memory.dtype))
        return engine.place(partial(self._write, values, key), (), (variable,), "assign",
                            is_free or values.size < LARGE, is_queued=not is_free)

    def _write(self, values: np.ndarray, key: Any) -> None:
        self.memory[key] = dtypes.converted(values, self.memory.dtype)

    def copied(self, dtype: str = "", context: Context | None = None) -> Array:
        """A new array of the same elements, cast to `dtype`, on a device (default: as this one)."""
        made = Array.empty(self.shape, dtype or self.dtype, context or self.context)
        made.copy_from(self)
        return made

    def have(self, values: Given) -> None:
        """Have these elements, in the middle of work that writes the array."""
        if isinstance(values, np.ndarray):
            if values.__array_interface__["data"] != self.memory.__array_interface__["data"]:  # else it was made there
                dtypes.write(self.memory, values.reshape(self.memory.shape))
        else:
            self.memory[...] = 0
            values.write(self.memory)

    def fill(self, other: Array) -> None:
        """What `copy_from` does, in the middle of work that reads the one and writes the other."""
        if self.dtype == other.dtype and other.copy_out(self.memory):
            return
        values = other.given()
        if self.dtype == other.dtype and isinstance(values, np.ndarray):
            np.copyto(self.memory, values)
        else:
            self.have(values)

    def copy_out(self, values: np.ndarray) -> bool:
        """In the middle of work that reads the array, copy all elements there, which has their dtype, where that is
        quicker than to `read` them; False where it is not."""
        return False

    def read(self) -> np.ndarray:
        """The memory for reading alone, in the middle of work that reads the array."""
        return self.memory
