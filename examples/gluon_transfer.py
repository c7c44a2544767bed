"""Transfer learning with Gluon: a network learns the digits 0 to 4; then its features, which stay as they are, serve
another output layer that learns 5 to 9 from a few examples. Images go through transforms of `gluon.data.vision`.

    python examples/gluon_transfer.py
"""
from __future__ import annotations

import numpy as np
from lenet import digits

import mxc as mx
from mxc import autograd, gluon
from mxc.gluon import nn
from mxc.gluon.data.vision import transforms

BATCH, FEW = 32, 200


class Classifier(gluon.HybridBlock):
    """Features, and a layer that tells classes from them, as the networks of the model zoo have."""

    def __init__(self, classes: int, features: nn.HybridSequential | None = None):
        super().__init__()
        with self.name_scope():
            self.features = features or nn.HybridSequential()
            if features is None:
                self.features.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.MaxPool2D(),
                                  nn.Conv2D(32, 3, activation="relu"), nn.Flatten(), nn.Dense(64, activation="relu"))
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


def loader(images: np.ndarray, labels: np.ndarray, chosen: np.ndarray, first: int, **more) -> gluon.data.DataLoader:
    """Batches of the chosen images, whose labels count from `first`."""
    pixels = (images[chosen].transpose(0, 2, 3, 1) * 255).astype("uint8")  # (count, 8, 8, 1), as files have them
    data = gluon.data.ArrayDataset(mx.nd.array(pixels, dtype="uint8"), labels[chosen].astype("float32") - first)
    change = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.3, 0.4)])
    return gluon.data.DataLoader(data.transform_first(change), BATCH, **more)


def fit(net: Classifier, parameters: gluon.ParameterDict, batches: gluon.data.DataLoader, epochs: int) -> None:
    trainer = gluon.Trainer(parameters, "adam", {"learning_rate": 0.003})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(epochs):
        for data, label in batches:
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(len(data))


def accuracy(net: Classifier, batches: gluon.data.DataLoader) -> float:
    metric = mx.metric.Accuracy()
    for data, label in batches:
        metric.update(label, net(data))
    return metric.get()[1]


def main() -> None:
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    net = Classifier(5)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    fit(net, net.collect_params(), loader(images, labels, labels < 5, 0, shuffle=True), 4)
    known = accuracy(net, loader(test_images, test_labels, test_labels < 5, 0))
    print(f"0 to 4: test accuracy {known:.3f}")

    other = Classifier(5, net.features)
    other.output.initialize(mx.init.Xavier())
    before = {name: p.data().asnumpy() for name, p in other.features.collect_params().items()}
    other.features.collect_params().setattr("grad_req", "null")  # they are computed, and no gradients of theirs
    few = np.flatnonzero(labels >= 5)[:FEW]
    fit(other, other.output.collect_params(), loader(images, labels, few, 5, shuffle=True), 60)
    learned = accuracy(other, loader(test_images, test_labels, test_labels >= 5, 5))
    print(f"5 to 9 from {FEW} examples: test accuracy {learned:.3f}")
    same = all((p.data().asnumpy() == before[name]).all() for name, p in other.features.collect_params().items())
    print(f"features as they were: {same}")


if __name__ == "__main__":
    main()
