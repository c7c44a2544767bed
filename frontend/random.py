"""The random generator's seed: `mx.random.seed`."""
from __future__ import annotations

from mxc.runtime import random as state
from mxc.runtime.context import Context


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Start the sequence of random numbers that `seed_state` stands for.

    ctx: accepted as MXNet has it; one sequence serves all devices, so their numbers follow from the seed alone.
    """
    state.seed(seed_state)
