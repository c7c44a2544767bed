"""Casts of arrays before operators, where automatic mixed precision is on."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from mxc.compiler.ops import table
from mxc.mixed_precision import FLOAT32, WIDEST, Rules

A = TypeVar("A")


def scaled(rules: Rules, op: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters, with the scale of the loss in those of an operator that makes its gradient."""
    if not rules.is_loss(op):
        return params
    return {**params, "grad_scale": float(params.get("grad_scale", 1.0)) * rules.scale()}


def cast(rules: Rules, op: str, arrays: Sequence[A], params: Mapping[str, Any], apply: Any) -> Sequence[A]:
    """The arrays in the dtypes in which the operator computes; `arrays` itself where they are of these. Integers and
    float64 stay as they are, and auxiliary states, which the operator changes. apply: applies an operator to arrays."""
    mixed = (rules.dtype, FLOAT32)
    dtypes: list[str] = [array._array.dtype for array in arrays]  # type: ignore[attr-defined]
    if not any(dtype in mixed for dtype in dtypes):
        return arrays
    way = rules.way(op, params)
    if way is None:
        return arrays
    if way == WIDEST:
        if len({dtype for dtype in dtypes if dtype in mixed}) == 1:
            return arrays
        wanted: list[str | None] = [FLOAT32] * len(arrays)
    else:
        wanted = [(name and rules.dtype_for(op, way, name)) or None for name in _names(op, params, len(arrays))]
    made = [apply("amp_cast", [array], {"dtype": to}) if to is not None and dtype in mixed and dtype != to else array
            for array, dtype, to in zip(arrays, dtypes, wanted, strict=True)]
    return arrays if all(new is old for new, old in zip(made, arrays, strict=True)) else made


def _names(op: str, params: Mapping[str, Any], count: int) -> list[str]:
    """Names of an operator's arrays, "" for auxiliary states."""
    known = table.get(op) if table.has(op) else None
    if known is None or known.takes_any_number:
        return ["data"] * count
    parsed = known.make_params({key: value for key, value in params.items() if value is not None})
    names, states = [*known.all_names(parsed)], known.states(parsed)
    names[states] = [""] * len(names[states])
    return names[:count]
