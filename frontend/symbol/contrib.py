"""Contributed operators: `mx.sym.contrib.box_nms` is the operator `_contrib_box_nms`; and functions of several."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mxc.base import _Null
from mxc.compiler.error import MXNetError
from mxc.symbol import creation, functions
from mxc.symbol.arithmetic import Arithmetic
from mxc.symbol.control_flow import cond, foreach, while_loop

if TYPE_CHECKING:
    from mxc.symbol.symbol import Symbol

__all__ = ["adamw_update", "boolean_mask", "cond", "foreach", "mp_adamw_update", "rand_zipfian", "while_loop"]
__getattr__, __dir__ = functions.namespace("contrib")


def boolean_mask(data: Any = None, index: Any = None, axis: Any = _Null, name: str | None = None, attr: Any = None,
                 out: Any = None, **kwargs: Any) -> Symbol:
    """Raises MXNetError: how many rows a mask takes depends on its values, and shapes of a graph do not."""
    raise MXNetError("boolean_mask: how many rows it gives depends on the values of index, so no graph has it; call "
                     "mx.nd.contrib.boolean_mask on arrays, in a block that is not hybridized, or multiply by the mask")


def rand_zipfian(true_classes: Symbol, num_sampled: int, range_max: int) -> tuple[Symbol, Symbol, Symbol]:
    """Classes drawn with replacement from a Zipfian distribution, and how often each is expected among them.

    Class c of 0..range_max-1 has probability (log(c + 2) - log(c + 1)) / log(range_max + 1). true_classes: classes, of
    any shape. Returns the samples (num_sampled, int64), and the expected counts of the true classes and of the samples
    (float64).
    """
    from mxc.symbol import random

    span = math.log(range_max + 1)

    def expected(classes: Any) -> Any:
        real = classes.astype("float64")
        return functions.find("log")((real + 2.0) / (real + 1.0)) / span * num_sampled

    grown = functions.find("exp")(random.uniform(0, span, shape=(num_sampled,), dtype="float64"))
    samples = (grown - 1).astype("int64") % range_max
    return samples, expected(true_classes), expected(samples)


# MXNet's signature
def adamw_update(weight: Symbol, grad: Symbol, mean: Symbol, var: Symbol, rescale_grad: Symbol | float, lr: float,
                 eta: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0,
                 clip_gradient: float = -1, out: Any = None, name: str | None = None, **kwargs: Any) -> Symbol:
    """Adam with weight decay apart from the gradient: the new weight.

    rescale_grad: factor of the gradient, a number or a symbol of one element; where it is 0, infinite or not a number,
    nothing is updated. eta: factor of the whole step. clip_gradient: bound of the gradient, none if negative.
    """
    return functions.find("_adamw_update")(
        weight, grad, mean, var, _factor(rescale_grad), lr=lr, eta=eta, beta1=beta1, beta2=beta2, epsilon=epsilon,
        wd=wd, clip_gradient=clip_gradient, name=name, **kwargs)


# MXNet's signature
def mp_adamw_update(weight: Symbol, grad: Symbol, mean: Symbol, var: Symbol, weight32: Symbol,
                    rescale_grad: Symbol | float, lr: float, eta: float, beta1: float = 0.9, beta2: float = 0.999,
                    epsilon: float = 1e-8, wd: float = 0, clip_gradient: float = -1, out: Any = None,
                    name: str | None = None, **kwargs: Any) -> Symbol:
    """`adamw_update` of a float16 weight, computed on `weight32`, its float32 copy."""
    return functions.find("_mp_adamw_update")(
        weight, grad, mean, var, weight32, _factor(rescale_grad), lr=lr, eta=eta, beta1=beta1, beta2=beta2,
        epsilon=epsilon, wd=wd, clip_gradient=clip_gradient, name=name, **kwargs)


def _factor(rescale_grad: Any) -> Any:
    """The factor of the gradient as a symbol of one element."""
    return rescale_grad if isinstance(rescale_grad, Arithmetic) else creation.full((1,), rescale_grad)
