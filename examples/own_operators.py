"""Operators of one's own in a network for scikit-learn's digits: its activation and its pooling are written here, as
plain Python functions. It is trained, saved as an artifact, and run by a process that has neither of them, nor Numba.

    python examples/own_operators.py
"""
from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from lenet import BATCH, accuracy, digits, train

import mxc as mx

RUN = """
import sys

sys.modules["numba"] = None  # importing it fails from here on
import numpy as np
import mxc as mx

path, images, labels = sys.argv[1:]
images, labels = np.load(images), np.load(labels)
probabilities = mx.load(path).predict(data=images)["softmax_output"]
print((probabilities.argmax(axis=1) == labels).mean())
"""


@mx.operator.elementwise("bounded_swish")
def bounded_swish(x, *, bound=6.0):
    """x * sigmoid(x), and `bound` where it would be more. A formula, so mxc finds the gradient itself."""
    y = x / (1 + math.exp(-x))
    return y if y < bound else bound


def soft_pooling_gradient(data, output, grad_output, grad_data, *, sharpness=4.0):
    """Each element of a square gets the share of the square's gradient that its exponential has in the sum of all."""
    for image in range(output.shape[0]):
        for channel in range(output.shape[1]):
            for y in range(output.shape[2]):
                for x in range(output.shape[3]):
                    for i in range(4):
                        row, column = 2 * y + i // 2, 2 * x + i % 2
                        above = data[image, channel, row, column] - output[image, channel, y, x]
                        share = math.exp(sharpness * above) / 4
                        grad_data[image, channel, row, column] = share * grad_output[image, channel, y, x]


@mx.operator.kernel("soft_pooling", shapes=lambda data: (*data[:2], data[2] // 2, data[3] // 2),
                    gradient=soft_pooling_gradient)
def soft_pooling(data, output, *, sharpness=4.0):
    """A smooth maximum over squares of 2 x 2, log(mean(exp(sharpness * x))) / sharpness. data (N, C, H, W)."""
    for image in range(output.shape[0]):
        for channel in range(output.shape[1]):
            for y in range(output.shape[2]):
                for x in range(output.shape[3]):
                    largest = data[image, channel, 2 * y, 2 * x]
                    for i in range(1, 4):
                        largest = max(largest, data[image, channel, 2 * y + i // 2, 2 * x + i % 2])
                    total = 0.0
                    for i in range(4):
                        total += math.exp(sharpness * (data[image, channel, 2 * y + i // 2, 2 * x + i % 2] - largest))
                    output[image, channel, y, x] = largest + math.log(total / 4) / sharpness


def network(classes: int = 10) -> mx.sym.Symbol:
    """LeNet with the two operators in place of tanh and max pooling; input `data` (N, 1, 8, 8)."""
    net = mx.sym.Variable("data")
    for i, filters in enumerate((16, 32), 1):
        net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{i}")
        net = mx.sym.bounded_swish(net, bound=5.0, name=f"swish{i}")
        net = mx.sym.soft_pooling(net, name=f"pool{i}")
    net = mx.sym.Flatten(net)
    net = mx.sym.bounded_swish(mx.sym.FullyConnected(net, num_hidden=64, name="fc1"), name="swish3")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=classes, name="fc2"), name="softmax")


def save(symbol: mx.sym.Symbol, parameters: dict[str, mx.nd.NDArray], path: Path, count: int) -> None:
    """The network as an artifact for `count` images at a time."""
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=(count, 1, 8, 8), softmax_label=(count,))
    executor.copy_params_from(parameters)
    mx.artifact.save(path, [executor], inputs=["data"])


def accuracy_elsewhere(path: Path, images: np.ndarray, labels: np.ndarray) -> float:
    """The accuracy that another process finds, which has the artifact alone."""
    files = [path.with_name("images.npy"), path.with_name("labels.npy")]
    for file, array in zip(files, (images, labels), strict=True):
        np.save(file, array)
    done = subprocess.run([sys.executable, "-c", RUN, path, *files], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    """Train, say how good it is, and have another process say the same."""
    images, labels, test_images, test_labels = digits()
    symbol = network()
    executor, losses = train(symbol, images, labels, epochs=12)
    parameters = {n: a for n, a in executor.arg_dict.items() if n not in ("data", "softmax_label")}
    print(f"loss of the first batch of {BATCH} {losses[0]:.3f}, of the last {losses[-1]:.3f}")
    print(f"accuracy here {accuracy(symbol, parameters, test_images, test_labels):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.mxc"
        save(symbol, parameters, path, len(test_images))
        print(f"accuracy of the artifact without Numba {accuracy_elsewhere(path, test_images, test_labels):.3f}")


if __name__ == "__main__":
    main()
