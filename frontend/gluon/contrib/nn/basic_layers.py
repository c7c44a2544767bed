"""Layers that stand beside those of `mx.gluon.nn`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc import ndarray
from mxc.gluon.block import Block
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn.containers import HybridSequential, Sequential
from mxc.gluon.nn.norms import BatchNorm

__all__ = ["Concurrent", "HybridConcurrent", "Identity", "PixelShuffle1D", "PixelShuffle2D", "PixelShuffle3D",
           "SparseEmbedding", "SyncBatchNorm"]


class Concurrent(Sequential):
    """Blocks that all take the same input; their outputs are joined along `axis`."""

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        """The joined outputs."""
        return ndarray.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks that all take the same input; their outputs are joined along `axis`."""

    def __init__(self, axis: int = -1, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The joined outputs."""
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)


class Identity(HybridBlock):
    """Its input: a way past the other blocks of a HybridConcurrent."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return x


class SparseEmbedding(Block):
    """An embedding whose table and gradient are row_sparse: each batch asks the Trainer for the rows that it reads."""

    def __init__(self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None,
                 **kwargs: Any):
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": True}
        self.weight = self.params.get("weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype,
                                      grad_stype="row_sparse", stype="row_sparse")

    def __repr__(self) -> str:
        kwargs = self._kwargs
        return f"{type(self).__name__}({kwargs['input_dim']} -> {kwargs['output_dim']}, {kwargs['dtype']})"

    def forward(self, x: Any) -> Any:
        """The rows at the indices `x`."""
        return ndarray.Embedding(x, self.weight.row_sparse_data(x), name="fwd", **self._kwargs)


class SyncBatchNorm(BatchNorm):
    """A BatchNorm over the parts of a batch on all devices. One process computes on one device here, so it is a
    BatchNorm; num_devices has no effect."""

    # MXNet's signature
    def __init__(self, in_channels: int = 0, num_devices: int | None = None, momentum: float = 0.9,
                 epsilon: float = 1e-5, center: bool = True, scale: bool = True, use_global_stats: bool = False,
                 beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
                 running_mean_initializer: Any = "zeros", running_variance_initializer: Any = "ones", **kwargs: Any):
        super().__init__(1, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer,
                         running_mean_initializer, running_variance_initializer, in_channels, **kwargs)
        self._kwargs = {key: value for key, value in self._kwargs.items() if key != "axis"}
        self._kwargs |= {"ndev": 1 if num_devices is None else num_devices, "key": self.prefix}

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        """See the class."""
        return F.contrib.SyncBatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class _PixelShuffle(HybridBlock):
    """Channels as finer positions: (N, f * C, W, ...) as (N, C, f * W, ...), f the product of the factors."""

    def __init__(self, factor: int | Sequence[int], axes: int):
        super().__init__()
        self._factors = (factor,) * axes if isinstance(factor, int) else tuple(map(int, factor))
        if len(self._factors) != axes:
            raise ValueError(f"factor has {len(self._factors)} numbers; expected one, or {axes}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors if len(self._factors) > 1 else self._factors[0]})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        count, whole = len(self._factors), 1
        for factor in self._factors:
            whole *= factor
        # the channels as (C, f1, f2, ...), then each factor behind its axis, then both as one
        x = F.reshape(x, (0, -4, -1, whole) + (0,) * count)
        for i, factor in enumerate(self._factors[:-1]):
            x = F.reshape(x, (0, 0, *(0,) * i, -4, factor, -1) + (0,) * count)
        order = [0, 1, *(axis for i in range(count) for axis in (2 + count + i, 2 + i))]
        x = F.transpose(x, axes=tuple(order))
        return F.reshape(x, (0, 0, *(-3,) * count))


class PixelShuffle1D(_PixelShuffle):
    """(N, f * C, W) as (N, C, f * W)."""

    def __init__(self, factor: int | Sequence[int]):
        super().__init__(factor, 1)


class PixelShuffle2D(_PixelShuffle):
    """(N, f1 * f2 * C, H, W) as (N, C, f1 * H, f2 * W) (arXiv 1609.05158)."""

    def __init__(self, factor: int | Sequence[int]):
        super().__init__(factor, 2)


class PixelShuffle3D(_PixelShuffle):
    """(N, f1 * f2 * f3 * C, D, H, W) as (N, C, f1 * D, f2 * H, f3 * W)."""

    def __init__(self, factor: int | Sequence[int]):
        super().__init__(factor, 3)
