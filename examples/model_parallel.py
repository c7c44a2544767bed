"""A network whose layers are on two devices: attributes name the group of each layer, Module says where groups are.
Here both are parts of the CPU, so that it runs everywhere.

    python examples/model_parallel.py
"""
from __future__ import annotations

import numpy as np
from lenet import BATCH, digits

import mxc as mx


def network() -> mx.sym.Symbol:
    """Two dense layers in the group `first`, the last and the loss in the group `second`."""
    with mx.AttrScope(ctx_group="first"):
        net = mx.sym.Flatten(mx.sym.var("data"))
        net = mx.sym.FullyConnected(net, num_hidden=128, name="fc1")
        net = mx.sym.Activation(net, act_type="relu", name="relu1")
    with mx.AttrScope(ctx_group="second"):
        net = mx.sym.FullyConnected(net, num_hidden=10, name="fc2")
        return mx.sym.SoftmaxOutput(net, name="softmax")


def trained(group2ctxs: dict[str, mx.Context] | None) -> tuple[mx.mod.Module, float]:
    """The network after some epochs, and its accuracy on test images."""
    np.random.seed(0)
    mx.random.seed(0)
    images, labels, test_images, test_labels = digits()
    module = mx.mod.Module(network(), context=mx.cpu(0), group2ctxs=group2ctxs)
    module.fit(mx.io.NDArrayIter(images, labels, BATCH, shuffle=True), num_epoch=5, initializer=mx.init.Xavier(),
               optimizer_params={"learning_rate": 0.1, "momentum": 0.9})
    return module, module.score(mx.io.NDArrayIter(test_images, test_labels, BATCH), "acc")[0][1]


def main() -> None:
    parted, accuracy = trained({"first": mx.cpu(0), "second": mx.cpu(1)})
    print(f"on two devices: test accuracy {accuracy:.3f}")
    whole, accuracy = trained(None)
    print(f"on one device:  test accuracy {accuracy:.3f}")
    here, there = whole.get_params()[0], parted.get_params()[0]
    most = max(float(abs(here[name].asnumpy() - there[name].asnumpy()).max()) for name in here)
    print(f"the largest difference of a parameter: {most:.1g}")


if __name__ == "__main__":
    main()
