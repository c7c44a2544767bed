"""The runtime's part of faults: what kernels of a program's own functions raised, after a run
(compiler/functions/faults.py)."""
from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mxc.compiler.plan import Plan, Step

STATUS = 8  # bytes of each


def raising(steps: Iterable[Step]) -> list[Step]:
    """Those of the steps that may raise."""
    return [step for step in steps if step.faults is not None]


def check(plan: Plan, steps: Iterable[Step], statuses: np.ndarray) -> None:
    """Raise the MXNetError of the first of these steps that wrote one. statuses: int64, the pool "status"."""
    for step in steps:
        status = int(statuses[plan.buffers[step.buffers[-1]].offset // STATUS])
        if status:
            assert step.faults is not None
            raise step.faults.error(status, [plan.buffers[i].shape for i in step.buffers[:-1]])
