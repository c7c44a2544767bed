"""Residual networks, version 1 (arXiv 1512.03385) and version 2 (arXiv 1603.05027)."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights, named

__all__ = ["BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "ResNetV1", "ResNetV2", "get_resnet",
           "resnet18_v1", "resnet18_v2", "resnet34_v1", "resnet34_v2", "resnet50_v1", "resnet50_v2", "resnet101_v1",
           "resnet101_v2", "resnet152_v1", "resnet152_v2"]

# By the number of layers: the kind of block, blocks in each stage, channels before the first stage and after each.
SPECS = {18: ("basic", [2, 2, 2, 2], [64, 64, 128, 256, 512]),
         34: ("basic", [3, 4, 6, 3], [64, 64, 128, 256, 512]),
         50: ("bottleneck", [3, 4, 6, 3], [64, 256, 512, 1024, 2048]),
         101: ("bottleneck", [3, 4, 23, 3], [64, 256, 512, 1024, 2048]),
         152: ("bottleneck", [3, 8, 36, 3], [64, 256, 512, 1024, 2048])}


def _conv3x3(channels: int, stride: int, in_channels: int) -> Any:
    return nn.Conv2D(channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """relu(body(x) + x), where x is brought to the body's shape by `downsample`."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential(prefix="")
        self._add_body(channels, stride, in_channels)
        self.downsample = None
        if downsample:
            self.downsample = nn.HybridSequential(prefix="")
            self.downsample.add(nn.Conv2D(channels, kernel_size=1, strides=stride, use_bias=False,
                                          in_channels=in_channels), nn.BatchNorm())

    def _add_body(self, channels: int, stride: int, in_channels: int) -> None:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        made, past = self.body(x), x if self.downsample is None else self.downsample(x)
        return F.Activation(self._sum(past, made), act_type="relu")

    def _sum(self, past: Any, made: Any) -> Any:
        """In the order of MXNet's graphs, which differs between the blocks."""
        return past + made


class BasicBlockV1(_BlockV1):
    """Two 3x3 convolutions, each with a BatchNorm: the block of 18 and 34 layers."""

    def _add_body(self, channels: int, stride: int, in_channels: int) -> None:
        self.body.add(_conv3x3(channels, stride, in_channels), nn.BatchNorm(), nn.Activation("relu"),
                      _conv3x3(channels, 1, channels), nn.BatchNorm())


class BottleneckV1(_BlockV1):
    """Convolutions 1x1, 3x3 and 1x1, the inner ones of a fourth of the channels: the block of 50 layers and more."""

    def _add_body(self, channels: int, stride: int, in_channels: int) -> None:
        inner = channels // 4
        self.body.add(nn.Conv2D(inner, kernel_size=1, strides=stride), nn.BatchNorm(), nn.Activation("relu"),
                      _conv3x3(inner, 1, inner), nn.BatchNorm(), nn.Activation("relu"),
                      nn.Conv2D(channels, kernel_size=1, strides=1), nn.BatchNorm())

    def _sum(self, past: Any, made: Any) -> Any:
        return made + past


