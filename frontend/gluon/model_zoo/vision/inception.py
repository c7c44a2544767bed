"""Inception v3 (arXiv 1512.00567)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.contrib.nn import HybridConcurrent
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights

__all__ = ["Inception3", "inception_v3"]

# Of a convolution: channels, kernel, stride, padding.
Setting = tuple[int, Any, Any, Any]


def _convolution(channels: int, kernel: Any, stride: Any = None, padding: Any = None) -> Any:
    """A convolution without bias, a BatchNorm and a relu."""
    given = {"strides": stride, "padding": padding}
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel_size=kernel, use_bias=False,
                      **{name: value for name, value in given.items() if value is not None}),
            nn.BatchNorm(epsilon=0.001), nn.Activation("relu"))
    return out


def _way(pooling: str | None, *settings: Setting) -> Any:
    """A pooling, if any, and convolutions one after the other."""
    out = nn.HybridSequential(prefix="")
    if pooling == "avg":
        out.add(nn.AvgPool2D(pool_size=3, strides=1, padding=1))
    elif pooling == "max":
        out.add(nn.MaxPool2D(pool_size=3, strides=2))
    for setting in settings:
        out.add(_convolution(*setting))
    return out


def _ways(prefix: str, ways: Sequence[tuple[Any, ...]]) -> Any:
    """Ways side by side, given as `_way` takes them."""
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        for way in ways:
            out.add(_way(*way))
    return out


def _plain(channels: int, kernel: Any = 1, padding: Any = None) -> Setting:
    return channels, kernel, None, padding


def _block_a(pooled: int, prefix: str) -> Any:
    return _ways(prefix, [(None, _plain(64)), (None, _plain(48), _plain(64, 5, 2)),
                          (None, _plain(64), _plain(96, 3, 1), _plain(96, 3, 1)), ("avg", _plain(pooled))])


def _block_b(prefix: str) -> Any:
    return _ways(prefix, [(None, (384, 3, 2, None)), (None, _plain(64), _plain(96, 3, 1), (96, 3, 2, None)), ("max",)])


def _block_c(inner: int, prefix: str) -> Any:
    wide, high = ((1, 7), (0, 3)), ((7, 1), (3, 0))
    return _ways(prefix, [
        (None, _plain(192)), (None, _plain(inner), _plain(inner, *wide), _plain(192, *high)),
        (None, _plain(inner), _plain(inner, *high), _plain(inner, *wide), _plain(inner, *high), _plain(192, *wide)),
        ("avg", _plain(192))])


def _block_d(prefix: str) -> Any:
    return _ways(prefix, [
        (None, _plain(192), (320, 3, 2, None)),
        (None, _plain(192), _plain(192, (1, 7), (0, 3)), _plain(192, (7, 1), (3, 0)), (192, 3, 2, None)), ("max",)])


def _block_e(prefix: str) -> Any:
    out = HybridConcurrent(axis=1, prefix=prefix)
    with out.name_scope():
        out.add(_way(None, _plain(320)))
        for settings in ([_plain(384)], [_plain(448), _plain(384, 3, 1)]):
            forked, fork = nn.HybridSequential(prefix=""), HybridConcurrent(axis=1, prefix="")
            out.add(forked)
            forked.add(_way(None, *settings))
            fork.add(_way(None, _plain(384, (1, 3), (0, 1))), _way(None, _plain(384, (3, 1), (1, 0))))
            forked.add(fork)
        out.add(_way("avg", _plain(192)))
    return out


class Inception3(HybridBlock):
    """(N, 3, 299, 299) to (N, classes)."""

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(
                _convolution(32, 3, 2), _convolution(32, 3), _convolution(64, 3, padding=1),
                nn.MaxPool2D(pool_size=3, strides=2), _convolution(80, 1), _convolution(192, 3),
                nn.MaxPool2D(pool_size=3, strides=2), _block_a(32, "A1_"), _block_a(64, "A2_"), _block_a(64, "A3_"),
                _block_b("B_"), _block_c(128, "C1_"), _block_c(160, "C2_"), _block_c(160, "C3_"), _block_c(192, "C4_"),
                _block_d("D_"), _block_e("E1_"), _block_e("E2_"), nn.AvgPool2D(pool_size=8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


def inception_v3(pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT, **kwargs: Any) -> Inception3:  # noqa: B008
    """Inception v3. pretrained: with the weights in the folder `root`."""
    net = Inception3(**kwargs)
    if pretrained:
        load_weights(net, "inceptionv3", ctx, root)
    return net
