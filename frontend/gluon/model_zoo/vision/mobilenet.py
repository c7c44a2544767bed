"""MobileNets, version 1 (arXiv 1704.04861) and version 2 (arXiv 1801.04381)."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights, named

__all__ = ["MobileNet", "MobileNetV2", "get_mobilenet", "get_mobilenet_v2", "mobilenet0_5", "mobilenet0_25",
           "mobilenet0_75", "mobilenet1_0", "mobilenet_v2_0_5", "mobilenet_v2_0_25", "mobilenet_v2_0_75",
           "mobilenet_v2_1_0"]

# Version 1, of each depthwise separable convolution: channels of its input and output, and stride.
SEPARABLE = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
             *[(512, 512, 1)] * 5, (512, 1024, 2), (1024, 1024, 1)]
# Version 2, of each bottleneck: channels of its input and output, how many times as many inside, and stride.
BOTTLENECKS = [(32, 16, 1, 1), (16, 24, 6, 2), (24, 24, 6, 1), (24, 32, 6, 2), (32, 32, 6, 1), (32, 32, 6, 1),
               (32, 64, 6, 2), (64, 64, 6, 1), (64, 64, 6, 1), (64, 64, 6, 1), (64, 96, 6, 1), (96, 96, 6, 1),
               (96, 96, 6, 1), (96, 160, 6, 2), (160, 160, 6, 1), (160, 160, 6, 1), (160, 320, 6, 1)]


class RELU6(nn.HybridBlock):
    """x between 0 and 6."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.clip(x, 0, 6, name="relu6")


def _add_conv(out: Any, channels: int, kernel: int = 1, stride: int = 1, pad: int = 0, num_group: int = 1,
              active: bool = True, relu6: bool = False) -> None:
    """A convolution, a BatchNorm and an activation."""
    out.add(nn.Conv2D(channels, kernel, stride, pad, groups=num_group, use_bias=False), nn.BatchNorm(scale=True))
    if active:
        out.add(RELU6() if relu6 else nn.Activation("relu"))


class LinearBottleneck(nn.HybridBlock):
    """A 1x1 convolution to t times the channels, a depthwise 3x3 one, and a 1x1 one without activation; x is added
    where the shape stays."""

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, in_channels * t, relu6=True)
            _add_conv(self.out, in_channels * t, kernel=3, stride=stride, pad=1, num_group=in_channels * t, relu6=True)
            _add_conv(self.out, channels, active=False, relu6=True)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(HybridBlock):
    """(N, 3, 224, 224) to (N, classes). multiplier: of the numbers of channels."""

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), kernel=3, pad=1, stride=2)
                for given, made, stride in SEPARABLE:
                    inner = int(given * multiplier)
                    _add_conv(self.features, inner, kernel=3, stride=stride, pad=1, num_group=inner)
                    _add_conv(self.features, int(made * multiplier))
                self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


class MobileNetV2(nn.HybridBlock):
    """(N, 3, 224, 224) to (N, classes). multiplier: of the numbers of channels."""

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), kernel=3, stride=2, pad=1, relu6=True)
                for given, made, t, stride in BOTTLENECKS:
                    self.features.add(LinearBottleneck(int(given * multiplier), int(made * multiplier), t, stride))
                last = int(1280 * multiplier) if multiplier > 1.0 else 1280
                _add_conv(self.features, last, relu6=True)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


def _suffix(multiplier: float) -> str:
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def get_mobilenet(multiplier: float, pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT,  # noqa: B008
                  **kwargs: Any) -> MobileNet:
    """A MobileNet. multiplier: of the numbers of channels. pretrained: with the weights in the folder `root`."""
    net = MobileNet(multiplier, **kwargs)
    if pretrained:
        load_weights(net, f"mobilenet{_suffix(multiplier)}", ctx, root)
    return net


def get_mobilenet_v2(multiplier: float, pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT,  # noqa: B008
                     **kwargs: Any) -> MobileNetV2:
    """A MobileNet of version 2. multiplier: of the numbers of channels. pretrained: with the weights in `root`."""
    net = MobileNetV2(multiplier, **kwargs)
    if pretrained:
        load_weights(net, f"mobilenetv2_{_suffix(multiplier)}", ctx, root)
    return net


def _all(name: str, get: Any) -> Iterator[Any]:
    """A function for each multiplier."""
    for multiplier in (1.0, 0.75, 0.5, 0.25):
        yield named(f"{name}{str(multiplier).replace('.', '_')}", f"{get.__name__}({multiplier}, ...)", get, multiplier)


mobilenet1_0, mobilenet0_75, mobilenet0_5, mobilenet0_25 = _all("mobilenet", get_mobilenet)
mobilenet_v2_1_0, mobilenet_v2_0_75, mobilenet_v2_0_5, mobilenet_v2_0_25 = _all("mobilenet_v2_", get_mobilenet_v2)
