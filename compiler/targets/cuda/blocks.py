"""How kernels divide their work among the threads of blocks.

All blocks of all kernels have `threads` threads, and every kernel does its work with any number of blocks: a block goes
on with further units until all are done.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Blocks:
    """threads: of a block, a power of two. tile: rows, columns and depth of the part of a product that a block computes
    at a time, each a divisor of `threads`. each: rows and columns of the tile that a thread computes.
    most_threads: a kernel that is no product runs in up to so many threads. scratch: the bytes that all threads of a
    routine share as their private memory; what needs more has fewer threads.
    """

    threads: int
    tile: tuple[int, int, int]
    each: tuple[int, int]
    most_threads: int
    scratch: int

    def __post_init__(self) -> None:
        rows, columns, _ = self.tile
        assert rows * columns == self.threads * self.each[0] * self.each[1], self


# Not measured: what fits the registers and the shared memory of all architectures since sm_75.
GPU = Blocks(threads=128, tile=(64, 64, 16), each=(8, 4), most_threads=1 << 18, scratch=64 << 20)
# A Python thread for each of the GPU's costs far more than the arithmetic, so there are few.
SIMULATED = Blocks(threads=16, tile=(16, 16, 16), each=(4, 4), most_threads=16, scratch=64 << 20)
