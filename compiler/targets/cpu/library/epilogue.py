"""The epilogue of a library kernel: its `stores`, printed for vectors of its results."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.calls import affine
from mxc.compiler.kernel.geometry import BlockedQuads
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.kernel.ir import Value as Scalar
from mxc.compiler.kernel.math import expand_all
from mxc.compiler.targets.cpu.emit.builder import Array, Builder, Value, lanes_of, vector_type
from mxc.compiler.targets.cpu.library.arithmetic import Arithmetic, register_type
from mxc.compiler.targets.cpu.machine.isa import Isa


class Lane:
    """An axis that runs along a vector's lanes: start, start + 1, ..."""

    def __init__(self, start: Value):
        self.start = start


Axis = Value | Lane  # a Value is one number for all lanes, or a vector with a number for each
# An index at a point is a sum: what all lanes share, a stride times the lane's number, and a vector of numbers.
Terms = tuple[Value, Value | None, Value | None]
# An epilogue that computes at most so many values for each result may be printed many times. Sums of four products at a
# time are soon done, so that a way through memory, which is spared so, would take longer than they do.
BRIEF, BRIEF_OF_QUADS = 10, 20


class Epilogue:
    """Reads the kernel's arguments when made, then `store`s vectors of results as often as asked.

    geometry: the kernel's record, over numbers of the printed program.
    """

    def __init__(self, kernel: CallKernel, b: Builder, args: Value, isa: Isa):
        self.kernel, self.b, self.isa = kernel, b, isa
        self.arithmetic = Arithmetic(b, isa.narrow)
        count = len(kernel.buffers)
        self.buffers = [Array(b, b.argument(args, i, "ptr"), dtype) for i, dtype in enumerate(kernel.buffers)]
        first = count + len(kernel.extents)
        self.geometry: Any = kernel.geometry.with_extents([b.argument(args, i) for i in range(count, first)])
        constants = ir.run_time_integers(kernel.roots())
        self.constants = {id(v): b.argument(args, first + i) for i, v in enumerate(constants)}
        self.values = expand_all([s.value for s in kernel.stores])

    @property
    def brief(self) -> bool:
        """Whether it may be printed for each vector of a register tile: few values, and lanes next to each other."""
        indices, most = self._indices(), BRIEF_OF_QUADS if isinstance(self.kernel.geometry, BlockedQuads) else BRIEF
        return (sum(v.op not in ("const", "acc", "axis") and v.dtype != ir.INDEX for v in ir.walk(self.values)) <= most
                and all(_together(index) for index in indices))

    def _indices(self) -> list[Scalar]:
        """The affine index values in the epilogue: where it stores and loads, and those that it computes with."""
        numbers = (a for v in ir.walk(self.values) if v.dtype != ir.INDEX for a in v.args if a.dtype == ir.INDEX)
        return [*(s.index for s in self.kernel.stores), *numbers]

    def terms(self, index: Scalar, axes: Sequence[Axis]) -> Terms:
        """An affine index at a point of the output axes."""
        b = self.b
        terms, constants = affine(index)
        base = b.lift(0)
        stride: Value | None = None
        spread: Value | None = None
        for number in constants:
            base = base + self._constant(number)
        for position, numbers in terms.items():
            factor = self._factor(numbers)
            axis = axes[position]
            if isinstance(axis, Lane):
                base, stride = base + axis.start * factor, factor
            elif lanes_of(axis.type):
                part = axis * b.splat(factor, lanes_of(axis.type))
                spread = part if spread is None else spread + part
            else:
                base = base + axis * factor
        return base, stride, spread

    def factors(self, index: Scalar, positions: Sequence[int]) -> list[Value]:
        """How much an affine index grows along each of these axes."""
        terms = affine(index)[0]
        return [self._factor(terms.get(position, ())) for position in positions]

    def _factor(self, numbers: Sequence[Scalar]) -> Value:
        factor = self.b.lift(0)
        for number in numbers:
            factor = factor + self._constant(number)
        return factor

    def _constant(self, v: Scalar) -> Value:
        return self.constants[id(v)] if id(v) in self.constants else self.b.lift(int(v.data))

    def walk(self, axes: Sequence[Axis], along: int) -> OutputWalk:
        """The points from `axes` on along one of the axes. What they share is computed here."""
        return OutputWalk(self, {id(index): self.terms(index, axes) for index in self._indices()}, self.steps(along))

    def steps(self, along: int) -> dict[int, Value]:
        """How much each index grows along an axis."""
        return {id(index): self._factor(affine(index)[0].get(along, ())) for index in self._indices()}

    def store(
        self, axes: Sequence[Axis], result: Value, dtype: str, mask: Value | None = None,
        uniform: dict[int, Value] | None = None,
    ) -> None:
        """Stores what becomes of `result`, a vector of computing dtype `dtype`, at a point of the output axes.

        mask: the lanes that exist. uniform: pass the same dictionary for points that differ in their lanes alone, and
        what does not depend on these is printed once.
        """
        done: dict[int, Value] = dict(uniform) if uniform is not None else {}
        _Point(self, lambda index: self.terms(index, axes), result, dtype, mask, done).store_all()
        if uniform is not None:
            uniform.update({k: v for k, v in done.items() if not lanes_of(v.type)})


