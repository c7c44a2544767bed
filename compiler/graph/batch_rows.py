"""Rows of a batch: which axis of each array has them, for operators whose rules say along which axes they compute.

A row of a batch is one example with all that is made of it. A graph keeps rows apart when each row of its outputs
depends on the same row of its inputs, in the same way in every batch: then batches may be padded, cut and joined.
A rule of an operator (`rows` in ops.yaml) is `def NAME(site) -> list[Rows | MixedRows | None]`, where each output has
rows; it raises MixedRows where all are mixed. `site` is a `RowSite`.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params

Shape = tuple[int, ...]
Axes = Mapping[int, int]
Rule = Callable[["RowSite"], "Sequence[Rows | MixedRows | None]"]
SIZES = 11, 13  # the batches for which shapes are compared: their multiples are rarely anything else's size
_SIZES_OF: dict[Rule, tuple[str, ...]] = {}


class MixedRows(MXNetError):
    """Rows of a batch are not kept apart, or it is not known that they are. Its text says why."""


class Rows(NamedTuple):
    """The rows of a batch of n lie along `axis`, whose extent is outer * n * inner: row i of it, seen as an array
    (outer, n, inner), is [:, i, :]."""

    axis: int
    outer: int = 1
    inner: int = 1


def by_shapes(*names: str) -> Callable[[Rule], Rule]:
    """Mark a rule that holds whatever sizes the parameters `names` have, since it looks at the shapes that follow."""
    def mark(rule: Rule) -> Rule:
        _SIZES_OF[rule] = names
        return rule

    return mark


def sizes_of(rule: Rule | None) -> tuple[str, ...]:
    """The parameters that `by_shapes` names for the rule."""
    return () if rule is None else _SIZES_OF.get(rule, ())


class RowSite:
    """What a rule sees of a node.

    params, ins, outs: parameters, and the shapes of inputs and outputs, for the first of the two sizes of a batch.
    other_params: for the second.
    rows: where each input has rows; None for one that is the same in every row: it does not depend on what is in the
    batch, and along `varied_ins`, its axes whose extents grow with the batch, all of it is equal. varied_outs: the
    axes of the outputs whose extents grow with the batch. learned: which inputs are parameters.
    """

    def __init__(self, params: tuple[Params, Params], ins: Sequence[tuple[Shape, Shape]],
                 outs: Sequence[tuple[Shape, Shape]], rows: Sequence[Rows | None], learned: Sequence[bool]):
        self.params, self.other_params = params
        self.rows, self.learned = list(rows), list(learned)
        self.ins, self.outs = [pair[0] for pair in ins], [pair[0] for pair in outs]
        self.varied_ins, self.varied_outs = [_varied(*pair) for pair in ins], [_varied(*pair) for pair in outs]

    @property
    def has_rows(self) -> bool:
        """Whether anything here depends on the batch."""
        return any(self.rows) or any(self.varied_ins) or any(self.varied_outs)

    def along(self, *axes: Axes | None, output: int = 0) -> Rows | None:
        """Where an output has rows of an operator that computes one by one along some axes: for each input, which of
        its axes is which of the output's. None, or nothing at the end: of that input no values are read.

        Raises MixedRows when an input has rows along another axis, or two have them along different ones.
        """
        found: list[Rows] = []
        reached: set[int] = set()
        for i, (rows, mine) in enumerate(zip(self.rows, axes, strict=False)):
            if mine is None:
                continue
            for axis in self.varied_ins[i] if rows is None else (rows.axis,):
                if axis not in mine:
                    raise MixedRows(f"it computes across axis {axis} of an array {self._text(i)}, which has the rows "
                                    "of the batch (N)")
                if self.ins[i][axis] != self.outs[output][mine[axis]]:
                    raise MixedRows(f"it takes a part of axis {axis} of an array {self._text(i)}, which has the rows "
                                    "of the batch (N)")
                reached.add(mine[axis])
            if rows is not None:
                found.append(rows._replace(axis=mine[rows.axis]))
        varied = self.varied_outs[output]
        if len({*found}) > 1:
            raise MixedRows("its inputs have the rows of the batch in different places")
        if not {*varied} <= reached or (found and varied != (found[0].axis,)):
            raise MixedRows(f"its result {shape_text(self.outs[output], varied)} grows with the batch (N) along other "
                            "axes than its inputs")
        return found[0] if found else None

    def everywhere(self, *axes: Axes | None) -> list[Rows | None]:
        """`along` of every output, whose axes are the same."""
        return [self.along(*axes, output=k) for k in range(len(self.outs))]

    def reshaped(self, output: int = 0, source: int = 0) -> Rows | None:
        """Where an output has rows whose elements are those of an input, in their order, in another shape.

        Raises MixedRows when its axes do not keep rows together.
        """
        rows, shape, out = self.whole(source), self.ins[source], self.outs[output]
        if rows is None:
            return self.along({}, output=output)
        before, after = _count(shape[:rows.axis]) * rows.outer, _count(shape[rows.axis + 1:]) * rows.inner
        for axis in self.varied_outs[output]:
            outer, rest = divmod(before, _count(out[:axis]))
            inner, rest_after = divmod(after, _count(out[axis + 1:]))
            if not rest and not rest_after and outer and inner and len(self.varied_outs[output]) == 1:
                return Rows(axis, outer, inner)
        raise MixedRows(f"it brings elements of several rows of {self._text(source)} together in "
                        f"{shape_text(out, self.varied_outs[output])}")

    def whole(self, source: int) -> Rows | None:
        """Where an input has rows; one that is the same in every row, and has an axis as long as the batch, has them
        there, too."""
        rows, varied = self.rows[source], self.varied_ins[source]
        if rows is None and len(varied) == 1 and self.ins[source][varied[0]] == SIZES[0]:
            return Rows(varied[0])
        return rows

    def _text(self, source: int) -> str:
        return shape_text(self.ins[source], self.varied_ins[source])


def shape_text(shape: Shape, varied: Sequence[int]) -> str:
    """A shape for the first of the two sizes, for people. varied: the axes that grow with the batch, of N rows."""
    def extent(axis: int, number: int) -> str:
        times, rest = divmod(number, SIZES[0])
        return str(number) if axis not in varied else "?" if rest else f"{times}N" if times > 1 else "N"

    return f"({', '.join(extent(axis, number) for axis, number in enumerate(shape))})"


def _varied(first: Shape, second: Shape) -> tuple[int, ...]:
    return tuple(i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)


def _count(extents: Shape) -> int:
    count = 1
    for extent in extents:
        count *= extent
    return count


def same(shape: Shape, but: Sequence[int] = ()) -> dict[int, int]:
    """Every axis of a shape as itself, but for those in `but`."""
    return {axis: axis for axis in range(len(shape)) if axis not in but}


def trailing(shape: Shape, out: Shape) -> dict[int, int]:
    """Every axis of a shape as the axis of `out` at the same distance from the end."""
    return {axis: axis + len(out) - len(shape) for axis in range(len(shape))}


def without(shape: Shape, axis: int) -> dict[int, int]:
    """Every axis of a shape but one, which the output lacks."""
    return {i: i - (i > axis) for i in range(len(shape)) if i != axis}
