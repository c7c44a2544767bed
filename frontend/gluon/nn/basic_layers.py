"""Layers without windows: dense ones, embeddings, dropout, norms."""
from __future__ import annotations

from typing import Any

from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn.activations import Activation
from mxc.gluon.nn.containers import HybridLambda, HybridSequential, Lambda, Sequential
from mxc.gluon.nn.norms import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm
from mxc.runtime.elsewhere import elsewhere

__getattr__, _ = elsewhere(__name__, {}, {
    "": "nd=mxc.ndarray np=numpy sym=mxc.symbol warnings", "mxc.gluon.block": "Block",
    "mxc.gluon.nn.norms": "_BatchNorm", "mxc.util": "is_np_array"})

__all__ = ["BatchNorm", "BatchNormReLU", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm", "HybridLambda",
           "HybridSequential", "InstanceNorm", "Lambda", "LayerNorm", "Sequential"]


class Dense(HybridBlock):
    """A fully connected layer: activation(x . weight' + bias).

    units: of the output. activation: a name of the operator Activation's. flatten: all axes but the first are features;
    else the last alone. weight (units, in_units), bias (units,). in_units: 0 for what the first input tells.
    """

    # MXNet's signature
    def __init__(self, units: int, activation: str | None = None, use_bias: bool = True, flatten: bool = True,
                 dtype: Any = "float32", weight_initializer: Any = None, bias_initializer: Any = "zeros",
                 in_units: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._units, self._in_units, self._flatten = units, in_units, flatten
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(units, in_units), init=weight_initializer, dtype=dtype,
                                          allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype,
                                        allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def __repr__(self) -> str:
        shape = self.weight.shape
        assert shape is not None
        return (f"{type(self).__name__}({shape[1] if shape[1] else None} -> {shape[0]}, "
                f"{self.act if self.act else 'linear'})")

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """See the class."""
        out = F.FullyConnected(x, weight, bias, num_hidden=self._units, no_bias=bias is None, flatten=self._flatten,
                               name="fwd")
        return out if self.act is None else self.act(out)


class Dropout(HybridBlock):
    """Sets elements to 0 with the probability `rate` in training, and scales the others so that their mean stays.

    axes: along these all elements share what is drawn.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any):
        super().__init__(**kwargs)
        self._rate, self._axes = rate, axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)


class Embedding(HybridBlock):
    """The rows of a table (input_dim, output_dim) at given indices. sparse_grad: its gradient is row_sparse."""

    def __init__(self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None,
                 sparse_grad: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": sparse_grad}
        self.weight = self.params.get("weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                                      allow_deferred_init=True,
                                      grad_stype="row_sparse" if sparse_grad else "default")

    def __repr__(self) -> str:
        kwargs = self._kwargs
        return f"{type(self).__name__}({kwargs['input_dim']} -> {kwargs['output_dim']}, {kwargs['dtype']})"

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        """See the class."""
        return F.Embedding(x, weight, name="fwd", **self._kwargs)


class Flatten(HybridBlock):
    """(N, ...) as (N, all others)."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)

    def __repr__(self) -> str:
        return type(self).__name__

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.Flatten(x)
