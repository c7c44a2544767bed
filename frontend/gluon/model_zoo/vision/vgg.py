"""VGG networks (arXiv 1409.1556), with and without BatchNorm."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc import initializer
from mxc.compiler.error import AssertedError
from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights, named

__all__ = ["VGG", "get_vgg", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn"]

FILTERS = [64, 128, 256, 512, 512]
SPECS = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}  # convolutions of stages


class VGG(HybridBlock):
    """(N, 3, 224, 224) to (N, classes). layers: convolutions in each stage; filters: their channels.

    Raises AssertionError when there are not as many of both.
    """

    def __init__(self, layers: Sequence[int], filters: Sequence[int], classes: int = 1000, batch_norm: bool = False,
                 **kwargs: Any):
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise AssertedError(f"{len(layers)} stages need as many numbers of filters, got {len(filters)}")
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            for count, channels in zip(layers, filters, strict=True):
                for _ in range(count):
                    self.features.add(nn.Conv2D(
                        channels, kernel_size=3, padding=1, bias_initializer="zeros",
                        weight_initializer=initializer.Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)))
                    if batch_norm:
                        self.features.add(nn.BatchNorm())
                    self.features.add(nn.Activation("relu"))
                self.features.add(nn.MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(nn.Dense(4096, activation="relu", weight_initializer="normal",
                                           bias_initializer="zeros"), nn.Dropout(rate=0.5))
            self.output = nn.Dense(classes, weight_initializer="normal", bias_initializer="zeros")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


def get_vgg(num_layers: int, pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT, **kwargs: Any) -> VGG:  # noqa: B008
    """A VGG network. num_layers: 11, 13, 16 or 19. pretrained: with the weights in the folder `root`."""
    if num_layers not in SPECS:
        raise AssertedError(f"there is no VGG of {num_layers} layers here; expected one of "
                            f"{', '.join(map(str, SPECS))}")
    net = VGG(SPECS[num_layers], FILTERS, **kwargs)
    if pretrained:
        load_weights(net, f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}", ctx, root)
    return net


vgg11, vgg13, vgg16, vgg19 = (
    named(f"vgg{n}", f"VGG of {n} layers; see `get_vgg`.", get_vgg, n) for n in SPECS)
vgg11_bn, vgg13_bn, vgg16_bn, vgg19_bn = (
    named(f"vgg{n}_bn", f"VGG of {n} layers, with BatchNorm; see `get_vgg`.", get_vgg, n, batch_norm=True)
    for n in SPECS)
