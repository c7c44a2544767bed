"""Sparse forms: what an operator makes of arrays that are kept in parts (storage.py).

A rule of the role "sparse", `def NAME(op, params, stypes)`, says what comes out for inputs of these storage types: a
`Form`, or None where the operator has none, so that it is given dense copies and gives dense arrays. Of dense arrays an
operator makes parts only where its parameter `stype` says so: no other rule is asked, or imported, in dense programs.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mxc.compiler.ops.storage import DEFAULT, Given, Shape

if TYPE_CHECKING:
    from mxc.compiler.ops.operator import Operator, Params


class Call(Protocol):
    """What computes an operator's sparse form: one call of it.

    op, params: the operator. inputs: arrays, and parts as `usable` gives them. shapes, dtypes: of all outputs. threads:
    how many there are to run a routine.
    """

    op: Operator
    params: Params
    inputs: Sequence[Given]
    shapes: Sequence[Shape]
    dtypes: Sequence[str]
    threads: int

    def run(self, routine: str, arrays: Sequence[np.ndarray], integers: Sequence[int], **constants: object) -> None:
        """Run a routine of kernel/compressed.py on arrays; those that it writes are C-contiguous."""

    def empty(self, shape: Shape, dtype: str | np.dtype) -> np.ndarray:
        """A new array; anything is in it."""

    def of(self, *arrays: np.ndarray) -> np.ndarray:
        """The operator's first output on dense arrays, as those of stored values are."""


@functools.lru_cache(maxsize=64)
def name_of(dtype: np.dtype) -> str:
    """The dtype's name; NumPy takes as long to make it up as a small routine runs."""
    return dtype.name


UNITS, LEAST_WORK = 64, 1 << 14  # most units of a routine; elements below which a unit does not pay for its hand-over


def block_of(count: int, inner: int) -> int:
    """How many of `count` rows, each with work on about `inner` elements, a routine's unit has."""
    return max(1, -(-count // UNITS), LEAST_WORK // max(inner, 1))


Compute = Callable[[Call], Sequence[Given]]


@dataclass(frozen=True)
class Form:
    """What an operator makes of inputs of given storage types. outs: the storage types of all outputs. compute: what
    computes them; None: nothing does, so that the operator is given dense copies. is_told: whether a warning tells of
    these."""

    outs: tuple[str, ...]
    compute: Compute | None = None
    is_told: bool = True


@functools.lru_cache(maxsize=4096)
def form_of(op: Operator, params: Params, stypes: tuple[str, ...]) -> Form:
    """What an operator makes of inputs of these storage types; where it says nothing, dense arrays of dense copies."""
    found = None
    if any(stype != DEFAULT for stype in stypes) or "stype" in params:
        rule = op.rule("sparse")
        found = None if rule is None else rule(op, params, stypes)
    return found or Form((DEFAULT,) * op.num_outputs(params))


@functools.lru_cache(maxsize=4096)
def makes_parts(op: Operator, params: Params, inputs: int) -> bool:
    """Whether an operator makes of so many dense arrays one that is kept in parts."""
    return "stype" in params and form_of(op, params, (DEFAULT,) * inputs).outs[0] != DEFAULT
