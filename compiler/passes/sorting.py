"""Sorting along an axis as sorting of rows, for decompositions and gradients."""
from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mxc.compiler.graph.graph import Entry, GraphBuilder
from mxc.compiler.passes.building import as_shape

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """Data of `shape` as rows of its elements along `axis`; None: all elements are one row."""

    builder: GraphBuilder
    shape: Shape
    axis: int | None

    @property
    def length(self) -> int:
        return prod(self.shape) if self.axis is None else self.shape[self.axis]

    def apart(self, entry: Entry) -> Entry:
        """An entry of the shape, or of another length along the axis, as (rows, length)."""
        shape = self.builder.shape(entry)
        if self.axis is None:
            return as_shape(self.builder, entry, (1, prod(shape)))
        length = shape[self.axis]
        return as_shape(self.builder, self._moved(entry), (prod(shape) // length, length))

    def together(self, rows: Entry) -> Entry:
        """(rows, length) back in the shape, with that length along the axis; (length,) for axis None."""
        length = self.builder.shape(rows)[1]
        if self.axis is None:
            return as_shape(self.builder, rows, (length,))
        last = len(self.shape) - 1
        order = self._order()
        sizes = tuple(length if i == last else self.shape[a] for i, a in enumerate(order))
        entry = as_shape(self.builder, rows, sizes)
        return entry if self.axis % len(self.shape) == last else self.builder.make(
            "transpose", entry, axes=tuple(order.index(i) for i in range(last + 1)))

    def _order(self) -> Shape:
        """The axes with the sorted one last."""
        assert self.axis is not None
        rank = len(self.shape)
        return (*(i for i in range(rank) if i != self.axis % rank), self.axis % rank)

    def _moved(self, entry: Entry) -> Entry:
        order = self._order()
        return entry if order == tuple(range(len(order))) else self.builder.make("transpose", entry, axes=order)
