"""The reference of random operators."""
from __future__ import annotations

import itertools
import math

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import TURN, Draws, uniform, words
from mxc.compiler.scalar_functions.special import erfinv


def rand(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Uniform numbers in [0, 1) of the run's stream that `offset` names."""
    return [rng.random(params.shape, params.dtype, params.offset)]


def key(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Seed and offset of that stream."""
    return [rng.key(params.offset)]


def _gamma(key: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers of scale 1 (Marsaglia and Tsang, 2000), each element with draws of its own: try by try."""
    shape = alpha.astype(np.float64).ravel()
    out = np.sqrt(shape)  # gives the results for shapes 0 (0) and below (NaN); all others are overwritten
    open_, tries = np.flatnonzero(shape > 0), 0
    while open_.size:
        a = shape[open_]
        d = np.where(a < 1, a + 1, a) - 1 / 3
        x = _normal(uniform(key, open_, 2 * tries))
        u = 1 - uniform(key, open_, 2 * tries + 1)
        v = (1 + x / np.sqrt(9 * d)) ** 3
        tries += 1
        fits = (v > 0) & ((u < 1 - 0.0331 * x**4) | (np.log(u) < 0.5 * x * x + d - d * v + d * np.log(np.abs(v))))
        boost = np.where(a < 1, np.exp(np.log(1 - uniform(key, open_, 2 * tries)) / a), 1)
        out[open_[fits]] = (d * v * boost)[fits]
        open_ = open_[~fits]
    return out.reshape(alpha.shape)


def _normal(u: np.ndarray) -> np.ndarray:
    """Standard normal numbers of uniform ones of 53 bits, or of 24 in float32: these are moved off 0 by half a step."""
    step = 2.0**-24 if u.dtype == np.float32 else 2.0**-53
    return math.sqrt(2) * erfinv(2 * u.astype(np.float64) - 1 + step)


def _poisson(key: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Poisson numbers: by adding up probabilities for rates below 10, else by transformed rejection (Hörmann, 1993)."""
    lam = rate.astype(np.float64).ravel()
    out = np.where(lam < 0, np.nan, lam)
    for i in np.flatnonzero((lam >= 0) & (lam < 1e300)):
        out[i] = (_small_rate if lam[i] < 10 else _large_rate)(key, int(i), float(lam[i]))
    return out.reshape(rate.shape)


def _small_rate(key: np.ndarray, i: int, lam: float) -> float:
    u, k, part = uniform(key, i), 0, math.exp(-lam)
    total = part
    while u >= total and k < 120:
        k += 1
        part = part * lam / k
        total += part
    return k


def _large_rate(key: np.ndarray, i: int, lam: float) -> float:
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    for tries in itertools.count():
        u, v = float(uniform(key, i, 2 * tries)) - 0.5, 1 - float(uniform(key, i, 2 * tries + 1))
        near = 0.5 - abs(u)
        if near <= 0:
            continue
        k = math.floor((2 * a / near + b) * u + lam + 0.43)
        if near >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k >= 0 and (near >= 0.013 or v <= near):
            inverse = 1.1239 + 1.1328 / (b - 3.4)
            bound = k * math.log(lam) - lam - math.lgamma(k + 1)
            if math.log(v) + math.log(inverse) - math.log(a / (near * near) + b) <= bound:
                return k
    raise AssertionError


def gamma_numbers(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Gamma numbers of scale 1 of a key and shape parameters (n, m), each of them repeated."""
    return [_gamma(inputs[0].astype(np.int64), _repeated(inputs[1], params.each))]


def poisson_numbers(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Poisson numbers of a key and rates (n, m), each of them repeated."""
    return [_poisson(inputs[0].astype(np.int64), _repeated(inputs[1], params.each))]


def _repeated(rows: np.ndarray, each: int) -> np.ndarray:
    return np.repeat(rows, each // rows.shape[1], axis=1)


def integers(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Whole numbers of a key: low and as many bits as the range needs, until that is in the range."""
    key, index = inputs[0].astype(np.int64), np.arange(math.prod(params.shape))
    most = params.high - 1 - params.low
    found = np.zeros(index.size, np.int64)
    open_, tries = index, 0
    while open_.size:
        place = open_ + (tries << (TURN + 1))
        high, low = words(key[0], key[1], place), words(key[0], key[1], place + (1 << TURN))
        bits = (high.astype(np.uint64) << np.uint64(32) | low) & np.uint64((1 << most.bit_length()) - 1)
        fits = bits <= np.uint64(most)
        found[open_[fits]] = [params.low + int(b) for b in bits[fits]]
        open_, tries = open_[~fits], tries + 1
    return [found.reshape(params.shape)]


def zipfian_numbers(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Different classes for each row, of log-uniform probabilities, and the number of draws."""
    key, (rows, n), most = inputs[0].astype(np.int64), params.shape, params.range_max
    classes: list[list[int]] = []
    tries = []
    for row in range(rows):
        found: list[int] = []
        draws = 0
        while len(found) < n:
            u = float(uniform(key, row + draws * rows))
            value = min(int(math.exp(u * math.log(most + 1))) - 1, most - 1)
            draws += 1
            if value not in found:
                found.append(value)
        classes.append(found)
        tries.append(draws)
    return [np.array(classes), np.array(tries)]


def _drawn(params: Params, inputs: list[np.ndarray], names: tuple[str, ...]) -> tuple[tuple[int, ...], str, list]:
    """The output's shape, the dtype of uniform numbers, and the distribution's parameters: those of the operator, with
    its data's shape; or its inputs, each of whose elements is repeated."""
    given = params.get("dtype") or "float32"
    if names[0] in params:
        like = [inputs[0].dtype.name] if inputs else [given]
        shape = inputs[0].shape if inputs else params.shape or (1,)
        values = [np.asarray(params[name]) for name in names]
    else:
        like, shape = [given], (*inputs[0].shape, *params.shape)
        values = [np.broadcast_to(i.reshape(*i.shape, *(1,) * len(params.shape)), shape) for i in inputs]
    wide = "float64" if like[0] == "float64" else "float32"
    return shape, wide, [np.asarray(v, wide) for v in values]


def draw_uniform(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """low <= x < high."""
    shape, wide, (low, high) = _drawn(params, inputs, ("low", "high"))
    return [low + (high - low) * rng.random(shape, wide)]


def draw_normal(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Mean and standard deviation."""
    shape, wide, (loc, scale) = _drawn(params, inputs, ("loc", "scale"))
    return [loc + scale * _normal(rng.random(shape, wide))]


def draw_exponential(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Rate lam."""
    shape, wide, (lam,) = _drawn(params, inputs, ("lam",))
    return [-np.log1p(-rng.random(shape, wide)) / lam]


def draw_gamma(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Shape parameter alpha, scale beta."""
    shape, _, (alpha, beta) = _drawn(params, inputs, ("alpha", "beta"))
    return [_gamma(rng.key(), np.broadcast_to(alpha, shape)) * beta]


def draw_poisson(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Mean lam."""
    shape, _, (lam,) = _drawn(params, inputs, ("lam",))
    return [_poisson(rng.key(), np.broadcast_to(lam, shape))]


def draw_negative_binomial(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Failures before k successes of probability p: Poisson of a gamma rate."""
    shape, _, (k, p) = _drawn(params, inputs, ("k", "p"))
    rate = _gamma(rng.key(), np.broadcast_to(k, shape)) * ((1 - p.astype(np.float64)) / p)
    return [_poisson(rng.key(), rate)]


def draw_generalized_negative_binomial(params: Params, inputs: list[np.ndarray], is_train: bool,
                                       rng: Draws) -> list[np.ndarray]:
    """Mean mu, dispersion alpha: Poisson of a gamma rate, which is mu where alpha is 0."""
    shape, _, (mu, alpha) = _drawn(params, inputs, ("mu", "alpha"))
    mu, alpha = (np.broadcast_to(v, shape).astype(np.float64) for v in (mu, alpha))
    spread = alpha != 0
    rate = _gamma(rng.key(), 1 / np.where(spread, alpha, 1)) * alpha * mu
    return [_poisson(rng.key(), np.where(spread, rate, mu))]


def draw_integers(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """low <= x < high."""
    return integers(Params({**params, "shape": params.shape or (1,)}), [rng.key()], is_train, rng)


def draw_classes(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The class whose part of the running sums a uniform number falls into; and the logarithm of its probability."""
    data = inputs[0]
    rows = data.reshape(-1, data.shape[-1]).astype(np.float64)
    sums = np.cumsum(rows, axis=1)
    numbers = rng.random((len(rows), math.prod(params.shape)), "float64") * sums[:, -1:]
    chosen = np.minimum((sums[:, :, None] <= numbers[:, None, :]).sum(1), rows.shape[1] - 1)
    shape = (*data.shape[:-1], *params.shape) or (1,)
    chances = np.log(np.take_along_axis(rows, chosen, 1))
    return [chosen.reshape(shape), chances.reshape(shape)][:2 if params.get_prob else 1]


def shuffle(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The elements of the first axis in the order of random numbers; an array without axes as it is."""
    if not inputs[0].ndim:
        return [inputs[0].copy()]
    numbers = rng.random((len(inputs[0]),), "float64")
    return [inputs[0][np.argsort(numbers, kind="stable")]]


def draw_zipfian(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The numbers of zipfian_numbers, from the run's next stream."""
    return zipfian_numbers(params, [rng.key()], is_train, rng)
