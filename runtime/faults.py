"""The runtime's part of faults: what kernels of a program's own functions raised (compiler/functions/faults.py), and
what routines refused (compiler/kernel/routines/rule.py), after a run."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from mxc.compiler.functions.faults import Faults
from mxc.compiler.plan import Plan, Refusals, Step, layers_text

STATUS = 8  # bytes of each


class Named(Protocol):
    """What knows the names of its model's nodes."""

    @property
    def names(self) -> list[str]: ...


class Raising(NamedTuple):
    """A kernel that may raise. step: the step that it is, or the outermost loop that it is inside of. shapes: of its
    arrays. status: which of the plan's statuses it writes."""

    step: Step
    faults: Faults | Refusals
    shapes: Sequence[tuple[int, ...]]
    status: int


def raising(plan: Plan, steps: Iterable[Step]) -> list[Raising]:
    """What may raise in these steps of a plan, in order."""
    found = []
    for step in steps:
        for faults, shapes, buffer in _inside(plan, step):
            found.append(Raising(step, faults, shapes, plan.buffers[buffer].offset // STATUS))
    return found


def _inside(plan: Plan, step: Step) -> Iterator[tuple[Faults | Refusals, Sequence[tuple[int, ...]], int]]:
    """(faults, shapes of the arrays, position of the status among the plan's buffers) of what may raise in a step."""
    if step.faults is not None:
        yield step.faults, [plan.buffers[i].shape for i in step.buffers[:-1]], step.buffers[-1]
    if step.loop is not None:
        inner = step.loop.plan
        for each in inner.steps:
            for faults, shapes, buffer in _inside(inner, each):
                yield faults, shapes, step.buffers[int(inner.buffers[buffer].name)]


def check(found: Iterable[Raising], statuses: np.ndarray, compiled: Named | None = None) -> None:
    """Raise the MXNetError of the first kernel that wrote a status. statuses: int64, the pool "status". compiled: of a
    model, whose layers the error names."""
    for step, faults, shapes, place in found:
        status = int(statuses[place])
        if status:
            error = faults.error(status, shapes)
            where = f"node {layers_text(step.layers(compiled.names))!r}: " if compiled is not None else ""
            raise type(error)(f"{where}{error}")
