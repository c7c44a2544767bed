"""Geometry of resampled images that decompositions and gradients share."""
from __future__ import annotations

from collections.abc import Sequence


def longest_windows(size: Sequence[int], out: Sequence[int]) -> tuple[int, ...]:
    """Along each axis the largest number of elements, of `size`, that one element of `out` is the mean of."""
    return tuple(max(-(-(i + 1) * n // o) - i * n // o for i in range(o)) for n, o in zip(size, out, strict=True))
