"""Random numbers in graphs: `mx.sym.random.uniform` and so on, drawn anew in each forward run.

Distribution parameters are numbers, or symbols that hold a number for each of several distributions; then numbers of
the shape `shape` are drawn from each. dtype: float32 unless given, or the symbols' own. kwargs: name and attr of the
symbol.
"""
from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from mxc.base import _Null
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.symbol import functions
from mxc.symbol.arithmetic import Arithmetic

if TYPE_CHECKING:
    from mxc.symbol.symbol import Symbol

__all__ = ["exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal",
           "poisson", "randint", "randn", "shuffle", "uniform"]
__getattr__, __dir__ = functions.namespace("random")


def uniform(low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Uniform numbers, low <= x < high."""
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Normal numbers of mean `loc` and standard deviation `scale`."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, kwargs)


def randn(*shape: int, **kwargs: Any) -> Symbol:
    """Normal numbers of the given dimensions; kwargs: loc, scale, dtype, and those of a symbol."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape, kwargs.pop("dtype", _Null), **kwargs)


def exponential(scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Exponential numbers of mean `scale`."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Gamma numbers of shape parameter `alpha` and scale `beta`."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, kwargs)


def poisson(lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Poisson numbers of mean `lam`."""
    return _draw("poisson", {"lam": lam}, shape, dtype, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Failures before the k-th success, when each trial succeeds with probability `p`."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, kwargs)


def generalized_negative_binomial(mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null,
                                  **kwargs: Any) -> Symbol:
    """Negative binomial numbers of mean `mu` and dispersion `alpha`."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, kwargs)


def randint(low: Any, high: Any, shape: Any = _Null, dtype: Any = _Null, **kwargs: Any) -> Symbol:
    """Whole numbers, low <= x < high, int32 unless dtype says int64. Only numbers are bounds, no symbols."""
    return _draw("randint", {"low": low, "high": high}, shape, dtype, kwargs)


def multinomial(data: Symbol, shape: Any = _Null, get_prob: bool = True, dtype: Any = "int32", **kwargs: Any) -> Symbol:
    """Classes drawn with the probabilities along the last axis of `data`; with `get_prob` also their log
    probabilities."""
    return functions.find("_sample_multinomial")(data, shape=shape, get_prob=get_prob, dtype=dtype, **kwargs)


def shuffle(data: Symbol, **kwargs: Any) -> Symbol:
    """`data` with the elements of its first axis in random order."""
    return functions.find("_shuffle")(data, **kwargs)


def _draw(name: str, parameters: dict[str, Any], shape: Any, dtype: Any, kwargs: dict[str, Any]) -> Symbol:
    """The operator `_sample_NAME` over symbols or `_random_NAME` with numbers.

    Raises TypeError where symbols and numbers are mixed, ValueError for anything else.
    """
    symbols = [isinstance(value, Arithmetic) for value in parameters.values()]
    if all(symbols):
        return functions.find(f"_sample_{name}")(*parameters.values(), shape=shape, dtype=dtype, **kwargs)
    if any(symbols):
        raise ArgumentTypeError(f"{name}: its parameters must be all symbols or all numbers, got "
                                + ", ".join(f"{key}={value!r}" for key, value in parameters.items()))
    for key, value in parameters.items():
        if not isinstance(value, numbers.Number):
            raise ArgumentError(f"{name}: {key} must be a number or a symbol, got {type(value)}")
    return functions.find(f"_random_{name}")(**parameters, shape=shape, dtype=dtype, **kwargs)
