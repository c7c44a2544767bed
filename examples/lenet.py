"""LeNet on scikit-learn's digits (8x8 images, 10 classes), trained by `simple_bind` and a hand-written SGD step."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import mxc as mx

BATCH = 64


def lenet(classes: int = 10) -> mx.sym.Symbol:
    """Two convolutions with pooling, two fully connected layers, softmax; input `data` (N, 1, 8, 8)."""
    net = mx.sym.Variable("data")
    for i, filters in enumerate((16, 32), 1):
        net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{i}")
        net = mx.sym.Activation(net, act_type="tanh", name=f"tanh{i}")
        net = mx.sym.Pooling(net, pool_type="max", kernel=(2, 2), stride=(2, 2), name=f"pool{i}")
    net = mx.sym.Flatten(net)
    net = mx.sym.FullyConnected(net, num_hidden=64, name="fc1")
    net = mx.sym.Activation(net, act_type="tanh", name="tanh3")
    net = mx.sym.FullyConnected(net, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def perceptron(classes: int = 10) -> mx.sym.Symbol:
    """Two fully connected layers with relu between them, softmax; input `data` (N, 64) or (N, 1, 8, 8)."""
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=128, name="fc1")
    net = mx.sym.Activation(net, act_type="relu", name="relu1")
    net = mx.sym.FullyConnected(net, num_hidden=classes, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(train images, train labels, test images, test labels): images float32 (N, 1, 8, 8) in [0, 1]; a fixed split."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = (data.images / 16).astype("float32")[:, None]
    labels = data.target.astype("float32")
    order = np.random.RandomState(0).permutation(len(images))
    train, test = order[:1437], order[1437:]
    return images[train], labels[train], images[test], labels[test]


def start_values(shapes: dict[str, tuple[int, ...]], seed: int = 1) -> dict[str, np.ndarray]:
    """Start values of the parameters, the same for every library: weights uniform by fan-in, biases 0."""
    rng = np.random.RandomState(seed)
    values = {}
    for name in sorted(shapes):
        shape = shapes[name]
        bound = np.sqrt(3 / np.prod(shape[1:])) if len(shape) > 1 else 0
        values[name] = rng.uniform(-bound, bound, shape).astype("float32")
    return values


def batches(images: np.ndarray, labels: np.ndarray, epochs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of BATCH images in a fixed random order, `epochs` times; the incomplete last batch is left out."""
    rng = np.random.RandomState(2)
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[first:first + BATCH]
            yield images[rows], labels[rows]


def cross_entropy(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The mean negative log probability of the right class."""
    right = probabilities[np.arange(len(labels)), labels.astype(int)]
    return float(-np.log(np.maximum(right, 1e-12)).mean())


def train(symbol: mx.sym.Symbol, images: np.ndarray, labels: np.ndarray, epochs: int,
          rate: float = 0.2) -> tuple[mx.executor.Executor, list[float]]:
    """Train by plain SGD on the mean gradient; the executor and the loss of every step."""
    shape = (BATCH, *images.shape[1:])
    executor = symbol.simple_bind(mx.cpu(), data=shape, softmax_label=(BATCH,),
                                  grad_req={n: "null" if n in ("data", "softmax_label") else "write"
                                            for n in symbol.list_arguments()})
    parameters = [n for n in symbol.list_arguments() if n not in ("data", "softmax_label")]
    for name, value in start_values({n: executor.arg_dict[n].shape for n in parameters}).items():
        executor.arg_dict[name][:] = value
    losses = []
    for data, label in batches(images, labels, epochs):
        probabilities = executor.forward(is_train=True, data=data, softmax_label=label)[0]
        losses.append(cross_entropy(probabilities.asnumpy(), label))
        executor.backward()
        for name in parameters:
            weight, gradient = executor.arg_dict[name], executor.grad_dict[name]
            weight[:] = weight - (rate / BATCH) * gradient
    return executor, losses


def accuracy(symbol: mx.sym.Symbol, parameters: dict[str, mx.nd.NDArray], images: np.ndarray,
             labels: np.ndarray) -> float:
    """The share of images whose most probable class is the right one."""
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=images.shape, softmax_label=labels.shape)
    executor.copy_params_from(parameters)
    probabilities = executor.forward(is_train=False, data=images)[0].asnumpy()
    return float((probabilities.argmax(axis=1) == labels).mean())
