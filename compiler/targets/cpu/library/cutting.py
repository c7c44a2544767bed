"""Formulas by which kernels cut their work. The same serve Python, which plans a launch, and the printed program, which
runs it: their numbers (N) are Python's or the program's."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mxc.compiler.targets.cpu.emit.builder import Builder, Number, Value

N = TypeVar("N", int, Value)
UNITS = 8  # a launch has at least so many units, if its work can be cut so far: so many threads then have one each


def ceil_div(x: N | int, y: N | int) -> N:
    return (x + y - 1) // y  # type: ignore[return-value]  # of two ints there is no other N


def least(x: N | int, y: N | int) -> N:
    """The smaller of two numbers."""
    b = _builder(x, y)
    return min(x, y) if b is None else b.minimum(x, y)  # type: ignore[type-var,return-value]


def most(x: N | int, y: N | int) -> N:
    """The larger of two numbers."""
    b = _builder(x, y)
    return max(x, y) if b is None else b.maximum(x, y)  # type: ignore[type-var,return-value]


def _builder(x: Number, y: Number) -> Builder | None:
    """What prints the program that has one of the numbers; None if both are Python's."""
    return x.builder if isinstance(x, Value) else y.builder if isinstance(y, Value) else None


def odd(count: N) -> N:
    """`ops.winograd.odd`."""
    return count + 1 - count % 2  # type: ignore[return-value]  # of an int there is no other N


def volume(extents: Sequence[N]) -> N:
    return extents[0] * extents[1] * extents[2]


def evenly(total: N, parts: N | int) -> tuple[N, N]:
    """The size of each of about `parts` equal parts of `total`, one at least, and how many such parts there are."""
    size: N = most(1, ceil_div(total, parts))
    return size, ceil_div(total, size)


@dataclass(frozen=True)
class Tiles:
    """`count` tiles that cover some rows: the first `longer` of them have size + 1 rows each, the others `size`."""

    count: Value
    size: Value
    longer: Value

    @classmethod
    def of(cls, rows: Value, most_rows: int, empty: bool = True) -> Tiles:
        """Tiles of at most so many rows. empty: there may be no rows."""
        b = rows.builder
        count: Value = ceil_div(rows, most_rows)
        size = rows // (b.maximum(count, 1) if empty else count)
        return cls(count, size, rows - size * count)

    def start(self, tile: Value) -> Value:
        """The first row of a tile."""
        return tile * self.size + tile.builder.minimum(tile, self.longer)

    def rows(self, tile: Value) -> Value:
        """The rows of a tile."""
        return tile.builder.select(tile < self.longer, self.size + 1, self.size)
