"""The runtime's part of faults: what kernels of a program's own functions raised, after a run
(compiler/functions/faults.py)."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.plan import Plan, Step, layers_text

STATUS = 8  # bytes of each


class Named(Protocol):
    """What knows the names of its model's nodes."""

    @property
    def names(self) -> list[str]: ...


def raising(steps: Iterable[Step]) -> list[Step]:
    """Those of the steps that may raise."""
    return [step for step in steps if step.faults is not None]


def check(plan: Plan, steps: Iterable[Step], statuses: np.ndarray, compiled: Named | None = None) -> None:
    """Raise the MXNetError of the first of these steps that wrote one. statuses: int64, the pool "status". compiled:
    of a model, whose layers the error names."""
    for step in steps:
        status = int(statuses[plan.buffers[step.buffers[-1]].offset // STATUS])
        if status:
            assert step.faults is not None
            error = step.faults.error(status, [plan.buffers[i].shape for i in step.buffers[:-1]])
            where = f"node {layers_text(step.layers(compiled.names))!r}: " if compiled is not None else ""
            raise MXNetError(f"{where}{error}")
