"""Optimizers that are contributed: `mx.optimizer.contrib`."""
from __future__ import annotations

from typing import Any

from mxc import ndarray as nd
from mxc.compiler.error import ArgumentError
from mxc.ndarray import NDArray
from mxc.optimizer.base import Optimizer

__all__ = ["GroupAdaGrad"]


@Optimizer.register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one rate for each row of a matrix, by the mean of its gradient's squares; without weight decay.

    Its state is the sum of these means. eps: a number that is added to that sum.
    """

    def __init__(self, eps: float = 1e-5, **kwargs: Any):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        if weight.ndim != 2:
            raise ArgumentError(f"GroupAdaGrad updates matrices, weight {index} has the shape {weight.shape}")
        return nd.zeros((weight.shape[0], 1), weight.context, weight.dtype, weight.stype)

    def update(self, index: Any, weight: NDArray, grad: NDArray, state: Any) -> None:
        self._update_count(index)
        if self._get_wd(index):
            raise ArgumentError(f"GroupAdaGrad has no weight decay, that of weight {index} is {self._get_wd(index)}")
        nd.contrib.group_adagrad_update(weight, grad, state, out=weight, lr=self._get_lr(index),
                                        epsilon=self.float_stable_eps, **self.limits())
