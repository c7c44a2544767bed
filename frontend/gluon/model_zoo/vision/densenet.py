"""DenseNets (arXiv 1608.06993)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.contrib.nn import HybridConcurrent, Identity
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights, named

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

# By the number of layers: channels of the first convolution, channels that each layer adds, layers of each stage.
SPECS = {121: (64, 32, [6, 12, 24, 16]), 161: (96, 48, [6, 12, 36, 24]), 169: (64, 32, [6, 12, 32, 32]),
         201: (64, 32, [6, 12, 48, 32])}


def _dense_layer(growth_rate: int, bn_size: int, dropout: float) -> Any:
    """The input, joined with `growth_rate` new channels."""
    new = nn.HybridSequential(prefix="")
    new.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(bn_size * growth_rate, kernel_size=1, use_bias=False),
            nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(growth_rate, kernel_size=3, padding=1, use_bias=False))
    if dropout:
        new.add(nn.Dropout(dropout))
    out = HybridConcurrent(axis=1, prefix="")
    out.add(Identity(), new)
    return out


class DenseNet(HybridBlock):
    """(N, 3, 224, 224) to (N, classes). block_config: layers of each stage. bn_size: channels inside of a layer, by
    those that it adds."""

    def __init__(self, num_init_features: int, growth_rate: int, block_config: Sequence[int], bn_size: int = 4,
                 dropout: float = 0, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False),
                              nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(pool_size=3, strides=2, padding=1))
            channels = num_init_features
            for i, count in enumerate(block_config):
                stage = nn.HybridSequential(prefix=f"stage{i + 1}_")
                with stage.name_scope():
                    for _ in range(count):
                        stage.add(_dense_layer(growth_rate, bn_size, dropout))
                self.features.add(stage)
                channels += count * growth_rate
                if i != len(block_config) - 1:
                    channels //= 2
                    narrow = nn.HybridSequential(prefix="")
                    narrow.add(nn.BatchNorm(), nn.Activation("relu"),
                               nn.Conv2D(channels, kernel_size=1, use_bias=False),
                               nn.AvgPool2D(pool_size=2, strides=2))
                    self.features.add(narrow)
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(pool_size=7), nn.Flatten())
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


def get_densenet(num_layers: int, pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT,  # noqa: B008
                 **kwargs: Any) -> DenseNet:
    """A DenseNet. num_layers: 121, 161, 169 or 201. pretrained: with the weights in the folder `root`."""
    if num_layers not in SPECS:
        raise AssertedError(f"there is no DenseNet of {num_layers} layers here; expected one of "
                            f"{', '.join(map(str, SPECS))}")
    net = DenseNet(*SPECS[num_layers], **kwargs)
    if pretrained:
        load_weights(net, f"densenet{num_layers}", ctx, root)
    return net


densenet121, densenet161, densenet169, densenet201 = (
    named(f"densenet{n}", f"The DenseNet of {n} layers; see `get_densenet`.", get_densenet, n) for n in SPECS)
