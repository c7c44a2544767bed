"""How long the phases of a plan take, about: what the engine does with work depends on it (see `engine.place`)."""
from __future__ import annotations

import math

from mxc.compiler.functions.faults import Faults
from mxc.compiler.plan import Plan, Step
from mxc.runtime import engine

SPEED = 25e9  # bytes in a second that kernels move, about
SMALL_COST = 1 << 21  # bytes, which a cache holds: a phase that moves fewer takes no longer than a hand-over
FLOPS_PER_BYTE = 4  # operations of a product that take as long as moving a byte
START = 50_000  # bytes that could be moved in the time that it takes to start a step


def of_run(plan: Plan) -> int:
    """How long a run for inference takes, about, as the bytes that could be moved in that time, whatever runs in it."""
    return sum(START + moved(plan, step) + step.flops // FLOPS_PER_BYTE for step in plan.steps_of("forward"))


def of_phase(plan: Plan, phase: str) -> float:
    """How long the phase takes, about, as the bytes that could be moved in that time; infinite where Python or a
    function of the program's own runs in it."""
    steps = plan.steps_of(phase)
    cost = sum(moved(plan, step) + step.flops // FLOPS_PER_BYTE for step in steps)
    return math.inf if any(step.host is not None or isinstance(step.faults, Faults) for step in steps) else cost


def moved(plan: Plan, step: Step) -> int:
    """The bytes that a step reads and writes; a loop in all of its rounds."""
    if step.loop is not None:
        return step.loop.length * sum(moved(step.loop.plan, inner) for inner in step.loop.plan.steps[step.loop.once:])
    return sum(plan.buffers[i].nbytes for i in (*step.reads, *step.writes))


def is_small(cost: float) -> bool:
    """Whether that takes less than a hand-over to another thread."""
    return cost < SMALL_COST


def is_brief(cost: float) -> bool:
    """Whether that takes less than `engine.BRIEF`."""
    return cost < engine.BRIEF * SPEED
