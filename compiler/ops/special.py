"""Special functions of the reference, element by element from Python's math module; results in the argument's dtype."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772  # Klambauer et al., Self-Normalizing Networks, 2017


def _elementwise(one: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    def function(x: np.ndarray) -> np.ndarray:
        x = np.asarray(x)
        return np.array([one(float(v)) for v in x.ravel()], "float64").reshape(x.shape).astype(x.dtype)

    return function


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if math.isnan(x) or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


def _lgamma(x: float) -> float:
    if x <= 0 and x == math.floor(x):
        return math.inf
    return math.lgamma(x)


def _digamma(x: float) -> float:
    """By recurrence to x >= 10, then the asymptotic series; reflection below 0 (Abramowitz and Stegun 6.3)."""
    if math.isnan(x) or x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.nan
    if x < 0:
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    s = 1 / (x * x)
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - tail


def _erfinv(y: float) -> float:
    """Winitzki's approximation, then Newton steps on erf (on erfc where erf is near 1)."""
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y == 0:
        return y
    a = 0.147
    log_term = math.log1p(-y * y)
    half = 2 / (math.pi * a) + log_term / 2
    x = math.sqrt(math.sqrt(half * half - log_term / a) - half)
    target = abs(y)
    for _ in range(4):
        error = (1 - target) - math.erfc(x) if target > 0.5 else math.erf(x) - target
        x -= error / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return math.copysign(x, y)


erf = _elementwise(math.erf)
erfinv = _elementwise(_erfinv)
gamma = _elementwise(_gamma)
lgamma = _elementwise(_lgamma)
digamma = _elementwise(_digamma)
