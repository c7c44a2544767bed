"""A network with activations of the program's own: trained on scikit-learn's digits, and compiled into an artifact.

    python examples/own_activation.py [--epochs 3] [-o digits.mxc]

The artifact holds the activations' code: `mxc.load` runs it without this file, and without Numba.
"""
from __future__ import annotations

import argparse
import math

import lenet

import mxc as mx


@mx.operator.elementwise("soft_swish")
def soft_swish(x, *, beta=1.0):
    """x times the sigmoid of beta x: a plain formula, which is differentiated by itself."""
    return x / (1 + math.exp(-beta * x))


def fold_slope(x, *, most=3):
    """The derivative of `fold`: -1 for each time that x is folded."""
    slope = 1.0
    n = 0
    while abs(x) > 2 and n < most:
        x = 4 - x if x > 0 else -4 - x
        slope = -slope
        n += 1
    return slope


@mx.operator.elementwise("fold", gradient=fold_slope)
def fold(x, *, most=3):
    """x folded back at 2 and -2 until it lies between them, which takes a loop: Numba compiles it."""
    n = 0
    while abs(x) > 2 and n < most:
        x = 4 - x if x > 0 else -4 - x
        n += 1
    return x


def network() -> mx.sym.Symbol:
    """Two convolutions with pooling, a fully connected layer, softmax; input `data` (N, 1, 8, 8)."""
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=16, name="conv1")
    net = mx.sym.soft_swish(net, beta=1.5, name="act1")
    net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2), name="pool1")
    net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=32, name="conv2")
    net = mx.sym.fold(net, name="act2")
    net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2), name="pool2")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=10, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("-o", "--output", default="digits.mxc", help="the artifact's file (default: digits.mxc)")
    options = parser.parse_args()
    images, labels, test_images, test_labels = lenet.digits()
    net = network()
    executor, losses = lenet.train(net, images, labels, options.epochs)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    inference = net.simple_bind(mx.cpu(), grad_req="null", data=test_images.shape, softmax_label=test_labels.shape)
    inference.copy_params_from({n: a for n, a in executor.arg_dict.items() if n not in ("data", "softmax_label")})
    mx.artifact.save(options.output, [inference], ["data"])
    found = mx.load(options.output).predict(data=test_images)["softmax_output"].argmax(axis=1)
    print(f"{options.output}: {(found == test_labels).mean():.1%} of {len(test_labels)} images are right")


if __name__ == "__main__":
    main()
