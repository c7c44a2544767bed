"""Blocks and gradients of one's own in Gluon: a layer with a weight that is a sign, whose gradient is an
`autograd.Function`, in a network that learns scikit-learn's digits.

    python examples/gluon_own.py
"""
from __future__ import annotations

import numpy as np
from lenet import digits

import mxc as mx
from mxc import autograd, gluon
from mxc.gluon import nn

BATCH, EPOCHS = 50, 8


class Sign(autograd.Function):
    """1 or -1; the gradient passes as if it were the data, where that lies between -1 and 1."""

    def forward(self, x):
        self.save_for_backward(x)
        return 2 * (x >= 0) - 1

    def backward(self, dy):
        (x,) = self.saved_tensors
        return dy * (x.abs() <= 1)


class SignedDense(gluon.Block):
    """A dense layer whose weight is 1 or -1, over the root of how many there are."""

    def __init__(self, units: int, in_units: int):
        super().__init__()
        self._scale = in_units ** -0.5
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(units, in_units), init=mx.init.Uniform(1))

    def forward(self, x):
        return mx.nd.dot(x, Sign()(self.weight.data(x.context)), transpose_b=True) * self._scale


def network() -> nn.Sequential:
    net = nn.Sequential()
    with net.name_scope():
        net.add(SignedDense(128, 64), nn.BatchNorm(), nn.Activation("relu"), SignedDense(10, 128), nn.BatchNorm())
    return net


def main() -> None:
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    batches = gluon.data.DataLoader(gluon.data.ArrayDataset(images.reshape(-1, 64), labels), BATCH, shuffle=True)
    net = network()
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(EPOCHS):
        for data, label in batches:
            with autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(len(data))
            for block in (net[0], net[3]):  # weights stay where their gradients pass
                block.weight.set_data(block.weight.data().clip(-1, 1))
    found = net(mx.nd.array(test_images.reshape(-1, 64))).argmax(axis=1).asnumpy()
    print(f"weights of one bit: test accuracy {(found == test_labels).mean():.3f}")


if __name__ == "__main__":
    main()
