"""A perceptron with two hidden layers learns scikit-learn's digits, by Module.fit: the shortest whole training program.

    python examples/train_mlp.py
"""
from __future__ import annotations

import logging

import numpy as np
from lenet import digits

import mxc as mx


def network() -> mx.sym.Symbol:
    """Three dense layers; SoftmaxOutput is the probabilities and, going backward, the gradient of the cross entropy."""
    net = mx.sym.Flatten(mx.sym.var("data"))
    for i, width in enumerate((128, 64), 1):
        net = mx.sym.FullyConnected(net, num_hidden=width, name=f"fc{i}")
        net = mx.sym.Activation(net, act_type="relu", name=f"relu{i}")
    net = mx.sym.FullyConnected(net, num_hidden=10, name="fc3")
    return mx.sym.SoftmaxOutput(net, name="softmax")  # its label is the variable softmax_label


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # fit tells how far it is
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    train = mx.io.NDArrayIter(images, labels, batch_size=64, shuffle=True)
    test = mx.io.NDArrayIter(test_images, test_labels, batch_size=64)

    module = mx.mod.Module(network(), context=mx.cpu())
    module.fit(train, eval_data=test, num_epoch=10, initializer=mx.init.Xavier(), optimizer="sgd",
               optimizer_params={"learning_rate": 0.1, "momentum": 0.9}, eval_metric="acc")

    print(f"test accuracy {module.score(test, 'acc')[0][1]:.3f}")
    probabilities = module.predict(test).asnumpy()  # without the rows that fill the last batch
    print(f"the first five test images show {test_labels[:5].astype(int)}; "
          f"the network says {probabilities[:5].argmax(axis=1)}")


if __name__ == "__main__":
    main()
