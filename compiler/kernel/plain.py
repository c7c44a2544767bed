"""Which library kernels compute convolutions of plain arrays with packed weights, by the target's figures."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mxc.compiler.kernel.geometry import Window

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Filters, Panels, Planes


def is_pointwise(window: Window[int]) -> bool:
    """Whether the window has one tap, and a result for each pixel."""
    return {*window.kernel, *window.stride} == {1} and not any(window.pad)


def fits_panels(window: Window[int], dtype: str, figures: Panels | None) -> bool:
    """Whether `panel_convolution` can compute a window, and is faster than `convolution` by the target's figures.

    `convolution` is the faster one on small maps, where its panels hold pixels of several images, and for many
    channels, where it packs what all their taps read at once.
    """
    if figures is None:
        return False
    one_tap = set(window.kernel) == {1}
    plane = window.data[0] == window.out[0] == window.kernel[0] == 1 and window.out[2] <= figures.longest_row
    few = one_tap or window.channels <= figures.few_channels
    return dtype in ("float32", "float64") and math.prod(window.out) >= figures.fewest_pixels and (
        is_pointwise(window) or (plane and few))


def fits_planes(window: Window[int], dtype: str, figures: Planes | None, transposed: bool = False) -> bool:
    """Whether `plane_convolution` (transposed: `plane_data_grad`) is the fastest kernel for a window.

    It is not where few of the pixels that it counts through are results, nor where the data of few rows are so many
    that they leave the cache.
    """
    if figures is None or dtype not in ("float32", "float64") or {*window.kernel, *window.stride} == {1}:
        return False
    width, more = _axis(window, 2, transposed)
    return (math.prod(window.data if transposed else window.out) >= figures.fewest_pixels
            and width >= figures.filled * (width + more)
            and _row_bytes(window, dtype, transposed) <= figures.row_bytes)


def filter_block(window: Window[int], dtype: str, figures: Filters | None, lanes: int, transposed: bool = False) -> int:
    """With how many filters in a block `filter_convolution` (transposed: `filter_data_grad`) is the fastest kernel for
    a window: two vectors of `lanes`, or one. 0: it is not, as the filters do not fill vectors, there are few pixels,
    what each sums up is soon done beside the way of its result, or the data of few rows leave the cache."""
    if figures is None or dtype not in ("float32", "float64") or {*window.kernel, *window.stride} == {1}:
        return 0
    made, written = (window.channels, window.data) if transposed else (window.filters, window.out)
    depth = math.prod(window.kernel) * window.channels
    if transposed:
        depth = math.prod(window.kernel) * window.filters // math.prod(window.stride)
    fits = (math.prod(written) >= figures.fewest_pixels and depth >= figures.shortest_sum
            and _row_bytes(window, dtype, transposed) <= figures.row_bytes)
    return next((block for block in (2 * lanes, lanes) if made % block == 0), 0) if fits else 0


def plane_waste(window: Window[int], lanes: int) -> float:
    """How many multiply-adds `plane_convolution` does for each result's place beyond those of the result: it also
    counts through pixels that are no results."""
    (height, _), (width, more) = (_axis(window, x, False) for x in (1, 2))
    counted = -(-((height - 1) * (width + more) + width) // lanes) * lanes
    return window.channels * math.prod(window.kernel) * (counted / (height * width) - 1)


def _row_bytes(window: Window[int], dtype: str, transposed: bool) -> int:
    """The bytes that one row of results reads of the copy of the data."""
    copied = (window.filters if transposed else window.channels) * window.kernel[0] * (4 if dtype == "float32" else 8)
    (_, more_rows), (width, more) = (_axis(window, x, transposed) for x in (1, 2))
    if not transposed:
        copied *= math.prod(min(s, (k - 1) * d + 1) for s, k, d in zip(
            window.stride[1:], window.kernel[1:], window.dilate[1:], strict=True))
    return copied * (1 + more_rows) * (width + more)


def _axis(window: Window[int], x: int, transposed: bool) -> tuple[int, int]:
    """On an axis: the results of a phase, and how many more pixels it counts through."""
    span, stride, pad = (window.kernel[x] - 1) * window.dilate[x], window.stride[x], window.pad[x]
    if not transposed:
        return window.out[x], span // stride
    return -(-window.data[x] // stride), max(0, span - pad) // stride + (stride - 1 + pad) // stride
