"""Whether a plan that was read from a file keeps to its memory and names what is there."""
from __future__ import annotations

from collections.abc import Container, Sequence

from mxc.compiler.plan import Buffer, Loop, Plan, Step


def check_plan(plan: Plan, kernels: Container[str]) -> None:
    """Raise ValueError for a plan whose buffers are not inside of its memory, or whose steps name what is not there.

    kernels: keys of those that are there.
    """
    sizes = {"arena": plan.arena_bytes, "prepared": plan.prepared_bytes, "status": plan.status_bytes}
    for buffer in plan.buffers:
        if buffer.nbytes < 0 or buffer.offset < 0 or buffer.offset + buffer.nbytes > sizes.get(
                buffer.pool, buffer.offset + buffer.nbytes):
            raise ValueError(f"a buffer is at {buffer.offset} in {buffer.pool}")
    _check_steps(plan, kernels)


def _check_steps(plan: Plan, kernels: Container[str]) -> None:
    everywhere = range(len(plan.buffers))
    for step in plan.steps:
        if step.host is None and step.loop is None and step.kernel not in kernels:
            raise ValueError(f"there is no kernel {step.kernel}")
        if any(key not in kernels or at not in range(len(step.values)) for at, key in step.calls):
            raise ValueError(f"a step of {step.label} calls what is not there")
        if any(i not in everywhere for i in (*step.buffers, *step.reads, *step.writes)):
            raise ValueError(f"a step of {step.label} has a buffer that is not there")
        if step.loop is not None:
            _check_loop(step, step.loop, [plan.buffers[i] for i in step.buffers], kernels)


def _check_loop(step: Step, loop: Loop, around: Sequence[Buffer], kernels: Container[str]) -> None:
    plan, fine = loop.plan, len(around) > 0
    fine &= len(loop.moves) == len(plan.buffers) and loop.length > 0
    fine &= 0 <= loop.once <= loop.once + loop.tests <= len(plan.steps)
    fine &= -1 <= loop.flag < len(plan.buffers) and all(s.host is None for s in plan.steps)
    for buffer, move in zip(plan.buffers, loop.moves, strict=False):
        if not fine or buffer.pool not in ("outside", "arena"):
            raise ValueError(f"the loop of {step.label} is damaged")
        place = int(buffer.name) if buffer.pool == "outside" else len(around) - 1
        fine &= 0 <= place < len(around) and buffer.nbytes >= 0
        ends = buffer.offset, buffer.offset + move * (loop.length - 1)
        fine &= fine and min(ends) >= 0 and max(ends) + buffer.nbytes <= around[place].nbytes
    fine &= all(0 <= i < len(plan.buffers) and 0 <= byte <= plan.buffers[i].nbytes - 8 for i, byte, _ in loop.counts)
    if not fine or (loop.flag >= 0 and plan.buffers[loop.flag].nbytes < 4):
        raise ValueError(f"the loop of {step.label} is damaged")
    _check_steps(plan, kernels)
