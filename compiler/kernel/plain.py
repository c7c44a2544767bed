"""Which library kernels compute convolutions of plain arrays with packed weights, by the target's figures."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mxc.compiler.kernel.geometry import Window

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Panels, Planes


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
    depth, written = (window.filters, window.data) if transposed else (window.channels, window.out)
    extents, copied = [], depth * window.kernel[0]
    for x in (1, 2):
        span, stride = (window.kernel[x] - 1) * window.dilate[x], window.stride[x]
        if transposed:
            further = max(0, span - window.pad[x]) // stride + (stride - 1 + window.pad[x]) // stride
            results = -(-written[x] // stride)
        else:
            further, results = span // stride, written[x]
            copied *= min(stride, span + 1)
        extents.append((results, further))
    (_, rows), (width, columns) = extents
    size = 4 if dtype == "float32" else 8
    return (math.prod(written) >= figures.fewest_pixels and width >= figures.filled * (width + columns)
            and copied * (1 + rows) * (width + columns) * size <= figures.row_bytes)
