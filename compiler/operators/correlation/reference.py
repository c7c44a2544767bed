"""The reference of correlation: one displacement and element of the kernel at a time, in float64."""
from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mxc.compiler.operators.correlation.shape import displacements, padding, windows
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Places = tuple[slice, ...]
WHOLE = slice(None)


def _pairs(params: Params, space: tuple[int, ...]) -> Iterator[tuple[int, Places, Places]]:
    """(displacement, what is read of the first image, what of the second)."""
    side, counts, step = displacements(params), windows(params, space), params.stride1
    for (number, moved), tap in itertools.product(enumerate(itertools.product(range(side), repeat=2)),
                                                  itertools.product(range(params.kernel_size), repeat=2)):
        starts = [(params.max_displacement + t, (m - side // 2) * params.stride2)
                  for t, m in zip(tap, moved, strict=True)]
        first, second = ([slice(s + d * far, s + d * far + (n - 1) * step + 1, step)
                          for (s, d), n in zip(starts, counts, strict=True)] for far in (0, 1))
        yield number, (WHOLE, WHOLE, *first), (WHOLE, WHOLE, *second)


def correlation(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The mean over channels and kernel of the products, or of the absolute differences."""
    pad = padding(params)
    one, two = (np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad))) for x in inputs)
    batch, channels, *space = one.shape
    out = np.zeros((batch, displacements(params) ** 2, *windows(params, tuple(space))))
    for number, first, second in _pairs(params, tuple(space)):
        a, b = one[first], two[second]
        out[:, number] += (a * b if params.is_multiply else abs(a - b)).sum(1)
    return [out / (channels * params.kernel_size ** 2)]


def correlation_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Each data gets og times the other's element; of differences, og by their sign, which is 1 for equal elements."""
    one, two, og = (x.astype(np.float64) for x in inputs)
    to_one, to_two = np.zeros(one.shape), np.zeros(two.shape)
    og = og / (one.shape[1] * params.kernel_size ** 2)
    for number, first, second in _pairs(params, one.shape[2:]):
        a, b, flowing = one[first], two[second], og[:, number, None]
        sign = np.where(a >= b, 1.0, -1.0)
        to_one[first] += flowing * (b if params.is_multiply else sign)
        to_two[second] += flowing * (a if params.is_multiply else -sign)
    return [to_one, to_two]
