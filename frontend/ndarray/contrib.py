"""Contributed operators: `mx.nd.contrib.box_nms` is the operator `_contrib_box_nms`; and functions of several."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.base import _Null
from mxc.compiler.error import ArgumentTypeError, MXNetError
from mxc.ndarray import creation, functions
from mxc.ndarray.control_flow import cond, foreach, while_loop
from mxc.ndarray.ndarray import NDArray
from mxc.runtime.context import Context
from mxc.util import np_shape

__all__ = ["adamw_update", "boolean_mask", "cond", "foreach", "isfinite", "isinf", "isnan", "mp_adamw_update",
           "multi_adamw_update", "multi_lamb_update", "multi_mp_adamw_update", "multi_mp_lamb_update", "rand_zipfian",
           "while_loop"]
__getattr__, __dir__ = functions.namespace("contrib")


def boolean_mask(data: NDArray | None = None, index: NDArray | None = None, axis: Any = _Null,
                 out: NDArray | None = None, name: str | None = None, **kwargs: Any) -> NDArray:
    """The rows of `data` where `index`, one number for each row, is not 0. Gradients flow into the rows that are taken.

    How many there are depends on values, so it waits for `index`, and symbols do not have it. axis: 0.
    Raises MXNetError when data and index do not fit, or for another axis.
    """
    if not isinstance(data, NDArray) or not isinstance(index, NDArray):
        raise ArgumentTypeError(f"boolean_mask: data and index must be NDArrays, got {type(data)} and {type(index)}")
    if kwargs:
        raise MXNetError(f"boolean_mask: unknown attribute {next(iter(kwargs))!r} (it has axis)")
    if axis not in (_Null, 0, "0"):
        raise MXNetError(f"boolean_mask: expected axis=0, got {axis}; swap axes before and after")
    if index.shape != data.shape[:1]:
        raise MXNetError(f"boolean_mask: expected an index of the shape {data.shape[:1]}, one number for each row of "
                         f"the data, got {index.shape}")
    rows = np.flatnonzero(index.asnumpy() != 0)
    with np_shape():  # there may be none
        places = creation.array(rows, data.context, "int64")
        return functions.find("take")(data, places, out=out)  # type: ignore[return-value]


def isnan(data: NDArray) -> NDArray:
    """1 where an element is not a number, else 0, in the array's dtype."""
    return data != data


def isinf(data: NDArray) -> NDArray:
    """1 where an element is infinite, else 0, in the array's dtype."""
    return abs(data) == np.inf


def isfinite(data: NDArray) -> NDArray:
    """1 where an element is a number and not infinite, else 0, in the array's dtype."""
    return (data == data) * (abs(data) != np.inf)


def rand_zipfian(true_classes: NDArray, num_sampled: int, range_max: int,
                 ctx: Context | None = None) -> tuple[NDArray, NDArray, NDArray]:
    """Classes drawn with replacement from a Zipfian distribution, and how often each is expected among them.

    Class c of 0..range_max-1 has probability (log(c + 2) - log(c + 1)) / log(range_max + 1). true_classes: classes, of
    any shape. Returns the samples (num_sampled, int64), and the expected counts of the true classes and of the samples
    (float64).
    """
    where = ctx or true_classes.context
    span = math.log(range_max + 1)

    def expected(classes: NDArray) -> NDArray:
        real = classes.as_in_context(where).astype("float64")
        return ((real + 2.0) / (real + 1.0)).log() / span * num_sampled  # type: ignore[attr-defined]

    drawn = functions.find("_random_uniform")(low=0, high=span, shape=(num_sampled,), dtype="float64", ctx=where)
    samples = (drawn.exp() - 1).astype("int64") % range_max  # type: ignore[union-attr]
    return samples, expected(true_classes), expected(samples)


# MXNet's signature
def adamw_update(weight: NDArray, grad: NDArray, mean: NDArray, var: NDArray, rescale_grad: NDArray | float, lr: float,
                 eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
                 clip_gradient: float = -1, out: NDArray | None = None, name: str | None = None,
                 **kwargs: Any) -> NDArray:
    """Adam with weight decay apart from the gradient: the new weight.

    rescale_grad: factor of the gradient, a number or an array of one element; where it is 0, infinite or not a number,
    nothing is updated. eta: factor of the whole step. clip_gradient: bound of the gradient, none if negative.
    """
    return functions.find("_adamw_update")(  # type: ignore[return-value]
        weight, grad, mean, var, _factor(rescale_grad, weight), lr=lr, eta=eta, beta1=beta1, beta2=beta2,
        epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, out=out, **kwargs)


