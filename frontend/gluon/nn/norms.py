"""Normalizations, with scale gamma and offset beta."""
from __future__ import annotations

from typing import Any

import numpy as np

from mxc.gluon.hybrid_block import HybridBlock

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]


def _scale_and_offset(block: HybridBlock, shape: tuple[int, ...], scale: bool, center: bool, initializers: Any,
                      **kwargs: Any) -> tuple[Any, Any]:
    """gamma and beta; without scale or center they stay as they start."""
    return (block.params.get("gamma", grad_req="write" if scale else "null", shape=shape, init=initializers[0],
                             allow_deferred_init=True, **kwargs),
            block.params.get("beta", grad_req="write" if center else "null", shape=shape, init=initializers[1],
                             allow_deferred_init=True, **kwargs))


def _text(block: HybridBlock, kwargs: dict[str, Any], channels: Any) -> str:
    content = ", ".join(f"{key}={value!r}" for key, value in kwargs.items())
    return f"{type(block).__name__}({content}, in_channels={channels})"


class _BatchNorm(HybridBlock):
    """Normalizes each channel over the batch in training, and by moving means and variances otherwise.

    axis: of the channels. momentum: of the moving values. epsilon: is added to the variance. center, scale: whether
    beta and gamma are learned. use_global_stats: the moving values in training too. in_channels: 0 for what the first
    input tells.
    """

    _operator = "BatchNorm"

    # many parameters: those that the layers below have in common.
    def __init__(self, axis: int = 1, momentum: float = 0.9, epsilon: float = 1e-5, center: bool = True,
                 scale: bool = True, use_global_stats: bool = False, beta_initializer: Any = "zeros",
                 gamma_initializer: Any = "ones", running_mean_initializer: Any = "zeros",
                 running_variance_initializer: Any = "ones", in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs: dict[str, Any] = {"axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale,
                                        "use_global_stats": use_global_stats}
        if in_channels:
            self.in_channels = in_channels
        shape = (in_channels,)
        self.gamma, self.beta = _scale_and_offset(self, shape, scale, center, (gamma_initializer, beta_initializer),
                                                  differentiable=True)
        self.gamma._differentiable, self.beta._differentiable = scale, center
        self.running_mean = self.params.get("running_mean", grad_req="null", shape=shape,
                                            init=running_mean_initializer, allow_deferred_init=True,
                                            differentiable=False)
        self.running_var = self.params.get("running_var", grad_req="null", shape=shape,
                                           init=running_variance_initializer, allow_deferred_init=True,
                                           differentiable=False)

    def __repr__(self) -> str:
        return _text(self, self._kwargs, self.gamma.shape[0] or None)

    def cast(self, dtype: Any) -> None:
        """Cast the parameters; those of float16 layers stay float32."""
        super().cast("float32" if np.dtype(dtype).name == "float16" else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See the class."""
        return getattr(F, self._operator)(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class BatchNorm(_BatchNorm):
    __doc__ = _BatchNorm.__doc__


class BatchNormReLU(_BatchNorm):
    """A BatchNorm, and then 0 for what is negative."""

    _operator = "BatchNorm"

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See the class."""
        return F.contrib.BatchNormWithReLU(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class InstanceNorm(HybridBlock):
    """Normalizes each channel of each example over its positions. axis: of the channels."""

    def __init__(self, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = False,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", in_channels: int = 0,
                 **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis, self._epsilon = axis, epsilon
        self.gamma, self.beta = _scale_and_offset(self, (in_channels,), scale, center,
                                                  (gamma_initializer, beta_initializer))

    def __repr__(self) -> str:
        return _text(self, self._kwargs, self.gamma.shape[0])

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """See the class."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        turned = F.InstanceNorm(x.swapaxes(1, self._axis), gamma, beta, name="fwd", eps=self._epsilon)
        return turned.swapaxes(1, self._axis)


class LayerNorm(HybridBlock):
    """Normalizes each example along one axis (arXiv 1607.06450)."""

    # MXNet's signature
    def __init__(self, axis: int = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", in_channels: int = 0,
                 prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis, self._epsilon = axis, epsilon
        self.gamma, self.beta = _scale_and_offset(self, (in_channels,), scale, center,
                                                  (gamma_initializer, beta_initializer))

    def __repr__(self) -> str:
        return _text(self, self._kwargs, self.gamma.shape[0])

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """See the class."""
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(HybridBlock):
    """Normalizes groups of channels of each example (arXiv 1803.08494)."""

    def __init__(self, num_groups: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", prefix: str | None = None,
                 params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups, self._epsilon = num_groups, epsilon
        self.gamma, self.beta = _scale_and_offset(self, (num_groups,), scale, center,
                                                  (gamma_initializer, beta_initializer))

    def __repr__(self) -> str:
        content = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({content})"

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """See the class."""
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)
