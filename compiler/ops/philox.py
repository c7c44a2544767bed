"""The counter-based random generator by NumPy: Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011).

key = seed, counter = (index, offset); only the first of the four words is used. `kernel/philox.py` writes the same
generator as arithmetic of kernels, so a reference draws the very numbers that compiled code draws.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PHILOX = (0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85)  # two multipliers, two increments of the key
ROUNDS = 10
TURN = 40  # bits: index = element + (draw << TURN), so that no two elements share an index (below 2^40 elements)


def words(seed: np.ndarray | int, offset: np.ndarray | int, index: np.ndarray | int) -> np.ndarray:
    """uint32 of the generator at each index; all three are integers of 64 bits."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)

    def halves(x: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
        u = np.asarray(x).astype(np.uint64)
        return u & mask, u >> half

    (c0, c1), (c2, c3), (k0, k1) = halves(index), halves(offset), halves(seed)
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(PHILOX[0]), c2 * np.uint64(PHILOX[1])
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ k0, p1 & mask, (p0 >> half) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + np.uint64(PHILOX[2])) & mask, (k1 + np.uint64(PHILOX[3])) & mask
    return c0.astype(np.uint32)


def uniform(key: np.ndarray | tuple[int, int], index: np.ndarray | int, draw: np.ndarray | int = 0) -> np.ndarray:
    """float64 numbers in [0, 1) of 53 bits, each made of two words: the `draw`-th number of each index. key: seed and
    offset."""
    place = np.asarray(index, np.int64) + (np.asarray(draw, np.int64) << (TURN + 1))
    high, low = words(key[0], key[1], place), words(key[0], key[1], place + (1 << TURN))
    return ((high >> np.uint32(5)) * 2.0**26 + (low >> np.uint32(6))) * 2.0**-53


class Draws:
    """The random numbers of one run: each random operator takes the next stream, as it does in a compiled graph.

    seed, offset: 64-bit integers that the run was given.
    """

    def __init__(self, seed: int = 0, offset: int = 0):
        self.seed, self.offset, self.streams = int(seed), int(offset), 0

    def key(self, stream: int | None = None) -> np.ndarray:
        """Seed and offset of a stream of the run (None: the next one), int64."""
        if stream is None:
            stream = self.streams
            self.streams += 1
        return np.array([self.seed, self.offset + stream], np.int64)

    def random(self, shape: Sequence[int], dtype: str = "float32", stream: int | None = None) -> np.ndarray:
        """Uniform numbers in [0, 1), of 24 bits in float32 and of 53 in float64, from a stream as in `key`."""
        key, index = self.key(stream), np.arange(np.prod(shape, dtype=np.int64))
        if dtype == "float64":
            return uniform(key, index).reshape(shape)
        return ((words(key[0], key[1], index) >> np.uint32(8)) * np.float32(2.0**-24)).astype(np.float32).reshape(shape)
