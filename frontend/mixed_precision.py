"""Automatic mixed precision: in which dtype each operator computes while it is on.

`mx.contrib.amp.init` sets `rules`. The functions and methods of arrays and symbols then ask it, and put `amp_cast` and
`amp_multicast` before the operators that compute in another dtype than their inputs have.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mxc.compiler.error import nearest
from mxc.compiler.ops import table

NARROW, FLOAT32, WIDEST = "narrow", "float32", "widest"
Conditions = Sequence[tuple[str, str, Sequence[str]]]


def main_name(name: str) -> str:
    """The name that the table has for an operator; another as it is."""
    return table.get(name).name if table.has(name) else name


def check(names: Collection[str]) -> None:
    """Raise AttributeError, as MXNet, for a name that no operator has."""
    for name in names:
        if not table.has(name):
            raise AttributeError(f"there is no operator {name!r} to choose a dtype for{nearest(name, table.names())}")


@dataclass
class Rules:
    """What is computed in which dtype. dtype: the narrow one. narrow, float32, widest: operators by name. conditions:
    operators in float32 where a parameter has one of the values. kept: inputs that stay in float32 where their operator
    is in the narrow dtype. losses: the operators whose gradients `scale` multiplies. listed: all names that MXNet's
    lists have, which are several of some operators, not always in one list: of these the main name counts, and those
    that are chosen."""

    dtype: str
    narrow: Collection[str]
    float32: Collection[str]
    widest: Collection[str]
    conditions: Conditions = ()
    kept: Mapping[str, Collection[str]] = field(default_factory=dict)
    losses: Collection[str] = ()
    scale: Callable[[], float] = float
    listed: Collection[str] = ()
    chosen: Collection[str] = ()

    def __post_init__(self) -> None:
        # What is in several lists is in the one that is cast last, just before the operator.
        self._ways = {main: way for way, names in (
            (WIDEST, self.widest), (FLOAT32, self.float32), (NARROW, self.narrow)) for name in names
            if (main := main_name(name)) == name or main not in self.listed or name in self.chosen}
        self._conditions: dict[str, list[tuple[str, Sequence[str]]]] = {}
        for name, parameter, values in self.conditions:
            self._conditions.setdefault(main_name(name), []).append((parameter, values))
        self._losses = {main_name(name) for name in self.losses}

    def way(self, op: str, params: Mapping[str, Any]) -> str | None:
        """NARROW, FLOAT32, WIDEST, or None where an operator computes in the dtypes that its inputs have. op: its name
        in the table."""
        way = self._ways.get(op)
        if way is None and any(str(params.get(parameter)) in values
                               for parameter, values in self._conditions.get(op, ())):
            return FLOAT32
        return way

    def dtype_for(self, op: str, way: str, name: str) -> str | None:
        """The dtype for an input of that name, of an operator in NARROW or FLOAT32; None where it stays as it is."""
        if way == FLOAT32:
            return FLOAT32
        return None if name in self.kept.get(op, ()) else self.dtype

    def is_loss(self, op: str) -> bool:
        """Whether the operator makes the gradient of a loss."""
        return op in self._losses


rules: Rules | None = None
