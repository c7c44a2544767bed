"""MXNet's `mx.random`: `uniform` and so on as in `mx.nd.random`, and their generator's seed (runtime/random.py)."""
from __future__ import annotations

import numbers

from mxc.compiler.error import ArgumentError
from mxc.context import Context
from mxc.ndarray.random import (
    exponential,
    gamma,
    generalized_negative_binomial,
    multinomial,
    negative_binomial,
    normal,
    poisson,
    randint,
    randn,
    shuffle,
    uniform,
)
from mxc.runtime import random as state
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"": "ctypes", "mxc.base": "_LIB check_call integer_types"})
__all__ = ["Context", "exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial",
           "normal", "poisson", "randint", "randn", "seed", "shuffle", "uniform", *_names]


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Start the sequence of random numbers that `seed_state` stands for: on all devices, on each another one; or on one
    device `ctx`, where it then is the same as on any other that is seeded alone. Raises ValueError for what is no
    whole number, and for a ctx that is neither "all" nor a Context."""
    if not isinstance(seed_state, numbers.Integral):
        raise ArgumentError(f"seed_state must be a whole number, got {seed_state!r}")
    if ctx != "all" and not isinstance(ctx, Context):
        raise ArgumentError(f"ctx must be 'all' or a Context, got {ctx!r}")
    state.seed(int(seed_state), None if isinstance(ctx, str) else ctx)
