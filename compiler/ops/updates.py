"""Operators that change a weight and its states in place: `update:` of ops.yaml, read by NumPy and by kernels.

An update is a list of lines NAME: EXPRESSION, computed in this order; a line's name stands for its value in those
below. A line with the name of an input gives a state its new value, the line `out` is the new weight, and other lines
are steps on the way. Lines over parameters alone are *numbers*: computed once, in float64, and given to the kernel as
values, so that a learning rate that changes in every step needs no new code. Arrays are computed in the widest of their
dtypes, float16 and bfloat16 as float32; inputs of a single element go with every element of the others.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from mxc.compiler.ops.expr import Reading, T, evaluate, names_of
from mxc.compiler.ops.operator import Operator

OUT = "out"


@functools.cache
def steps(op: Operator) -> dict[str, str]:
    """The lines that arrays take part in, in order."""
    known, found = {i.name for i in op.inputs}, {}
    for name, text in op.update.items():
        if names_of(text) & known or name == OUT:
            known.add(name)
            found[name] = text
    return found


@functools.cache
def number_names(op: Operator) -> tuple[str, ...]:
    """The parameters and lines without arrays that `steps` use: a kernel's values, in this order."""
    lines = steps(op)
    used = set().union(*map(names_of, lines.values())) - {i.name for i in op.inputs} - set(lines)
    return tuple(n for n in (*op.params, *op.update) if n in used)


@functools.cache
def states(op: Operator) -> tuple[str, ...]:
    """The inputs that are changed."""
    return tuple(i.name for i in op.inputs if i.name in op.update)


def compute_dtype(dtypes: Sequence[str]) -> str:
    """The dtype in which an update of arrays of these dtypes is computed."""
    return "float64" if "float64" in dtypes else "float32"


def results(op: Operator, reading: Reading[T], values: Sequence[T], given: Sequence[T], converted: Callable[[T], T],
            ) -> dict[str, T]:
    """The values of the states and of `out`, under a reading. values: of the inputs; given: of `number_names`."""
    env = dict(zip((*(i.name for i in op.inputs), *number_names(op)), (*map(converted, values), *given), strict=True))
    for name, text in steps(op).items():
        env[name] = evaluate(text, reading, env)
    return {name: env[name] for name in (*states(op), OUT)}
