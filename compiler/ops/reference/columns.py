"""The reference of im2col and col2im."""
from __future__ import annotations

import itertools
import math

import numpy as np

from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.shapes.columns import column_geometry, column_windows
from mxc.compiler.ops.table import Params

ALL = (slice(None), slice(None))  # of batch and channels


def _places(params: Params, space: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """For each tap of the kernel where it meets the windows, in padded images (N, C, *space)."""
    g = column_geometry(params)
    counts = column_windows(g, space)
    return [(*ALL, *(slice(t * d, t * d + s * (n - 1) + 1, s)
                     for t, d, s, n in zip(tap, g.dilate, g.stride, counts, strict=True)))
            for tap in itertools.product(*map(range, g.kernel))]


def im2col(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """A column for each window, a row for each channel and tap."""
    data = inputs[0]
    g = column_geometry(params)
    padded = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in g.pad)])
    rows = [padded[place].reshape(*data.shape[:2], -1) for place in _places(params, data.shape[2:])]
    return [np.stack(rows, 2).reshape(len(data), data.shape[1] * len(rows), -1)]


def col2im(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Each element of the columns added where it comes from."""
    data, size = inputs[0], tuple(params.output_size)
    g = column_geometry(params)
    taps, counts = math.prod(g.kernel), column_windows(g, size)
    columns = data.reshape(len(data), -1, taps, *counts)
    wide = np.float64 if data.dtype.kind == "f" else data.dtype
    padded = np.zeros((*columns.shape[:2], *(n + 2 * p for n, p in zip(size, g.pad, strict=True))), wide)
    for tap, place in enumerate(_places(params, size)):
        padded[place] += columns[:, :, tap]
    return [padded[(*ALL, *(slice(p, p + n) for p, n in zip(g.pad, size, strict=True)))]]
