"""What a GPU's kernels of a plan take of it, and how long each may take."""
from __future__ import annotations

from typing import Any

from mxc.compiler.targets import kernel_target
from mxc.runtime import costs, without_arrays


def report(graph: Any, grad_req: Any, is_train: bool, name: str) -> dict[str, Any]:
    """The steps of a graph's plan for a target such as "cuda:sm_90", compiled for it. Each has phase, operators,
    blocks, bytes, flops and microseconds, and those with code registers, stack, shared, occupancy and limit; library is
    the one of NVIDIA's that may take the kernel's place, or "".

    Raises TargetError for no such target, MXNetError where a kernel does not compile."""
    target: Any = kernel_target(name)
    compiled = without_arrays.compiled(graph, grad_req, is_train, target)
    steps = []
    for step in compiled.plan.steps:
        moved = costs.moved(compiled.plan, step)
        row: dict[str, Any] = {"phase": step.phase, "operators": step.label, "blocks": step.units, "bytes": moved,
                               "flops": step.flops, "library": ""}
        if step.kernel:
            row["library"] = target.library(compiled.kernels[step.kernel], step.values)
        if step.kernel in compiled.library.codes:
            row |= target.usage(compiled.library.codes[step.kernel])
            row["microseconds"] = 1e6 * target.seconds(moved, step.flops, step.units)
        steps.append(row)
    runs = [row for row in steps if row["phase"] != "prepare"]
    return {"target": name, "machine": target.machine, "steps": steps,
            "microseconds": sum(row.get("microseconds", 0.0) for row in runs),
            "without_code": [row["operators"] for row in steps if "registers" not in row]}
