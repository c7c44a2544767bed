"""Networks as symbols, for tests: LeNet, a perceptron, CIFAR ResNet-20 v1, ResNet-50 v1, small ones, and single layers.

The residual networks are those of K. He et al., "Deep Residual Learning for Image Recognition" (2015), in the variant
of Gluon's model zoo: no activation behind CIFAR's first BatchNorm, bias in the bottleneck's 1x1 convolutions, and
the stride in its first.
"""
from __future__ import annotations

from repository import load

import mxc as mx
from mxc.symbol import Symbol


def lenet() -> Symbol:
    """examples/lenet.py's LeNet; `data` (N, 1, 8, 8), `softmax_label` (N,)."""
    return load("examples/lenet.py").lenet()


def perceptron() -> Symbol:
    """examples/lenet.py's two fully connected layers; `data` (N, 64) or (N, 1, 8, 8), `softmax_label` (N,)."""
    return load("examples/lenet.py").perceptron()


def _conv(net: Symbol, filters: int, kernel: int, name: str, stride: int = 1, bias: bool = False) -> Symbol:
    return mx.sym.Convolution(net, kernel=(kernel, kernel), stride=(stride, stride), pad=(kernel // 2, kernel // 2),
                              num_filter=filters, no_bias=not bias, name=f"{name}_conv")


def _norm(net: Symbol, name: str) -> Symbol:
    return mx.sym.BatchNorm(net, fix_gamma=False, eps=1e-5, name=f"{name}_bn")


def _relu(net: Symbol, name: str) -> Symbol:
    return mx.sym.Activation(net, act_type="relu", name=f"{name}_relu")


def _head(net: Symbol, classes: int) -> Symbol:
    net = mx.sym.Pooling(net, pool_type="avg", global_pool=True, kernel=(1, 1), name="pool")
    return mx.sym.FullyConnected(net, num_hidden=classes, name="dense")


def _basic(net: Symbol, filters: int, stride: int, widen: bool, name: str) -> Symbol:
    """Two 3x3 convolutions beside the identity or, where the shape changes, a 1x1 convolution."""
    body = _norm(_conv(net, filters, 3, f"{name}a", stride), f"{name}a")
    body = _norm(_conv(_relu(body, f"{name}a"), filters, 3, f"{name}b"), f"{name}b")
    beside = _norm(_conv(net, filters, 1, f"{name}s", stride), f"{name}s") if widen else net
    return _relu(mx.sym.elemwise_add(beside, body, name=f"{name}_add"), name)


def _bottleneck(net: Symbol, filters: int, stride: int, widen: bool, name: str) -> Symbol:
    """1x1, 3x3 and 1x1 convolutions beside the identity or a 1x1 convolution; the last has `filters` filters."""
    body = _norm(_conv(net, filters // 4, 1, f"{name}a", stride, bias=True), f"{name}a")
    body = _norm(_conv(_relu(body, f"{name}a"), filters // 4, 3, f"{name}b"), f"{name}b")
    body = _norm(_conv(_relu(body, f"{name}b"), filters, 1, f"{name}c", bias=True), f"{name}c")
    beside = _norm(_conv(net, filters, 1, f"{name}s", stride), f"{name}s") if widen else net
    return _relu(mx.sym.elemwise_add(body, beside, name=f"{name}_add"), name)


def cifar_resnet20(classes: int = 10) -> Symbol:
    """Three stages of three blocks with 16, 32 and 64 filters; `data` (N, 3, 32, 32)."""
    net = _norm(_conv(mx.sym.Variable("data"), 16, 3, "first"), "first")
    for stage, filters in enumerate((16, 32, 64)):
        for block in range(3):
            widen = stage > 0 and block == 0
            net = _basic(net, filters, 2 if widen else 1, widen, f"s{stage}b{block}")
    return _head(net, classes)


def resnet50(classes: int = 1000) -> Symbol:
    """Four stages of 3, 4, 6 and 3 bottlenecks; `data` (N, 3, 224, 224), other sizes too."""
    net = _relu(_norm(_conv(mx.sym.Variable("data"), 64, 7, "first", 2), "first"), "first")
    net = mx.sym.Pooling(net, pool_type="max", kernel=(3, 3), stride=(2, 2), pad=(1, 1), name="first_pool")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            net = _bottleneck(net, 256 << stage, stride, block == 0, f"s{stage}b{block}")
    return _head(net, classes)


def small_resnet(classes: int = 10) -> Symbol:
    """Two blocks, of 24 and 48 filters; `data` (N, 3, H, W)."""
    net = _relu(_norm(_conv(mx.sym.Variable("data"), 24, 3, "first"), "first"), "first")
    return _head(_basic(_basic(net, 24, 1, False, "a"), 48, 2, True, "b"), classes)


def small_mobile(classes: int = 10) -> Symbol:
    """An inverted residual block as MobileNet v2 has them: expansion, depthwise filters, projection, all added to what
    was there; `data` (N, 3, H, W)."""
    start = net = _relu(_norm(_conv(mx.sym.Variable("data"), 24, 3, "first", 2), "first"), "first")
    net = mx.sym.clip(_norm(_conv(net, 72, 1, "expand"), "expand"), 0, 6)
    net = mx.sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=72, num_group=72, no_bias=True, name="filter")
    net = _norm(_conv(mx.sym.clip(_norm(net, "filter"), 0, 6), 24, 1, "project"), "project")
    return _head(start + net, classes)


def layer(kind: str) -> tuple[mx.sym.Symbol, tuple[int, ...]]:
    """A network of one kind of layer with rests of channels and windows, and the shape of its input `data`, whose axis
    of the batch is the first (of recurrent layers the second)."""
    data, window = mx.sym.Variable("data"), {"kernel": (3, 3), "name": "c"}
    if kind.startswith("rnn") or kind in ("gru", "lstm"):
        cell = {"state_cell": mx.sym.Variable("cell")} if kind == "lstm" else {}
        return mx.sym.RNN(data, mx.sym.Variable("parameters"), mx.sym.Variable("state"), **cell, state_size=11,
                          num_layers=2, bidirectional=True, mode=kind, name="r"), (5, 3, 7)
    if kind == "tails":
        net = mx.sym.relu(mx.sym.Convolution(data, num_filter=24, pad=(1, 1), **window))
        return mx.sym.Convolution(net, kernel=(3, 3), dilate=(2, 2), num_filter=3, name="d"), (3, 3, 15, 13)
    if kind == "products":
        net = mx.sym.softmax(mx.sym.FullyConnected(data, num_hidden=77))
        return mx.sym.FullyConnected(net, num_hidden=3), (13, 101)
    made = {
        "1-D": (mx.sym.Convolution(data, kernel=(3,), num_filter=5, pad=(1,), name="c"), (2, 3, 17)),
        "3-D": (mx.sym.Convolution(data, kernel=(3, 2, 3), stride=(1, 2, 1), num_filter=7, name="c"), (2, 3, 5, 6, 7)),
        "groups": (mx.sym.Convolution(data, num_filter=24, num_group=6, **window), (2, 12, 9, 11)),
        "transposed": (mx.sym.Deconvolution(data, stride=(2, 3), num_filter=5, **window), (2, 3, 7, 5)),
        "lookup": (mx.sym.Embedding(mx.sym.abs(data), input_dim=19, output_dim=23, name="c"), (6, 5)),
    }
    return made[kind]


LAYERS = ("1-D", "3-D", "tails", "groups", "transposed", "products", "lookup", "rnn_tanh", "rnn_relu", "gru", "lstm")