# MXNet's signature
def mp_adamw_update(weight: NDArray, grad: NDArray, mean: NDArray, var: NDArray, weight32: NDArray,
                    rescale_grad: NDArray | float, lr: float, eta: float, beta1: float = 0.9, beta2: float = 0.999,
                    epsilon: float = 1e-8, wd: float = 0, clip_gradient: float = -1, out: NDArray | None = None,
                    name: str | None = None, **kwargs: Any) -> NDArray:
    """`adamw_update` of a float16 weight, computed on `weight32`, its float32 copy."""
    return functions.find("_mp_adamw_update")(  # type: ignore[return-value]
        weight, grad, mean, var, weight32, _factor(rescale_grad, weight), lr=lr, eta=eta, beta1=beta1, beta2=beta2,
        epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, out=out, **kwargs)


def _factor(rescale_grad: NDArray | float, weight: NDArray) -> NDArray:
    """The factor of the gradient as an array of one element."""
    return rescale_grad if isinstance(rescale_grad, NDArray) \
        else creation.full((1,), rescale_grad, weight.context)


# MXNet's signature
def multi_adamw_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray],
                       var: Sequence[NDArray], rescale_grad: NDArray | float, lrs: Sequence[float],
                       wds: Sequence[float], etas: Sequence[float], out: Any = None, name: str | None = None,
                       size: int = 0, **kwargs: Any) -> list[NDArray]:
    """`adamw_update` of several weights at once. size: how many, where not all of the lists are meant."""
    return _of_several("_multi_adamw_update", (weights, grads, mean, var), size, out,
                       {"num_weights": size or len(weights), "lrs": lrs, "wds": wds, "etas": etas, **kwargs},
                       [_factor(rescale_grad, weights[0])])


# MXNet's signature
def multi_mp_adamw_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray],
                          var: Sequence[NDArray], weights32: Sequence[NDArray], rescale_grad: NDArray | float,
                          lrs: Sequence[float], wds: Sequence[float], etas: Sequence[float], out: Any = None,
                          name: str | None = None, size: int = 0, **kwargs: Any) -> list[NDArray]:
    """`mp_adamw_update` of several weights at once. size: how many, where not all of the lists are meant."""
    return _of_several("_multi_mp_adamw_update", (weights, grads, mean, var, weights32), size, out,
                       {"num_weights": size or len(weights), "lrs": lrs, "wds": wds, "etas": etas, **kwargs},
                       [_factor(rescale_grad, weights[0])])


# MXNet's signature
def multi_lamb_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray],
                      var: Sequence[NDArray], step_count: Sequence[int], lrs: Sequence[float], wds: Sequence[float],
                      out: Any = None, num_tensors: int = 0, **kwargs: Any) -> list[NDArray]:
    """A step of LAMB of several weights at once. step_count: of each weight, from 1. num_tensors: how many, where not
    all of the lists are meant."""
    return _of_several("_multi_lamb_update", (weights, grads, mean, var), num_tensors, out,
                       {"num_tensors": num_tensors or len(weights), "learning_rates": lrs, "wds": wds,
                        "step_count": step_count, **kwargs})


# MXNet's signature
def multi_mp_lamb_update(weights: Sequence[NDArray], grads: Sequence[NDArray], mean: Sequence[NDArray],
                         var: Sequence[NDArray], weights32: Sequence[NDArray], step_count: Sequence[int],
                         lrs: Sequence[float], wds: Sequence[float], out: Any = None, num_tensors: int = 0,
                         **kwargs: Any) -> list[NDArray]:
    """`multi_lamb_update` of float16 weights, computed on `weights32`, their float32 copies."""
    return _of_several("_multi_mp_lamb_update", (weights, grads, mean, var, weights32), num_tensors, out,
                       {"num_tensors": num_tensors or len(weights), "learning_rates": lrs, "wds": wds,
                        "step_count": step_count, **kwargs})


def _of_several(op: str, lists: Sequence[Sequence[NDArray]], size: int, out: Any, params: dict[str, Any],
                behind: Sequence[NDArray] = ()) -> list[NDArray]:
    """An update of the first `size` arrays of each list, of all without it. behind: arrays that are there once."""
    count = size or len(lists[0])
    arrays = [each for one in zip(*(part[:count] for part in lists), strict=True) for each in one]
    made = functions.find(op)(*arrays, *behind, out=out, **params)
    return [made] if isinstance(made, NDArray) else made
