"""What an index rule sees of its node, and index arithmetic that rules share.

An index rule says which element of which input is the output's element at an index: `def NAME(c, params, index) ->
Value`, named in ops.yaml under `index:`. c: `load(k, index, when, fill)` the element of input k (guarded: `fill` where
`when` does not hold), `shape(k)`, `dtype(k)`, `out_shape`, `out_dtype`, `output` (which output is asked for), `count`
(number of inputs), `seed(0)` and `seed(1)` (the run's seed and offset). index: one index value for each axis of the
output.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number

Index = tuple[Value, ...]


class IndexNode(Protocol):
    """What a rule sees of its node."""

    output: int
    out_shape: tuple[int, ...]
    out_dtype: str

    @property
    def count(self) -> int: ...

    def shape(self, k: int) -> tuple[int, ...]: ...

    def dtype(self, k: int) -> str: ...

    def seed(self, position: int) -> Value: ...

    def load(self, k: int, index: Sequence[Value], when: Value | None = None, fill: Value | None = None) -> Value: ...


def flatten(index: Sequence[Value], shape: Sequence[int]) -> Value:
    """The row-major position of `index` in an array of `shape`."""
    position = number(0)
    for i, extent in zip(index, shape, strict=True):
        position = ir.apply("add", ir.apply("mul", position, number(extent)), i)
    return position


def unflatten(position: Value, shape: Sequence[int]) -> Index:
    """The index of a row-major position; the first axis needs no modulus."""
    result: list[Value] = []
    for place, extent in reversed(list(enumerate(shape))):
        result.append(ir.apply("mod", position, number(extent)) if place else position)
        position = ir.apply("div", position, number(extent)) if place else position
    return tuple(reversed(result))


def replaced(index: Index, axis: int, value: Value) -> Index:
    return (*index[:axis], value, *index[axis + 1:])
