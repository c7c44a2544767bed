"""The reference of densities."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws
from mxc.compiler.scalar_functions.special import lgamma


def _lined(inputs: list[np.ndarray], kept: int = 0) -> list[np.ndarray]:
    """The inputs in float64, the parameters reshaped to as many axes as the sample has."""
    rank, made = inputs[0].ndim, []
    for array in inputs:
        place = array.ndim - kept
        shape = (*array.shape[:place], *(1,) * (rank - array.ndim), *array.shape[place:])
        made.append(array.astype(np.float64).reshape(shape))
    return made


def _density(params: Params, inputs: list[np.ndarray], log_density: Callable[..., np.ndarray]) -> list[np.ndarray]:
    arrays = _lined(inputs)
    logs = np.broadcast_to(log_density(*arrays), arrays[0].shape)
    return [logs if params.is_log else np.exp(logs)]


def pdf_uniform(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """1 / (high - low), wherever the sample is; its logarithm is NaN where that is negative."""
    sample, low, high = _lined(inputs)
    span = np.broadcast_to(high - low, sample.shape)
    return [-np.log(span) if params.is_log else 1 / span]


def pdf_normal(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Mean mu, standard deviation sigma."""
    return _density(params, inputs, lambda x, mu, sigma:
                    -((x - mu) / sigma)**2 / 2 - np.log(sigma * np.sqrt(2 * np.pi)))


def pdf_gamma(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Shape parameter alpha, rate beta."""
    return _density(params, inputs, lambda x, alpha, beta:
                    alpha * np.log(beta) + (alpha - 1) * np.log(x) - beta * x - lgamma(alpha))


def pdf_exponential(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Rate lam, of any sample."""
    return _density(params, inputs, lambda x, lam: np.log(lam) - lam * x)


def pdf_poisson(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Mean lam."""
    return _density(params, inputs, lambda x, lam: x * np.log(lam) - lgamma(x + 1) - lam)


def pdf_negative_binomial(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Failures before k successes of probability p."""
    return _density(params, inputs, lambda x, k, p:
                    lgamma(x + k) - lgamma(x + 1) - lgamma(k) + k * np.log(p) + x * np.log(1 - p))


def pdf_generalized_negative_binomial(params: Params, inputs: list[np.ndarray], is_train: bool,
                                      rng: Draws) -> list[np.ndarray]:
    """The density of negative_binomial with k = 1 / alpha and p = 1 / (1 + alpha mu)."""
    def log_density(x: np.ndarray, mu: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        k, p = 1 / alpha, 1 / (1 + alpha * mu)
        return lgamma(x + k) - lgamma(x + 1) - lgamma(k) + k * np.log(p) + x * np.log(1 - p)

    return _density(params, inputs, log_density)


def pdf_dirichlet(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Concentrations alpha along the last axis."""
    x, alpha = _lined(inputs, kept=1)
    logs = ((alpha - 1) * np.log(x)).sum(-1) + lgamma(alpha.sum(-1)) - lgamma(alpha).sum(-1)
    logs = logs.reshape(logs.shape or (1,))
    return [logs if params.is_log else np.exp(logs)]