def _together(index: Scalar) -> bool:
    """Whether an index that depends on the lane (axis 2 of blocks) grows by 1 with it."""
    return [int(v.data) for v in affine(index)[0].get(2, ())] in ([], [1])


class OutputWalk:
    """Points of the output along an axis, from a first one on. steps: how much each index grows from point to point."""

    def __init__(self, epilogue: Epilogue, terms: dict[int, Terms], steps: dict[int, Value]):
        self.epilogue, self.terms, self.steps = epilogue, terms, steps

    def moved(self, points: Value | int) -> OutputWalk:
        """The walk from so many points further on."""
        moved = {}
        for index, (base, stride, spread) in self.terms.items():
            step = self.steps[index]
            moved[index] = base if step.constant == 0 else base + step * points, stride, spread
        return OutputWalk(self.epilogue, moved, self.steps)

    def turned(self, along: int) -> OutputWalk:
        """The walk along another axis, from the same point on."""
        return OutputWalk(self.epilogue, self.terms, self.epilogue.steps(along))

    def store(self, result: Value, dtype: str) -> None:
        """Does what `Epilogue.store` does, at the first point."""
        _Point(self.epilogue, lambda index: self.terms[id(index)], result, dtype, None, {}).store_all()


class _Point:
    """One vector of results and the values computed from it. terms: gives the terms of an index at this point."""

    def __init__(
        self, epilogue: Epilogue, terms: Callable[[Scalar], Terms], result: Value, dtype: str, mask: Value | None,
        done: dict[int, Value],
    ):
        self.e, self.b, self.terms, self.done, self.mask = epilogue, epilogue.b, terms, done, mask
        self.result, self.dtype, self.lanes = result, dtype, lanes_of(result.type)

    def vector(self, x: Value) -> Value:
        return x if lanes_of(x.type) else self.b.splat(x, self.lanes)

    def value(self, root: Scalar) -> Value:
        for v in ir.walk([root]):
            if id(v) not in self.done and v.dtype != ir.INDEX:
                self.done[id(v)] = self._one(v)
        return self.done[id(root)]

    def _one(self, v: Scalar) -> Value:
        if v.op == "const":
            kind = register_type(v.dtype)
            return self.b.number(v.data, kind)
        if v.op == "acc":
            return self.e.arithmetic.cast(self.result, self.dtype, v.dtype)
        if v.op == "load":
            return self._load(v)
        args = [self._number(a) if a.dtype == ir.INDEX else self.done[id(a)] for a in v.args]
        if any(lanes_of(a.type) for a in args):
            args = [self.vector(a) for a in args]
        return self.e.arithmetic.step(v, args)

    def _offsets(self, stride: Value | None, spread: Value | None) -> Value:
        kind = vector_type("i64", self.lanes)
        if stride is None:
            return spread if spread is not None else self.b.zero(kind)
        along = self.b.iota(kind) * self.vector(stride)
        return along if spread is None else along + spread

    def _number(self, index: Scalar) -> Value:
        """An affine number itself, as 64-bit integers."""
        base, stride, spread = self.terms(index)
        if stride is None and spread is None:
            return base
        return self.vector(base) + self._offsets(stride, spread)

    def _all(self) -> Value:
        return self.mask if self.mask is not None else self.b.splat(self.b.number(1, "i1"), self.lanes)

    def _load(self, v: Scalar) -> Value:
        base, stride, spread = self.terms(v.args[0])
        return self._at(v.data, v.dtype, base, stride, spread)

    def _at(self, buffer: int, dtype: str, base: Value, stride: Value | None, spread: Value | None) -> Value:
        array = self.e.buffers[buffer]
        if stride is None and spread is None:
            raw = array[base]
        elif spread is None and stride is not None and stride.constant == 1:
            raw = array.vector(base, self.lanes, self.mask)
        else:
            raw = array.at(base).gather(self._offsets(stride, spread), self._all())
        return self.e.arithmetic.loaded(raw, dtype)

    def store_all(self) -> None:
        for store, value in zip(self.e.kernel.stores, self.e.values, strict=True):
            self._store(store, self.vector(self.value(value)))

    def _store(self, store: ir.Store, value: Value) -> None:
        dtype = self.e.kernel.buffers[store.buffer]
        value = self.e.arithmetic.cast(value, store.value.dtype, dtype)
        base, stride, spread = self.terms(store.index)
        array = self.e.buffers[store.buffer]
        if store.mode == "add":
            old = self.vector(self._at(store.buffer, dtype, base, stride, spread))
            value = self.e.arithmetic.step(ir.apply("add", ir.acc(0, dtype), ir.acc(1, dtype)), [old, value])
        raw = self.e.arithmetic.stored(value, dtype)
        if spread is None and stride is not None and stride.constant == 1:
            array.put(base, raw, self.mask)
        else:
            array.at(base).scatter(self._offsets(stride, spread), raw, self._all())
