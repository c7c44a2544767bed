"""Arrays that are kept in parts: row_sparse and csr (compiler/ops/storage.py).

To the engine such an array is one variable: work that writes it makes new parts, whose number of elements nobody knows
before. Parts are replaced and not written to, so whoever reads them has those of one moment; only updates of weights
(sparse_updates.py) change values where they lie.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from mxc.compiler.error import ArgumentTypeError, MXNetError
from mxc.compiler.ops.extent import check_extent
from mxc.compiler.ops.storage import KINDS, Given, Parts, dense, empty, stored, usable, with_values
from mxc.runtime import engine
from mxc.runtime.array import LARGE, Array, InPartsError, dtype_name
from mxc.runtime.context import Context, cpu


class Holder:
    """The parts of an array, which others may take the place of. parts: as they were made or given. ready: such as work
    takes them (see `usable`); None: those that a program gave are checked when work needs them."""

    __slots__ = ("parts", "ready")

    def __init__(self, parts: Parts, is_checked: bool):
        self.parts, self.ready = parts, parts if is_checked else None

    def usable(self) -> Parts:
        if self.ready is None:
            self.ready = usable(self.parts)
        return self.ready

    def put(self, parts: Parts) -> None:
        """Have other parts, which need no check."""
        self.parts = self.ready = parts


class SparseArray(Array):
    """An array that is kept in parts.

    stype: "row_sparse" or "csr". holder: its parts, which all arrays have in common that `plain` makes of it.
    """

    __slots__ = ("_shape", "holder", "stype")

    def __init__(self, holder: Holder, stype: str, dtype: str, context: Context, variable: engine.Variable):
        self.holder, self.stype, self._shape = holder, stype, holder.parts.shape
        self.dtype, self.context, self.variable = dtype, context, variable
        self.entry, self.update, self._address = None, None, 0

    @classmethod
    def of_nothing(cls, stype: str, shape: Sequence[int], dtype: object = "float32",
                   context: Context | None = None) -> SparseArray:
        """A new array of zeros, of which none is stored. Raises MXNetError for a csr array that is no matrix, and for
        another storage type."""
        if stype not in KINDS:
            raise MXNetError(f"storage type {stype!r}: expected one of {', '.join(KINDS)}")
        try:
            shape = tuple(map(operator.index, shape))
        except TypeError:
            raise ArgumentTypeError(f"a shape is a tuple of integers, got {tuple(shape)!r}") from None
        check_extent(shape)
        return cls.on(empty(stype, shape, dtype_name(dtype)), context)

    @classmethod
    def on(cls, parts: Parts, context: Context | None = None, is_checked: bool = True) -> SparseArray:
        """An array of these parts, which nobody writes to any more."""
        where = context if context is not None else cpu()
        where.require()
        stype = next(stype for stype, kind in KINDS.items() if isinstance(parts, kind))
        return cls(Holder(parts, is_checked), stype, dtype_name(parts.values.dtype), where, engine.Variable())

    # -- what it is like

    @property
    def memory(self) -> NoReturn:  # type: ignore[override]
        """Raises InPartsError: there is no dense memory."""
        raise InPartsError(f"expected a dense array, got a {self.stype} array of shape {self.shape}: "
                           "tostype('default') makes it dense")

    @property
    def identity(self) -> object:
        return self.holder

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def size(self) -> int:
        """How many elements there are, stored or not."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all parts."""
        parts = self.parts()
        return parts.values.nbytes + sum(array.nbytes for array in parts.indices)

    def __repr__(self) -> str:
        return f"<SparseArray {self.stype} {'x'.join(map(str, self.shape))} {self.dtype} @{self.context}>"

    def plain(self) -> SparseArray:
        return SparseArray(self.holder, self.stype, self.dtype, self.context, self.variable)

    def reshape(self, shape: Sequence[int]) -> SparseArray:
        """The array itself, in its own shape. Raises InPartsError for another one."""
        return self.plain() if tuple(shape) == self.shape else self.memory

    # -- elements

    def given(self) -> Parts:
        """The parts, in the middle of work that reads them. Raises MXNetError where nothing can be done with them."""
        return self.holder.usable()

    def parts(self) -> Parts:
        """The parts as they were made or given, after all pending writes are done."""
        self.wait()
        return self.holder.parts

    def numpy(self) -> np.ndarray:
        """All elements, after all pending writes are done."""
        self.wait()
        return dense(self.given())

    def have(self, values: Given) -> None:
        """Have these elements, kept in this array's way, in the middle of work that writes it. The memory of parts
        becomes this array's own."""
        parts = stored(values, self.stype)
        if parts.values.dtype != self.dtype:  # type: ignore[union-attr]
            with np.errstate(all="ignore"):
                parts = with_values(parts, parts.values.astype(self.dtype))  # type: ignore[union-attr, arg-type]
        self.holder.put(parts)  # type: ignore[arg-type]

    def fill(self, other: Array) -> None:
        values = other.given()
        self.have(values if isinstance(values, np.ndarray) else with_values(values, values.values.copy()))

    def place(self, values: Array | np.ndarray, key: Any = ...) -> engine.Placed:
        """As Array's; of all elements only."""
        if isinstance(values, Array):
            return super().place(values)
        if key is not ...:
            return self.memory
        whole = np.broadcast_to(values, self.shape).astype(self.dtype)
        return engine.place(partial(self.have, whole), (), (self.variable,), "assign", whole.size < LARGE)

    def copied(self, dtype: str = "", context: Context | None = None) -> SparseArray:
        made = SparseArray.of_nothing(self.stype, self.shape, dtype or self.dtype, context or self.context)
        made.copy_from(self)
        return made


def like(stype: str, shape: Sequence[int], dtype: str, context: Context) -> Array:
    """A new array of a storage type: anything is in a dense one."""
    return Array.empty(shape, dtype, context) if stype == Array.stype else SparseArray.of_nothing(stype, shape, dtype,
                                                                                               context)


def zeros(stype: str, shape: Sequence[int], dtype: object, context: Context) -> Array:
    """A new array of zeros, of a storage type; none is stored of those that are kept in parts.

    Raises MXNetError for another storage type, and for a csr array that is no matrix.
    """
    if stype == Array.stype:
        return Array.empty(shape, dtype, context, zeroed=True)
    return SparseArray.of_nothing(stype, shape, dtype, context)


def of_given(given: Given, context: Context | None = None) -> Array:
    """A new array of elements, or of parts that came from outside and nobody writes to any more."""
    return Array.of(given, context=context) if isinstance(given, np.ndarray) else SparseArray.on(given, context, False)


def snapshot(array: Array) -> Given:
    """A copy of the elements, or the parts, after all pending writes are done."""
    return array.parts() if isinstance(array, SparseArray) else array.numpy()
