"""The state of the random generator: a seed, and how many draws were made since it was set.

Random operators are counter-based: their numbers follow from (seed, offset, index), so the state is two integers. Each
run of an executor or of an operator takes an offset of its own.
"""
from __future__ import annotations

import numpy as np

from mxc.compiler.forks import Lock
from mxc.compiler.plan import OFFSETS_PER_RUN


class _State:
    def __init__(self) -> None:
        self.lock, self.seed, self.offset = Lock(), 0, 0


_state = _State()


def seed(number: int) -> None:
    """Start the sequence of that number, of which 64 bits count."""
    with _state.lock:
        _state.seed, _state.offset = (int(number) + 2**63) % 2**64 - 2**63, 0  # an int64, as kernels read it


def take() -> tuple[int, int]:
    """(seed, offset) for one run."""
    with _state.lock:
        offset = _state.offset
        _state.offset += OFFSETS_PER_RUN
        return _state.seed, offset


def generator() -> np.random.Generator:
    """A NumPy generator for one run of the reference."""
    number, offset = take()
    return np.random.default_rng([number & (2**64 - 1), offset])
