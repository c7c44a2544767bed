"""Normalizations, with scale gamma and offset beta."""
from __future__ import annotations

from typing import Any

from mxc.compiler.ops.dtypes import NARROW, dtype_name
from mxc.gluon.hybrid_block import HybridBlock

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]


def _scale_and_offset(block: HybridBlock, channels: int, learned: tuple[bool, bool], initializers: tuple[Any, Any],
                      differentiable: tuple[bool, bool] = (True, True)) -> tuple[Any, Any]:
    """gamma and beta, of each of which is said whether it is learned, how it starts, and whether it ever could be
    learned."""
    facts = zip(("gamma", "beta"), learned, initializers, differentiable, strict=True)
    gamma, beta = (
        block.params.get(name, grad_req="write" if is_learned else "null", shape=(channels,), init=init,
                         allow_deferred_init=True, differentiable=may_be) for name, is_learned, init, may_be in facts)
    return gamma, beta


def _text(block: HybridBlock, **facts: Any) -> str:
    return f"{type(block).__name__}({', '.join(f'{key}={value!r}' for key, value in facts.items())})"


class _BatchNorm(HybridBlock):
    """Normalizes each channel over the batch in training, and by moving means and variances otherwise.

    axis: of the channels. momentum: of the moving values. epsilon: is added to the variance. center, scale: whether
    beta and gamma are learned. use_global_stats: the moving values in training too. in_channels: 0 for what the first
    input tells.
    """

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
        learned, shape = (scale, center), (in_channels,)
        self.gamma, self.beta = _scale_and_offset(self, in_channels, learned, (gamma_initializer, beta_initializer),
                                                  differentiable=learned)
        self.running_mean = self.params.get("running_mean", grad_req="null", shape=shape,
                                            init=running_mean_initializer, allow_deferred_init=True,
                                            differentiable=False)
        self.running_var = self.params.get("running_var", grad_req="null", shape=shape,
                                           init=running_variance_initializer, allow_deferred_init=True,
                                           differentiable=False)

    def __repr__(self) -> str:
        return _text(self, **self._kwargs, in_channels=self.gamma.shape[0] or None)

    def cast(self, dtype: Any) -> None:
        """Cast the parameters; those of float16 and bfloat16 layers stay float32."""
        super().cast("float32" if dtype_name(dtype) in NARROW else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See the class."""
        return F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class BatchNorm(_BatchNorm):
    __doc__ = _BatchNorm.__doc__


class BatchNormReLU(_BatchNorm):
    """A BatchNorm, and then 0 for what is negative."""

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See the class."""
        return F.contrib.BatchNormWithReLU(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _ExampleNorm(HybridBlock):
    """What the layers below have in common: they normalize each example by itself."""

    def __init__(self, kwargs: dict[str, Any], channels: int, initializers: tuple[Any, Any], **names: Any):
        super().__init__(**names)
        self._kwargs, self._epsilon = kwargs, kwargs["eps"]
        self.gamma, self.beta = _scale_and_offset(self, channels, (kwargs["scale"], kwargs["center"]), initializers)

    def __repr__(self) -> str:
        return _text(self, **self._kwargs, in_channels=self.gamma.shape[0])


class InstanceNorm(_ExampleNorm):
    """Normalizes each channel of each example over its positions. axis: of the channels."""

    def __init__(self, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = False,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", in_channels: int = 0,
                 **kwargs: Any):
        super().__init__({"eps": epsilon, "axis": axis, "center": center, "scale": scale}, in_channels,
                         (gamma_initializer, beta_initializer), **kwargs)
        self._axis = axis

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        """See the class."""
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        turned = F.InstanceNorm(x.swapaxes(1, self._axis), gamma, beta, name="fwd", eps=self._epsilon)
        return turned.swapaxes(1, self._axis)


class LayerNorm(_ExampleNorm):
    """Normalizes each example along one axis (arXiv 1607.06450)."""

    # MXNet's signature
    def __init__(self, axis: int = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", in_channels: int = 0,
                 prefix: str | None = None, params: Any = None):
        super().__init__({"eps": epsilon, "axis": axis, "center": center, "scale": scale}, in_channels,
                         (gamma_initializer, beta_initializer), prefix=prefix, params=params)
        self._axis = axis

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """See the class."""
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_ExampleNorm):
    """Normalizes groups of channels of each example (arXiv 1803.08494)."""

    def __init__(self, num_groups: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones", prefix: str | None = None,
                 params: Any = None):
        super().__init__({"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}, num_groups,
                         (gamma_initializer, beta_initializer), prefix=prefix, params=params)
        self._num_groups = num_groups

    def __repr__(self) -> str:
        return _text(self, **self._kwargs)

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        """See the class."""
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)
