"""Geometry of resampled images that decompositions and gradients share."""
from __future__ import annotations

from collections.abc import Sequence


def longest_windows(size: Sequence[int], out: Sequence[int]) -> tuple[int, ...]:
    """Along each axis the largest number of elements, of `size`, that one element of `out` is the mean of."""
    return tuple(max(-(-(i + 1) * n // o) - i * n // o for i in range(o)) for n, o in zip(size, out, strict=True))


def most_readers(size: Sequence[int], out: Sequence[int], align_corners: bool) -> tuple[int, ...]:
    """Along each axis the largest number of elements of `out` from the last one at or before the input element y - 1
    to the last one at or before y + 1: all that bilinear resizing computes from y are among them."""
    return tuple(max(_last(y + 1, n, o, align_corners) - max(_last(y - 1, n, o, align_corners), 0) + 1
                     for y in range(n)) for n, o in zip(size, out, strict=True))


def _last(y: int, size: int, out: int, align_corners: bool) -> int:
    """The last element of `out` that lies at or before element y of `size`; all lie before one behind the last."""
    if y >= size or size == 1:
        return out - 1 if y > 0 else 0
    if align_corners:
        return y * (out - 1) // (size - 1)
    return ((2 * y + 1) * out - size) // (2 * size)
