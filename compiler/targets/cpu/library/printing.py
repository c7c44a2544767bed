"""What all library kernels are printed with: the kernel, its functions, and their parameters by name."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cpu.emit.builder import TYPES, Array, Builder, Value, vector_type
from mxc.compiler.targets.cpu.library.epilogue import Axis, Epilogue, Lane
from mxc.compiler.targets.cpu.machine.isa import Isa

KERNEL = "ptr args, i64 first, i64 last, ptr scratch"  # the parameters of every kernel's function: `kernel/ir.py`


@dataclass(frozen=True)
class Printing:
    """A library kernel being printed to `b`, as the function @`symbol`."""

    kernel: CallKernel
    symbol: str
    b: Builder
    isa: Isa

    @property
    def geometry(self) -> Any:
        """The kernel's record, over Python's numbers: for what is baked into the code."""
        return self.kernel.geometry

    @property
    def dtype(self) -> str:
        """The dtype that the kernel computes in."""
        return computing_dtype(self.kernel.geometry.dtype)

    def array(self, pointer: Value) -> Array:
        """What lies at a pointer, of the computing dtype."""
        return Array(self.b, pointer, self.dtype)


class Function:
    """One function of a kernel being printed. args: the kernel's arguments, of which the function reads what it uses.

    g: the kernel's record, over numbers of the printed program; subclasses name its class.
    """

    g: Any

    def __init__(self, printing: Printing, args: Value):
        self.printing, self.b, self.isa, self.dtype = printing, printing.b, printing.isa, printing.dtype
        self.lanes, self.array = self.isa.lanes(self.dtype), printing.array
        self.zero = self.b.zero(vector_type(TYPES[self.dtype], self.lanes))  # a vector of the computing dtype
        self.epilogue = Epilogue(printing.kernel, self.b, args, self.isa)
        self.g = self.epilogue.geometry
        self.loaded = self.epilogue.arithmetic.loaded

    def store_square(
        self, square: Array, rows: Sequence[Value], count: Value, whole: Value, mask: Value,
        axes_of: Callable[[Value], Sequence[Axis]],
    ) -> None:
        """Runs the epilogue over a square of results, transposed: over its first `count` columns, column u at the
        output axes axes_of(u). square: memory for it. whole: whether all lanes of these columns exist; if not, those of
        `mask` do.
        """
        b, lanes = self.b, self.lanes
        for i, row in enumerate(b.transpose(rows)):
            square.put(i * lanes, row)
        for u in b.range(0, b.select(whole, count, b.lift(0))):
            self.epilogue.store(axes_of(u), square.vector(u * lanes, lanes), self.dtype)
        for u in b.range(0, b.select(whole, b.lift(0), count)):
            self.epilogue.store(axes_of(u), square.vector(u * lanes, lanes), self.dtype, mask)

    def store_rows(
        self, width: int, tile: Array, batch: Value, row: Value, rows: Value, column: Value, columns: Value,
    ) -> None:
        """The epilogue over finished rows of a product, `width` apart: whole vectors, or masked ones where columns
        end."""
        b, lanes = self.b, self.lanes
        whole = columns.equals(width)
        with b.when(whole):
            for r in b.range(0, rows):
                uniform: dict[int, Value] = {}
                for j in range(0, width, lanes):
                    axes = batch, row + r, Lane(column + j)
                    self.epilogue.store(axes, tile.vector(r * width + j, lanes), self.dtype, None, uniform)
        with b.when_not(whole):
            for r in b.range(0, rows):
                for at in b.range(0, columns, lanes):
                    axes, mask = (batch, row + r, Lane(column + at)), b.first_lanes(columns - at, lanes)
                    self.epilogue.store(axes, tile.vector(r * width + at, lanes), self.dtype, mask)


# The types of a printed function's parameters, which `Parameters` has as annotations.
Pointer: TypeAlias = Value
NoAlias: TypeAlias = Value
Integer: TypeAlias = Value
_TEXT = {"Pointer": "ptr", "NoAlias": "ptr noalias", "Integer": "i64"}


@dataclass(frozen=True)
class Parameters:
    """Base of the records of a printed function's parameters: a dataclass whose fields have the parameters' names and
    are annotated with their types. So the function's signature, what its printer reads, and what its callers pass are
    one list."""

    @classmethod
    def text(cls) -> str:
        """The signature, as `Builder.function` takes it."""
        return ", ".join(f"{_TEXT[str(each.type)]} {each.name}" for each in fields(cls))

    def values(self) -> list[Value]:
        """What a caller passes."""
        return [getattr(self, each.name) for each in fields(self)]
