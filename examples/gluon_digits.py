"""A convolutional network learns scikit-learn's digits with Gluon: blocks, a DataLoader, a Trainer; then it is saved
as Gluon loads it, and exported as Module, MXNet and `mxc compile` read it.

    python examples/gluon_digits.py FOLDER      # it gets digits.params, digits-symbol.json and digits-0000.params
"""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from lenet import digits

import mxc as mx
from mxc import autograd, gluon
from mxc.gluon import nn

BATCH, EPOCHS, RATE = 50, 5, 0.003


def network() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="digits_")
    with net.name_scope():
        net.add(nn.Conv2D(16, kernel_size=3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(),
                nn.Conv2D(32, kernel_size=3, activation="relu"), nn.Flatten(),
                nn.Dense(64, activation="relu"), nn.Dropout(0.3), nn.Dense(10))
    return net


def accuracy(net: gluon.Block, batches: gluon.data.DataLoader) -> float:
    metric = mx.metric.Accuracy()
    for images, labels in batches:
        metric.update(labels, net(images))
    return metric.get()[1]


def main(folder: Path) -> None:
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    train = gluon.data.DataLoader(gluon.data.ArrayDataset(images, labels), BATCH, shuffle=True, last_batch="discard")
    test = gluon.data.DataLoader(gluon.data.ArrayDataset(test_images, test_labels), 256)

    net = network()
    net.initialize(mx.init.Xavier(magnitude=2))
    net.hybridize()  # from here on it is one compiled plan for each shape and mode
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": RATE})
    for epoch in range(EPOCHS):
        total = 0.0
        for data, label in train:
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(BATCH)
            total += loss.mean().asscalar()
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}, test accuracy {accuracy(net, test):.3f}")

    net.save_parameters(folder / "digits.params")
    net.export(str(folder / "digits"))
    again = network()
    again.load_parameters(folder / "digits.params")
    print(f"test accuracy {accuracy(again, test):.3f}: {folder}/digits-symbol.json, {folder}/digits-0000.params")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
