"""Checks of random generators: a generator is a function from a number of samples to an array of them."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.test_utils.tolerance import numpy_of

Generator = Callable[[int], Any]
DEVIATIONS = 3  # standard errors by which a sample's mean or variance may be off at most


def gen_buckets_probs_with_ppf(ppf: Callable[[float], float], nbuckets: int) \
        -> tuple[list[tuple[float, float]], list[float]]:
    """Intervals of equal probability, and their probabilities, from a distribution's quantile function."""
    if nbuckets < 1:
        raise AssertionError(f"there must be at least one bucket, not {nbuckets}")
    bounds = [float(ppf(i / nbuckets)) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(bounds)), [1 / nbuckets] * nbuckets


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples fits a distribution of mean `mu` and standard deviation `sigma`."""
    samples = numpy_of(generator(nsamples)).astype(np.float64)
    return bool(abs(samples.mean() - mu) <= DEVIATIONS * sigma / math.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of samples fits a normal distribution of standard deviation `sigma`."""
    samples = numpy_of(generator(nsamples)).astype(np.float64)
    spread = math.sqrt(2 / (nsamples - 1)) * sigma**2
    return bool(abs(samples.var(ddof=1) - sigma**2) <= DEVIATIONS * spread)


def chi_square_check(generator: Generator, buckets: Sequence[Any], probs: Sequence[float],
                     nsamples: int = 1000000) -> tuple[float, np.ndarray, np.ndarray]:
    """(p, observed, expected): the chi-square test of samples, and how many there are in each bucket.

    buckets: intervals (low, high) next to each other, of which each has its lower bound, or the values themselves.
    probs: their probabilities, of sum 1. Samples outside of all buckets count as one more.
    """
    if len(buckets) != len(probs):
        raise ArgumentError(f"there are {len(buckets)} buckets and {len(probs)} probabilities")
    samples = numpy_of(generator(nsamples)).ravel()
    if isinstance(buckets[0], (tuple, list)):
        bounds = [buckets[0][0], *(high for _, high in buckets)]
        if any(low != before for (low, _), before in zip(buckets, bounds, strict=False)):
            raise ArgumentError("the buckets' intervals must be next to each other, in ascending order")
        places = np.searchsorted(bounds, samples, side="right") - 1
        observed = np.bincount(places[(places >= 0) & (places < len(buckets))], minlength=len(buckets))
    else:
        observed = np.array([np.count_nonzero(samples == value) for value in buckets])
    expected = np.asarray(probs, np.float64) * len(samples)
    if np.any((observed > 0) & (expected == 0)) or observed.sum() < len(samples) * (1 - 1e-9):
        return 0.0, observed, expected
    used = expected > 0
    statistic = float(np.sum((observed - expected)[used]**2 / expected[used]))
    return chi_square_tail(statistic, int(used.sum()) - 1), observed, expected


def chi_square_tail(x: float, freedom: int) -> float:
    """The probability that a chi-square variable of that many degrees of freedom is at least `x`.

    By the recurrence Q(a + 1, y) = Q(a, y) + y^a exp(-y) / Gamma(a + 1) of the incomplete gamma function at a = freedom
    / 2, y = x / 2, from Q(1/2, y) = erfc(sqrt(y)) or Q(0, y) = 0.
    """
    y = x / 2
    if freedom <= 0 or y <= 0:
        return 1.0
    total, a = (math.erfc(math.sqrt(y)), 0.5) if freedom % 2 else (0.0, 0.0)
    while a < freedom / 2:
        total += math.exp(a * math.log(y) - y - math.lgamma(a + 1))
        a += 1
    return min(total, 1.0)


def verify_generator(generator: Generator, buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000,
                     nrepeat: int = 5, success_rate: float = 0.2, alpha: float = 0.05) -> list[float]:
    """The p of `nrepeat` chi-square tests. Raises AssertionError when fewer than a share of `success_rate` of them are
    more than `alpha`."""
    found, tests = [], []
    for _ in range(nrepeat):
        tests.append(chi_square_check(generator, buckets, probs, nsamples))
        found.append(tests[-1][0])
    passed = sum(p > alpha for p in found)
    if passed < nrepeat * success_rate:
        raise AssertionError(f"the generator does not fit: of {nrepeat} chi-square tests {passed} gave more than "
                             f"{alpha}; p: {found}; buckets: {buckets}; observed in the last: {tests[-1][1]}, "
                             f"expected: {tests[-1][2]}")
    return found
