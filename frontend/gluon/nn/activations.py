"""Activations."""
from __future__ import annotations

from typing import Any

from mxc import initializer
from mxc.gluon.hybrid_block import HybridBlock

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(HybridBlock):
    """A function of each element, by its name: relu, sigmoid, tanh, softrelu or softsign."""

    def __init__(self, activation: str, **kwargs: Any):
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.Activation(x, act_type=self._act_type, name="fwd")


class LeakyReLU(HybridBlock):
    """x where it is positive, else alpha * x. Raises AssertionError for a negative alpha."""

    def __init__(self, alpha: float, **kwargs: Any):
        assert alpha >= 0, f"the slope alpha of a LeakyReLU is not negative, got {alpha}"
        super().__init__(**kwargs)
        self._alpha = alpha

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")


class PReLU(HybridBlock):
    """x where it is positive, else alpha * x, with a learned alpha. in_channels: 1 for one slope, or one a channel."""

    def __init__(self, alpha_initializer: Any = initializer.Constant(0.25), in_channels: int = 1,  # noqa: B008
                 **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        """See the class."""
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """x where it is positive, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """The scaled ELU, which keeps mean and variance (arXiv 1706.02515)."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """x times the normal distribution's probability up to x (arXiv 1606.08415)."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """x * sigmoid(beta * x) (arXiv 1710.05941)."""

    def __init__(self, beta: float = 1.0, **kwargs: Any):
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return x * F.sigmoid(self._beta * x, name="fwd")
