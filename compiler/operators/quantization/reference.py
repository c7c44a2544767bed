"""The reference of quantization, in float32 as MXNet's oneDNN computes it.

A number x of a range is round(x * scale), halves to the even number, kept within the dtype; the scale is LEVELS[dtype],
or FULL[dtype] for some operators, over the largest absolute number of the range. There is no zero point.
"""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.quantization import shape
from mxc.compiler.operators.quantization.shape import calibrated, out_type
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]
Number = np.float32
LEVELS = {dtype: Number(level) for dtype, level in shape.LEVELS.items()}
FULL = {dtype: Number(level) for dtype, level in shape.FULL.items()}
INT32_LEVELS = Number(shape.INT32_LEVELS)
EPS = 1e-4  # what smoothing gives to an empty bin


def largest(low: np.ndarray | float, high: np.ndarray | float) -> Number:
    """The largest absolute number of a range."""
    return Number(max(abs(Number(np.ravel(low)[0])), abs(Number(np.ravel(high)[0]))))


def saturated(values: np.ndarray, dtype: str) -> np.ndarray:
    """Rounded and kept within int8 or uint8. NaN, of a range without numbers, is 127 and 0."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    kept = np.clip(np.rint(values), low, high)
    return np.where(np.isnan(kept), high if dtype == "int8" else low, kept).astype(dtype)


def numbers(*values: float | np.floating | np.ndarray) -> Arrays:
    """Arrays of one number of float32."""
    return [np.full(1, np.ravel(value)[0], np.float32) for value in values]


def _quantized(data: np.ndarray, low: float, high: float, dtype: str, levels: dict[str, Number]) -> Arrays:
    most = largest(low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = saturated(data * (levels[dtype] / most), dtype)
    return [made, *(numbers(-most, most) if dtype == "int8" else numbers(low, high))]


def quantize(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Data in the range that is given as arrays."""
    data, low, high = inputs
    return _quantized(data, low[0], high[0], params.out_type, FULL)


def quantize_v2(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Data in the range of the parameters, or in its own. What is quantized already stays as it is, its bytes too."""
    (data,), dtype, span = inputs, out_type(params), calibrated(params)
    if data.dtype != np.float32:
        own = (0, LEVELS["uint8"]) if data.dtype == np.uint8 else (-LEVELS["int8"], LEVELS["int8"])
        return [data.view(dtype), *numbers(*(span or own))]
    low, high = span or (data.min(), data.max())
    return _quantized(data, low, high, dtype, LEVELS)


def quantize_asym(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Data in the range of the parameters, or in its own, from 0 to 255."""
    (data,), span = inputs, calibrated(params)
    low, high = map(Number, span or (data.min(), data.max()))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = FULL["uint8"] / (high - low)
        shift = FULL["uint8"] - high * factor
        return [saturated(data * factor + shift, "uint8"), *numbers(factor, shift)]


def requantize(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """int32 of one range in 8 bits of another: that of the parameters, or the data's own."""
    data, low, high = inputs
    dtype, span = out_type(params), calibrated(params)
    unit = largest(low, high) / INT32_LEVELS
    real = data.astype(np.float32)
    most = largest(*span) if span else largest(real.min() * unit, real.max() * unit)
    with np.errstate(divide="ignore", invalid="ignore"):
        made = saturated(real * (FULL[dtype] / most * unit), dtype)
    return [made, *numbers(-most if dtype == "int8" else 0, most)]


def dequantize(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Numbers of 8 bits times the unit of their range."""
    data, low, high = inputs
    return [data.astype(np.float32) * (largest(low, high) / LEVELS[data.dtype.name])]



def calibrate_entropy(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The threshold from which on numbers are best cut off, and how far the distribution is off then.

    For each threshold, from `num_quantized_bins` bins in the middle up to all: what is cut off is added to the
    outermost bins (p). The bins between are merged to `num_quantized_bins`, each spread again over those of its bins
    that have something (q; the first bin is left out, as in MXNet). The best threshold has the least relative entropy
    sum p log(p / q), empty bins given a little of the others. Sums are of float32, one after the other.
    """
    hist, edges = (a.astype(np.float32) for a in inputs)
    wanted = params.num_quantized_bins
    middle, fewest = len(hist) // 2, wanted // 2
    divergences = []
    for reach in range(fewest, middle + 1):
        first, last = middle - reach, middle + reach + 1
        inner, p = hist[first:last].copy(), hist[first:last].copy()
        p[0], p[-1] = _total(hist[:first + 1]), _total(hist[last - 1:])
        inner[0] = 0
        divergences.append(_divergence(p, _spread(inner, wanted, p)))
    best = int(np.argmin(divergences))
    return numbers(edges[middle + fewest + best + 1], divergences[best])


def _total(values: np.ndarray) -> Number:
    """The sum of float32, one after the other."""
    return Number(np.cumsum(values, dtype=np.float32)[-1])


def _spread(inner: np.ndarray, wanted: int, p: np.ndarray) -> np.ndarray:
    """Bins merged to `wanted`, the last of which takes the rest, and each spread over its bins that are not empty."""
    width = len(inner) // wanted
    starts = np.arange(wanted) * width
    whole = np.cumsum(inner[:wanted * width].reshape(wanted, width), axis=1, dtype=np.float32)[:, -1]
    whole[-1] = _total(inner[starts[-1]:])
    filled = np.add.reduceat((inner != 0).astype(np.int64), starts)
    each = np.divide(whole, filled, out=np.zeros(wanted, np.float32), where=filled > 0, casting="unsafe")
    sizes = np.diff([*starts, len(inner)])
    return np.where(p == 0, 0, np.repeat(each.astype(np.float32), sizes))


def _smoothed(values: np.ndarray) -> np.ndarray | None:
    """EPS in each empty bin, taken from the others; None where these are too few."""
    empty = values == 0
    count, others = int(empty.sum()), int((~empty).sum())
    if not others or Number(EPS) * count / others >= 1:
        return None
    return np.where(empty, Number(EPS), values - Number(EPS) * Number(count) / Number(others)).astype(np.float32)


def _divergence(p: np.ndarray, q: np.ndarray) -> Number:
    left, right = _smoothed(p), _smoothed(q)
    if left is None or right is None:
        return Number(np.inf)
    left, right = left / _total(left), right / _total(right)
    with np.errstate(all="ignore"):
        return Number((left * np.log(left / right)).sum(dtype=np.float64))
