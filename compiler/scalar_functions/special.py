"""Functions that NumPy lacks, element by element from Python's math module: the reference. Results have the argument's
dtype."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # B2, B4, ...
ORDERS = (1, 2, 3, 4)  # the orders of the polygamma functions that expressions may call


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
        return math.copysign(math.inf, x)


def _lgamma(x: float) -> float:
    if x == -math.inf or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


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


def asymptotic_terms(order: int) -> tuple[float, ...]:
    """a_0, a_1, ... with which |polygamma(z)| is 1 / z**order * (a_0 + order! / (2 z) + a_1 / z**2 + a_2 / z**4 + ...)
    for large z (Abramowitz and Stegun 6.4.11). From z = 10 on that is exact in float64."""
    count = math.factorial
    return float(count(order - 1)), *(b * count(2 * k + order - 1) / count(2 * k) for k, b in enumerate(BERNOULLI, 1))


def cotangent_terms(order: int) -> tuple[float, ...]:
    """The derivative of that order of cot(x) as a polynomial in cot(x), from its lowest power: cot' = -1 - cot**2."""
    terms = [0.0, 1.0]
    for _ in range(order):
        slopes = [k * c for k, c in enumerate(terms)][1:]
        terms = [-a - b for a, b in zip([*slopes, 0.0, 0.0], [0.0, 0.0, *slopes], strict=True)]
    return tuple(terms)


def _polygamma(order: int) -> Callable[[float], float]:
    """The derivative of that order of digamma: recurrence, reflection and asymptotic series (Abramowitz and Stegun
    6.4.6, 6.4.7, 6.4.11). Infinite at 0, -1, -2, ..."""
    first, *later = asymptotic_terms(order)
    turned = cotangent_terms(order)

    def function(x: float) -> float:
        if math.isnan(x) or x == -math.inf:
            return math.nan
        if x < 0.5:
            turn = math.tan(math.pi * (x - round(x)))
            cotangent, value = (1 / turn if turn else math.inf), turned[-1]
            for c in reversed(turned[:-1]):
                value = value * cotangent + c
            return (-1) ** order * function(1 - x) - math.pi ** (order + 1) * value
        total, count = 0.0, math.factorial(order)
        for k in range(10 if x < 1e6 else 0):
            total += count * (x + k) ** -(order + 1)
        z = x + 10 if x < 1e6 else x
        tail = 0.0
        for c in reversed(later):
            tail = tail / (z * z) + c
        total += (first + count / (2 * z) + tail / (z * z)) * z ** -order
        return -total if order % 2 == 0 else total

    return function


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


def decay(x: np.ndarray) -> np.ndarray:
    """exp(x) for x that is not above 0; 0 where that is smaller than a normal number."""
    y = np.exp(x)
    return np.where(y < np.finfo(y.dtype).tiny, y.dtype.type(0), y)


erf = _elementwise(math.erf)
normal_cdf = _elementwise(lambda x: math.erfc(-x * math.sqrt(0.5)) / 2)
erfinv = _elementwise(_erfinv)
gamma = _elementwise(_gamma)
lgamma = _elementwise(_lgamma)
digamma = _elementwise(_digamma)
polygamma1, polygamma2, polygamma3, polygamma4 = (_elementwise(_polygamma(order)) for order in ORDERS)
