"""How long a kernel takes on a GPU, by what it moves and computes. Nothing of it has been compared with a GPU yet.

A kernel takes as long as its bytes take through memory, or its multiplications and additions, whichever is longer, and
a launch. A multiprocessor computes a block at a time at least, so that few blocks use a part of the GPU only. A sum
that is divided among blocks is two kernels: one of many blocks, and one that moves the parts' sums.
"""
from __future__ import annotations

from dataclasses import dataclass

from mxc.compiler.error import TargetError

MEMORY, ARITHMETIC = 0.8, 0.5  # assumed: the shares of a GPU's peaks that kernels come to
LAUNCH = 3e-6  # assumed: seconds from the end of one kernel to the beginning of the next one


@dataclass(frozen=True)
class Machine:
    """A GPU by its data sheet. bandwidth: bytes of memory in a second. flops: of float32 in a second."""

    name: str
    multiprocessors: int
    bandwidth: float
    flops: float


MACHINES = {80: Machine("A100 SXM 40 GB", 108, 1.555e12, 19.5e12), 90: Machine("H100 SXM", 132, 3.35e12, 66.9e12),
            100: Machine("B200", 148, 8e12, 75e12)}


def machine(arch: str) -> Machine:
    """The GPU of an architecture that times are told for. Raises TargetError where there is none."""
    found = MACHINES.get(int(arch[3:]))
    if found is None:
        known = ", ".join(f"sm_{number}" for number in MACHINES)
        raise TargetError(f"cuda:{arch}: times are told for {known} only")
    return found


def seconds(on: Machine, moved: int, flops: int, blocks: int) -> float:
    """The time of a kernel that moves so many bytes, and has so many multiplications and additions, in `blocks`
    blocks."""
    share = min(1.0, blocks / on.multiprocessors)
    return max(moved / (on.bandwidth * MEMORY * share), flops / (on.flops * ARITHMETIC * share)) + LAUNCH
