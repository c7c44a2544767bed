"""The reference of pooling, computed window by window.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from mxc.compiler.operators.pooling.shape import pooled, windows
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Place = tuple[slice | int, ...]


def pooling_v1(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Pooling of the data with zeros around it; an average divides by the kernel's size."""
    data = inputs[0]
    changes: dict[str, object] = {"pad": ()}
    if not params.global_pool:
        data = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in params.pad or (0, 0))])
        changes["pool_type"] = "sum" if params.pool_type == "avg" else params.pool_type
    (out,) = pooling(Params({**params, **changes}), [data], is_train, rng)
    if params.pool_type == "max" and not params.global_pool:  # A window that begins behind the data has no element.
        for axis, stride in enumerate(params.stride or (1, 1), 2):
            np.moveaxis(out, axis, 0)[np.arange(out.shape[axis]) * stride >= data.shape[axis]] = -np.inf
    return [out / math.prod(params.kernel) if params.pool_type == "avg" and not params.global_pool else out]


def _windows(params: Params, shape: tuple[int, ...]) -> Iterator[tuple[Place, Place, int]]:
    """(the output's place, the window's place in the data, divisor of the average) of every window.

    The divisor counts the window clipped to the padded data, or with count_include_pad=False to the data.
    """
    w = windows(params, shape)
    out = pooled(params, shape)
    around: Place = (slice(None),) * w.first
    rest: Place = (slice(None),) * (len(shape) - w.first - len(w.kernel))
    sizes = shape[w.first:w.first + len(w.kernel)]
    include = params.get("count_include_pad") in (None, True)
    for place in itertools.product(*(range(n) for n in out[w.first:w.first + len(w.kernel)])):
        window: list[slice] = []
        divisor = 1
        for at, k, s, p, n in zip(place, w.kernel, w.stride, w.pad, sizes, strict=True):
            start = at * s - p
            end = min(start + k, n + p)
            inside = slice(max(start, 0), max(min(end, n), 0))
            divisor *= end - start if include else inside.stop - inside.start
            window.append(inside)
        yield (*around, *place, *rest), (*around, *window, *rest), divisor


def _lowest(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


def pooling(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The maximum, average, sum or p-norm (sum x^p)^(1/p) of each window; padding counts in the average's divisor.

    A window beyond the image, which the `full` convention can have, has the lowest number as its maximum, else 0.
    """
    data = inputs[0].astype(np.float64)
    out = np.zeros(pooled(params, data.shape))
    axes = tuple(range(windows(params, data.shape).first, windows(params, data.shape).first + data.ndim - 2))
    for place, window, divisor in _windows(params, data.shape):
        part = data[window]
        if math.prod(part.shape[a] for a in axes) == 0:  # Beyond the image MXNet's initial value is the result.
            out[place] = _lowest(inputs[0].dtype) if params.pool_type == "max" else 0
        elif params.pool_type == "max":
            out[place] = part.max(axes)
        elif params.pool_type == "lp":
            power = params.p_value
            assert isinstance(power, int)
            total = (part**power).sum(axes)  # MXNet takes no absolute values either.
            out[place] = np.cbrt(total) if power == 3 else total ** (1 / power)
        else:
            out[place] = part.sum(axes) / (divisor if params.pool_type == "avg" else 1)
    return [out]


def max_pool_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                  ) -> list[np.ndarray]:
    """Each window's gradient goes to its first largest number, or to its first element where all are NaN."""
    data, grad = inputs[0], inputs[1].astype(np.float64)
    w = windows(params, data.shape)
    moved = range(w.first, w.first + data.ndim - 2)
    out = np.zeros(data.shape)
    for place, window, _ in _windows(params, data.shape):
        part = np.moveaxis(data[window], moved, range(-len(moved), 0))
        lead = part.shape[:2]
        if not part.size:
            continue
        flat = part.reshape(*lead, -1)
        largest = (flat == np.where(np.isnan(flat), -math.inf, flat).max(-1, keepdims=True)).argmax(-1)
        chosen = np.zeros((*lead, math.prod(part.shape[2:])))
        np.put_along_axis(chosen, largest[..., None], grad[place][..., None], -1)
        out[window] += np.moveaxis(chosen.reshape(part.shape), range(-len(moved), 0), moved)
    return [out]


def avg_pool_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                  ) -> list[np.ndarray]:
    """Average and sum: each window's gradient, over the divisor for the average, goes to all of its elements."""
    grad = inputs[0].astype(np.float64)
    shape = tuple(params.shape)
    first = windows(params, shape).first
    out = np.zeros(shape)
    for place, window, divisor in _windows(params, shape):
        if not out[window].size:
            continue
        share = grad[place] / (divisor if params.pool_type == "avg" else 1)
        out[window] += np.expand_dims(share, tuple(range(first, first + len(shape) - 2)))
    return [out]
