"""Random numbers as arrays: `mx.nd.random.uniform` and so on, also found as `mx.random.uniform`.

Distribution parameters are numbers, or arrays that hold a number for each of several distributions; then numbers of the
shape `shape` are drawn from each. dtype: float32 unless given, or that of `out`. ctx: the device, by default the
current one or that of the arrays; the numbers follow from its seed (`mx.random.seed`). out: an array to write them to.
"""
from __future__ import annotations

import numbers
from typing import Any

from mxc.base import _Null
from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.compiler.ops.dtypes import BFLOAT16
from mxc.ndarray import functions
from mxc.ndarray.ndarray import NDArray

__all__ = ["exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal",
           "poisson", "randint", "randn", "shuffle", "uniform"]
__getattr__, __dir__ = functions.namespace("random")
Result = NDArray | list[NDArray]


def uniform(low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
            **kwargs: Any) -> Result:
    """Uniform numbers, low <= x < high."""
    return _draw("uniform", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def normal(loc: Any = 0, scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
           **kwargs: Any) -> Result:
    """Normal numbers of mean `loc` and standard deviation `scale`."""
    return _draw("normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, kwargs)


def randn(*shape: int, **kwargs: Any) -> Result:
    """Normal numbers of the given dimensions; kwargs: loc, scale, dtype, ctx, out."""
    return normal(kwargs.pop("loc", 0), kwargs.pop("scale", 1), shape, kwargs.pop("dtype", _Null), **kwargs)


def exponential(scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
                **kwargs: Any) -> Result:
    """Exponential numbers of mean `scale`."""
    return _draw("exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, kwargs)


def gamma(alpha: Any = 1, beta: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
          **kwargs: Any) -> Result:
    """Gamma numbers of shape parameter `alpha` and scale `beta`."""
    return _draw("gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, kwargs)


def poisson(lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
            **kwargs: Any) -> Result:
    """Poisson numbers of mean `lam`."""
    return _draw("poisson", {"lam": lam}, shape, dtype, ctx, out, kwargs)


def negative_binomial(k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
                      **kwargs: Any) -> Result:
    """Failures before the k-th success, when each trial succeeds with probability `p`."""
    return _draw("negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, kwargs)


def generalized_negative_binomial(mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None,
                                  out: Any = None, **kwargs: Any) -> Result:
    """Negative binomial numbers of mean `mu` and dispersion `alpha`."""
    return _draw("generalized_negative_binomial", {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out, kwargs)


def randint(low: Any, high: Any, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None,
            **kwargs: Any) -> Result:
    """Whole numbers, low <= x < high, int32 unless dtype says int64. Only numbers are bounds, no arrays."""
    return _draw("randint", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def multinomial(data: NDArray, shape: Any = _Null, get_prob: bool = False, out: Any = None, dtype: Any = "int32",
                **kwargs: Any) -> Result:
    """Classes drawn with the probabilities along the last axis of `data`; with `get_prob` also their log
    probabilities."""
    return functions.find("_sample_multinomial")(data, shape=shape, get_prob=get_prob, out=out, dtype=dtype, **kwargs)


def shuffle(data: NDArray, **kwargs: Any) -> Result:
    """`data` with the elements of its first axis in random order."""
    return functions.find("_shuffle")(data, **kwargs)


def _draw(name: str, parameters: dict[str, Any], shape: Any, dtype: Any, ctx: Any, out: Any,
          kwargs: dict[str, Any]) -> Result:
    """The operator `_sample_NAME` over arrays or `_random_NAME` with numbers.

    Raises TypeError where arrays and numbers are mixed, ValueError for anything else.
    """
    if out is not None and (dtype is _Null or dtype is None):
        if out.dtype == BFLOAT16:  # Numbers are drawn in other dtypes.
            made = _draw(name, parameters, out.shape if shape is _Null else shape, "float32", out.context, None, kwargs)
            return made.copyto(out)  # type: ignore[union-attr]
        dtype = out.dtype
    arrays = [isinstance(value, NDArray) for value in parameters.values()]
    if all(arrays):
        return functions.find(f"_sample_{name}")(*parameters.values(), shape=shape, dtype=dtype, out=out, **kwargs)
    if any(arrays):
        raise ArgumentTypeError(f"{name}: its parameters must be all arrays or all numbers, got "
                                + ", ".join(f"{key} of {type(value)}" for key, value in parameters.items()))
    for key, value in parameters.items():
        if not isinstance(value, numbers.Number):
            raise ArgumentError(f"{name}: {key} must be a number or an array, got {type(value)}")
    if shape is _Null:
        shape = (1,) if out is None else out.shape
    return functions.find(f"_random_{name}")(**parameters, shape=shape, dtype=dtype, ctx=ctx, out=out, **kwargs)
