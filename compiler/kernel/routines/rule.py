"""What a routine rule sees and says: `def NAME(c, params) -> RoutineCall`, named in ops.yaml under `routine:`.

c: `shape(k)` and `dtype(k)` of the inputs, `out_shapes` and `out_dtypes` of all outputs, which the routine writes in
their order. Without such a rule an opaque operator is a host step.

A routine that may refuse what it reads has one more output, an int64 that is 0 before it runs. It writes there the
number of a text of `refusals`, from 1 on, plus 256 times an integer of up to 55 bits that the text tells; -2^54 stands
for NaN.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Shape = tuple[int, ...]


class RoutineNode(Protocol):
    """What a routine rule sees of its node: shapes and dtypes of its inputs, by position, and of all its outputs."""

    out_shapes: Sequence[Shape]
    out_dtypes: Sequence[str]

    def shape(self, k: int) -> Shape: ...

    def dtype(self, k: int) -> str: ...


@dataclass(frozen=True)
class RoutineCall:
    """A routine with its run-time integers and its constants, in the routine's order and by its names. refusals: of a
    routine that may refuse what it reads, texts with `{}` for a number, and whether they are of an IndexError."""

    routine: str
    integers: tuple[int, ...]
    constants: tuple[tuple[str, object], ...]
    refusals: tuple[tuple[str, bool], ...] = ()


def call(routine: str, integers: Sequence[int], **constants: object) -> RoutineCall:
    """The call of a routine: `call("argsort", (rows, n), ascending=True)`."""
    return RoutineCall(routine, tuple(integers), tuple(sorted(constants.items())))
