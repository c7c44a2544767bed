"""SqueezeNet (arXiv 1602.07360), versions 1.0 and 1.1."""
from __future__ import annotations

from typing import Any

from mxc.compiler.error import AssertedError
from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.contrib.nn import HybridConcurrent
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

# Of each fire module the channels that squeeze and those of each way that expands; None is a pooling.
FIRES = {"1.0": [(16, 64), (16, 64), (32, 128), None, (32, 128), (48, 192), (48, 192), (64, 256), None, (64, 256)],
         "1.1": [(16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192), (48, 192), (64, 256), (64, 256)]}
FIRST = {"1.0": (96, 7), "1.1": (64, 3)}  # channels and kernel of the first convolution


def _convolution(channels: int, kernel: int, padding: int = 0) -> Any:
    out = nn.HybridSequential(prefix="")
    out.add(nn.Conv2D(channels, kernel, padding=padding), nn.Activation("relu"))
    return out


def _fire(squeezed: int, expanded: int) -> Any:
    """A 1x1 convolution to few channels, then 1x1 and 3x3 convolutions side by side."""
    out, ways = nn.HybridSequential(prefix=""), HybridConcurrent(axis=1, prefix="")
    out.add(_convolution(squeezed, 1))
    ways.add(_convolution(expanded, 1), _convolution(expanded, 3, 1))
    out.add(ways)
    return out


class SqueezeNet(HybridBlock):
    """(N, 3, 224, 224) to (N, classes). version: "1.0" or "1.1". Raises AssertionError for another."""

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        if version not in FIRES:
            raise AssertedError(f"there is no SqueezeNet version {version!r}; expected '1.0' or '1.1'")
        channels, kernel = FIRST[version]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(channels, kernel_size=kernel, strides=2), nn.Activation("relu"),
                              nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
            for fire in FIRES[version]:
                self.features.add(_fire(*fire) if fire else nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
            self.features.add(nn.Dropout(0.5))
            self.output = nn.HybridSequential(prefix="")
            self.output.add(nn.Conv2D(classes, kernel_size=1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


def _get(version: str, pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT,  # noqa: B008
         **kwargs: Any) -> SqueezeNet:
    net = SqueezeNet(version, **kwargs)
    if pretrained:
        load_weights(net, f"squeezenet{version}", ctx, root)
    return net


def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0. kwargs: `pretrained`, with the weights in the folder
    `root`; `ctx`, and what SqueezeNet takes."""
    return _get("1.0", **kwargs)


def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, with less work for the same accuracy. kwargs: `pretrained`, with the weights in the folder
    `root`; `ctx`, and what SqueezeNet takes."""
    return _get("1.1", **kwargs)
