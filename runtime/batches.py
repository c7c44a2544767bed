"""Batches of any size on the plans that an artifact has: cut, and what is missing of the last part filled up.

A part that is filled up gets its last row again: a row that may be computed, whose result is dropped. Only what is
known to keep rows apart (compiler/graph/batch_rows.py) is run in this way.
"""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]


class Place(NamedTuple):
    """Where an array has the rows of a batch: along `axis`, seen as (outer, rows, inner)."""

    axis: int
    outer: int = 1
    inner: int = 1

    def rows(self, array: np.ndarray, count: int) -> np.ndarray:
        """The array of a batch of so many rows, its rows along the axis behind `axis`: a view."""
        shape = array.shape
        return array.reshape(*shape[:self.axis], self.outer, count, self.inner, *shape[self.axis + 1:])

    def shape(self, shape: Shape, count: int) -> Shape:
        """The shape for so many rows."""
        return (*shape[:self.axis], self.outer * count * self.inner, *shape[self.axis + 1:])


class Part(NamedTuple):
    """Some rows of a batch that run at once. plan: by position among the plans. size: of the plan's batch. start, rows:
    the first row of the batch, and how many."""

    plan: int
    size: int
    start: int
    rows: int


class Batches:
    """How a model's plans take batches.

    inputs: where those have rows that have any. outputs: for each plan, the same of all outputs, in order; None: one
    that is equal for every batch. mixed: why batches cannot be cut or filled up; "" when they can.
    """

    def __init__(self, inputs: Mapping[str, Place], outputs: Sequence[Sequence[Place | None]], mixed: str = ""):
        self.inputs, self.outputs, self.mixed = dict(inputs), [list(each) for each in outputs], mixed

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Batches:
        """What `stored` gave. Raises KeyError, TypeError or ValueError for anything else."""
        inputs = {str(name): Place(int(axis)) for name, axis in stored["inputs"].items()}
        outputs = [[None if place is None else Place(*map(int, place)) for place in each] for each in stored["outputs"]]
        return cls(inputs, outputs, str(stored["mixed"]))

    def stored(self) -> dict[str, Any]:
        """Itself as JSON data."""
        return {"inputs": {name: place.axis for name, place in self.inputs.items()},
                "outputs": [[None if place is None else list(place) for place in each] for each in self.outputs],
                "mixed": self.mixed}

    def rows(self, shapes: Mapping[str, Shape]) -> int | None:
        """How many rows inputs of these shapes have; None where they differ in that, or none has rows."""
        found = {shapes[name][place.axis] for name, place in self.inputs.items()
                 if name in shapes and place.axis < len(shapes[name])}
        return found.pop() if len(found) == 1 else None

    def sized(self, shapes: Mapping[str, Shape], rows: int) -> dict[str, Shape]:
        """The shapes of inputs, for so many rows."""
        return {name: self.inputs[name].shape(shape, rows) if name in self.inputs else shape
                for name, shape in shapes.items()}

    def parts(self, plans: Sequence[tuple[Mapping[str, Shape], Sequence[Shape], int]],
              shapes: Mapping[str, Shape]) -> list[Part]:
        """The cheapest way to run inputs of these shapes; none where there is no way.

        plans: the input shapes of each, its outputs' shapes, and what a run costs. The costs of the parts have the
        least sum; of several such ways it is that of fewer parts, and then of fewer rows that are filled up.
        """
        rows = self.rows(shapes)
        if self.mixed or not rows:
            return []
        wanted = self.sized(shapes, 1)
        fitting: dict[int, int] = {}  # by rows, the plan
        for i, (ins, outs, cost) in enumerate(plans):
            size = self.rows(ins)
            if size and all(self.sized(ins, 1).get(name) == shape for name, shape in wanted.items()) and \
                    self._gives(i, outs, size) and (size not in fitting or cost < plans[fitting[size]][2]):
                fitting[size] = i
        if not fitting:
            return []
        parts, start = [], 0
        for size in cover(rows, tuple(sorted((size, plans[i][2]) for size, i in fitting.items()))):
            parts.append(Part(fitting[size], size, start, min(size, rows - start)))
            start += parts[-1].rows
        return parts

    def _gives(self, plan: int, shapes: Sequence[Shape], rows: int) -> bool:
        """Whether a plan's outputs, of these shapes, are those of so many rows."""
        return all(place is None or (place.axis < len(shape) and place.shape(shape, rows) == shape)
                   for place, shape in zip(self.outputs[plan], shapes, strict=True))

    def cut(self, values: Mapping[str, np.ndarray], part: Part) -> dict[str, np.ndarray]:
        """The inputs of a part."""
        last = part.start + part.rows - 1
        found = dict(values)
        for name, place in self.inputs.items():
            if name in values and part.rows == part.size:
                found[name] = values[name][(slice(None),) * place.axis + (slice(part.start, last + 1),)]
            elif name in values:
                places = np.minimum(np.arange(part.start, part.start + part.size), last)
                found[name] = np.take(values[name], places, place.axis)
        return found

    def join(self, into: list[np.ndarray], outputs: Sequence[np.ndarray], part: Part, rows: int) -> None:
        """Put the outputs of a part where they belong in those of the batch of so many rows, which the first one
        makes."""
        places = self.outputs[part.plan]
        if not into:
            into += [array if place is None else np.empty(place.shape(array.shape, rows), array.dtype)
                     for place, array in zip(places, outputs, strict=True)]
        for place, whole, array in zip(places, into, outputs, strict=True):
            if place is not None:
                before = (slice(None),) * (place.axis + 1)
                place.rows(whole, rows)[(*before, slice(part.start, part.start + part.rows))] = \
                    place.rows(array, part.size)[(*before, slice(part.rows))]


@functools.lru_cache(maxsize=256)
def cover(rows: int, costs: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Sizes, the largest first, of together at least so many rows, whose costs have the least sum; of several such
    ways that of fewest sizes, and then of fewest rows. costs: by size; above 0."""
    best = min(costs, key=lambda each: (each[1] / each[0], -each[0]))[0]
    # Of `best` other sizes some have together a multiple of `best` rows, which cost no less than as many of the best:
    # so there are fewer of the others than that.
    most = (best - 1) * max(size for size, _ in costs) + best
    bulk = max(0, -(-(rows - most) // best))
    ways: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)]  # for each number of rows: cost, sizes, rows, the last size
    for left in range(1, rows - bulk * best + 1):
        ways.append(min((each + ways[max(0, left - size)][0], 1 + ways[max(0, left - size)][1],
                         size + ways[max(0, left - size)][2], size) for size, each in costs))
    sizes, left = [best] * bulk, rows - bulk * best
    while left > 0:
        sizes.append(ways[left][3])
        left -= sizes[-1]
    return tuple(sorted(sizes, reverse=True))
