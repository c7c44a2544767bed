"""AlexNet, for one GPU (arXiv 1404.5997)."""
from __future__ import annotations

from typing import Any

from mxc.context import cpu
from mxc.gluon import nn
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.model_zoo.model_store import ROOT
from mxc.gluon.model_zoo.vision.family import load_weights

__all__ = ["AlexNet", "alexnet"]


class AlexNet(HybridBlock):
    """(N, 3, 224, 224) to (N, classes)."""

    def __init__(self, classes: int = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                self.features.add(
                    nn.Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Conv2D(192, kernel_size=5, padding=2, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Conv2D(384, kernel_size=3, padding=1, activation="relu"),
                    nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                    nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                    nn.MaxPool2D(pool_size=3, strides=2),
                    nn.Flatten(),
                    nn.Dense(4096, activation="relu"), nn.Dropout(0.5),
                    nn.Dense(4096, activation="relu"), nn.Dropout(0.5))
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return self.output(self.features(x))


def alexnet(pretrained: bool = False, ctx: Any = cpu(), root: str = ROOT, **kwargs: Any) -> AlexNet:  # noqa: B008
    """AlexNet. pretrained: with the weights in the folder `root`."""
    net = AlexNet(**kwargs)
    if pretrained:
        load_weights(net, "alexnet", ctx, root)
    return net
