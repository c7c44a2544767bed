"""Operators that give the gradient of another one's input, made from its formula when they are first asked for."""
from __future__ import annotations

import functools

from mxc.compiler.ops import table
from mxc.compiler.ops.derive import rename
from mxc.compiler.ops.expr import names_of
from mxc.compiler.ops.loader import DEFAULTS, GENERATED_RULES, texts_of
from mxc.compiler.ops.operator import InputSpec, Kind, Operator
from mxc.compiler.ops.params import ParamType, parse_type
from mxc.compiler.ops.rules import SHARED


@functools.cache
def backward_of(op: Operator, input_name: str) -> tuple[Operator, tuple[str, ...]]:
    """The operator that gives the gradient of one input, and what it takes: among "og", "out" and input names.

    Of an elementwise or broadcast operator the result has the output's shape (sum it to the input's). Of a reduction it
    takes og and out with the reduced axes kept as 1, has a parameter `count` (how many elements were reduced) besides
    the operator's, and gives a shape that broadcasts to the input's. Where the formula is `og` alone the operator is
    `_copy`, where it is 0 `zeros_like`. Raises MXNetError when a named rule (or none) gives the gradient.
    """
    formula = op.formula(input_name)
    if formula == "og":
        return table.get("_copy"), ("og",)
    if formula == "0":
        return table.get("zeros_like"), ("og",)
    used = set().union(*(names_of(text) for text in texts_of(formula)))
    inputs = ("og", *(n for n in ("out", *(i.name for i in op.inputs)) if n in used))
    # Its inputs must not be called og and out: the formulas of its own gradient use these names.
    names = {"og": _fresh("grad", op), "out": _fresh("result", op)}
    params: dict[str, ParamType] = dict(op.params)
    kind = op.kind
    if op.reduce:
        kind = Kind.BROADCAST
        params = {k: t for k, t in params.items() if k in used} | {"count": parse_type("double = 1")}
    made = Operator(
        name=f"_backward_{op.name.lstrip('_')}_{input_name}", kind=kind,
        inputs=tuple(InputSpec(names.get(n, n)) for n in inputs), params=params, expr=_renamed(formula, names),
        rules={"shape": DEFAULTS[kind]["shape"], **GENERATED_RULES}, family=SHARED, line=op.line)
    table.loaded().generated[made.name] = made
    return made, inputs


def _fresh(name: str, op: Operator) -> str:
    """The first of `name`, `name2`, `name3`, ... that is not the name of an input or parameter of the operator."""
    taken = {i.name for i in op.inputs} | set(op.params)
    return next(n for n in (name, *(f"{name}{i}" for i in range(2, len(taken) + 3))) if n not in taken)


def _renamed(formula: str | dict[str, dict[str, str]], names: dict[str, str]) -> str | dict[str, dict[str, str]]:
    if isinstance(formula, str):
        return rename(formula, names)
    return {parameter: {value: rename(text, names) for value, text in choices.items()}
            for parameter, choices in formula.items()}