class _BlockV2(HybridBlock):
    """x + convolutions, each after a BatchNorm and a relu; `downsample` reads what the first relu gives."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any):
        super().__init__(**kwargs)
        self._pairs: list[tuple[Any, Any]] = []
        for i, make in enumerate(self._convolutions(channels, stride, in_channels), 1):
            setattr(self, f"bn{i}", nn.BatchNorm())
            setattr(self, f"conv{i}", make())
            self._pairs.append((getattr(self, f"bn{i}"), getattr(self, f"conv{i}")))
        self.downsample = nn.Conv2D(channels, 1, stride, use_bias=False,
                                    in_channels=in_channels) if downsample else None

    def _convolutions(self, channels: int, stride: int, in_channels: int) -> list[Any]:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        past = x
        for i, (norm, convolution) in enumerate(self._pairs):
            x = F.Activation(norm(x), act_type="relu")
            if i == 0 and self.downsample is not None:
                past = self.downsample(x)
            x = convolution(x)
        return x + past


class BasicBlockV2(_BlockV2):
    """Two 3x3 convolutions: the block of 18 and 34 layers."""

    def _convolutions(self, channels: int, stride: int, in_channels: int) -> list[Any]:
        return [lambda: _conv3x3(channels, stride, in_channels), lambda: _conv3x3(channels, 1, channels)]


class BottleneckV2(_BlockV2):
    """Convolutions 1x1, 3x3 and 1x1, the inner ones of a fourth of the channels: the block of 50 layers and more."""

    def _convolutions(self, channels: int, stride: int, in_channels: int) -> list[Any]:
        inner = channels // 4
        return [lambda: nn.Conv2D(inner, kernel_size=1, strides=1, use_bias=False),
                lambda: _conv3x3(inner, stride, inner),
                lambda: nn.Conv2D(channels, kernel_size=1, strides=1, use_bias=False)]


class _ResNet(HybridBlock):
    """What both versions share. block: the class of blocks. layers: blocks in each stage. channels: before the first
    stage and after each. thumbnail: for images of 32 pixels: a 3x3 convolution in place of the first layers.

    Raises AssertionError when layers and channels do not fit.
    """

    def __init__(self, block: Any, layers: Sequence[int], channels: Sequence[int], classes: int = 1000,
                 thumbnail: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise AssertedError(f"{len(layers)} stages need {len(layers) + 1} numbers of channels, got {len(channels)}")
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self._add_features(block, layers, channels, thumbnail)
            self.output = nn.Dense(classes, in_units=channels[-1])

    def _add_features(self, block: Any, layers: Sequence[int], channels: Sequence[int], thumbnail: bool) -> None:
        raise NotImplementedError

    def _add_first(self, channels: int, thumbnail: bool) -> None:
        if thumbnail:
            self.features.add(_conv3x3(channels, 1, 0))
        else:
            self.features.add(nn.Conv2D(channels, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"),
                              nn.MaxPool2D(3, 2, 1))

    def _stage(self, block: Any, count: int, channels: int, number: int, in_channels: int) -> Any:
        """The blocks of a stage, of which all but the first stage's halve height and width."""
        stage = nn.HybridSequential(prefix=f"stage{number}_")
        with stage.name_scope():
            stage.add(block(channels, 1 if number == 1 else 2, channels != in_channels, in_channels=in_channels,
                            prefix=""))
            for _ in range(count - 1):
                stage.add(block(channels, 1, False, in_channels=channels, prefix=""))
        return stage

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """(N, 3, H, W) to (N, classes)."""
        return self.output(self.features(x))


class ResNetV1(_ResNet):
    """A residual network of version 1; see `_ResNet`."""

    def _add_features(self, block: Any, layers: Sequence[int], channels: Sequence[int], thumbnail: bool) -> None:
        self._add_first(channels[0], thumbnail)
        for i, count in enumerate(layers):
            self.features.add(self._stage(block, count, channels[i + 1], i + 1, channels[i]))
        self.features.add(nn.GlobalAvgPool2D())


class ResNetV2(_ResNet):
    """A residual network of version 2; see `_ResNet`."""

    def _add_features(self, block: Any, layers: Sequence[int], channels: Sequence[int], thumbnail: bool) -> None:
        self.features.add(nn.BatchNorm(scale=False, center=False))
        self._add_first(channels[0], thumbnail)
        before = channels[0]
        for i, count in enumerate(layers):
            self.features.add(self._stage(block, count, channels[i + 1], i + 1, before))
            before = channels[i + 1]
        self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten())


NETS = (ResNetV1, ResNetV2)
BLOCKS = ({"basic": BasicBlockV1, "bottleneck": BottleneckV1}, {"basic": BasicBlockV2, "bottleneck": BottleneckV2})


def get_resnet(version: int, num_layers: int, pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT,  # noqa: B008
               **kwargs: Any) -> Any:
    """A residual network. version: 1 or 2. num_layers: 18, 34, 50, 101 or 152. pretrained: with the weights in the
    folder `root`. Raises AssertionError for others."""
    if num_layers not in SPECS:
        raise AssertedError(f"there is no ResNet of {num_layers} layers here; expected one of "
                            f"{', '.join(map(str, SPECS))}")
    if version not in (1, 2):
        raise AssertedError(f"there is no ResNet version {version}; expected 1 or 2")
    kind, layers, channels = SPECS[num_layers]
    net = NETS[version - 1](BLOCKS[version - 1][kind], layers, channels, **kwargs)
    if pretrained:
        load_weights(net, f"resnet{num_layers}_v{version}", ctx, root)
    return net


def _all(version: int) -> Iterator[Any]:
    """A function for each number of layers."""
    for n in SPECS:
        doc = f"The residual network of {n} layers, version {version}; see `get_resnet`."
        yield named(f"resnet{n}_v{version}", doc, get_resnet, version, n)


resnet18_v1, resnet34_v1, resnet50_v1, resnet101_v1, resnet152_v1 = _all(1)
resnet18_v2, resnet34_v2, resnet50_v2, resnet101_v2, resnet152_v2 = _all(2)
