"""Image classifiers as symbols: ResNet-18 and -50, MobileNet-v2, VGG-16, DenseNet-121, SqueezeNet 1.1, LeNet, MLP.

The networks are those of their papers (K. He et al. 2015; M. Sandler et al. 2018; K. Simonyan and A. Zisserman 2014;
G. Huang et al. 2016; F. Iandola et al. 2016); `data` is (N, 3, 224, 224), for residual networks any size. Outputs are
the scores before a softmax.
"""
from __future__ import annotations

import mxc as mx
from mxc.symbol import Symbol

sym = mx.sym


def _conv(net: Symbol, filters: int, kernel: int, name: str, stride: int = 1, pad: int | None = None, groups: int = 1,
          bias: bool = False) -> Symbol:
    pad = kernel // 2 if pad is None else pad
    return sym.Convolution(net, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad), num_filter=filters,
                           num_group=groups, no_bias=not bias, name=name)


def _norm(net: Symbol, name: str) -> Symbol:
    return sym.BatchNorm(net, fix_gamma=False, eps=1e-5, name=name)


def _relu(net: Symbol) -> Symbol:
    return sym.Activation(net, act_type="relu")


def _conv_norm(net: Symbol, filters: int, kernel: int, name: str, stride: int = 1, groups: int = 1) -> Symbol:
    return _norm(_conv(net, filters, kernel, f"{name}_conv", stride, groups=groups), f"{name}_bn")


def _pool(net: Symbol, kind: str, kernel: int, stride: int, pad: int = 0, full: bool = False) -> Symbol:
    return sym.Pooling(net, pool_type=kind, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad),
                       pooling_convention="full" if full else "valid")


def _global(net: Symbol) -> Symbol:
    return sym.Pooling(net, pool_type="avg", global_pool=True, kernel=(1, 1))


def _resnet(blocks: tuple[int, ...], bottleneck: bool, classes: int = 1000) -> Symbol:
    net = _relu(_conv_norm(sym.Variable("data"), 64, 7, "first", 2))
    net = _pool(net, "max", 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            name, stride = f"s{stage}b{block}", 2 if stage and not block else 1
            if bottleneck:
                body = _relu(_conv_norm(net, width, 1, f"{name}a", stride))
                body = _relu(_conv_norm(body, width, 3, f"{name}b"))
                body = _conv_norm(body, 4 * width, 1, f"{name}c")
            else:
                body = _conv_norm(_relu(_conv_norm(net, width, 3, f"{name}a", stride)), width, 3, f"{name}b")
            if not block and (stage or bottleneck):
                net = _conv_norm(net, 4 * width if bottleneck else width, 1, f"{name}s", stride)
            net = _relu(sym.elemwise_add(body, net, name=f"{name}_add"))
    return sym.FullyConnected(_global(net), num_hidden=classes, name="dense")


def resnet18(classes: int = 1000) -> Symbol:
    return _resnet((2, 2, 2, 2), False, classes)


def resnet50() -> Symbol:
    return _resnet((3, 4, 6, 3), True)


def mobilenet_v2() -> Symbol:
    def relu6(net: Symbol) -> Symbol:
        return sym.clip(net, a_min=0, a_max=6)

    net, width = relu6(_conv_norm(sym.Variable("data"), 32, 3, "first", 2)), 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for stage, (grow, filters, count, first) in enumerate(stages):
        for block in range(count):
            name, stride, inner = f"s{stage}b{block}", 1 if block else first, width * grow
            body = relu6(_conv_norm(net, inner, 1, f"{name}a"))
            body = relu6(_conv_norm(body, inner, 3, f"{name}b", stride, inner))
            body = _conv_norm(body, filters, 1, f"{name}c")
            net = sym.elemwise_add(body, net, name=f"{name}_add") if block else body
            width = filters
    net = relu6(_conv_norm(net, 1280, 1, "last"))
    return sym.Flatten(_conv(_global(net), 1000, 1, "scores"))


def vgg16() -> Symbol:
    net = sym.Variable("data")
    for stage, (filters, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for i in range(count):
            net = _relu(_conv(net, filters, 3, f"conv{stage}_{i}", bias=True))
        net = _pool(net, "max", 2, 2)
    for i in range(2):
        net = sym.Dropout(_relu(sym.FullyConnected(net, num_hidden=4096, name=f"fc{i}")), p=0.5)
    return sym.FullyConnected(net, num_hidden=1000, name="fc2")


def densenet121() -> Symbol:
    net, width = _pool(_relu(_conv_norm(sym.Variable("data"), 64, 7, "first", 2)), "max", 3, 2, 1), 64
    for stage, count in enumerate((6, 12, 24, 16)):
        for i in range(count):
            name = f"s{stage}l{i}"
            body = _conv(_relu(_norm(net, f"{name}a_bn")), 128, 1, f"{name}a_conv")
            body = _conv(_relu(_norm(body, f"{name}b_bn")), 32, 3, f"{name}b_conv")
            net = sym.Concat(net, body, dim=1)
        width += 32 * count
        net = _relu(_norm(net, f"s{stage}_bn"))
        if stage < 3:
            width //= 2
            net = _pool(_conv(net, width, 1, f"s{stage}_conv"), "avg", 2, 2)
    return sym.FullyConnected(_global(net), num_hidden=1000, name="dense")


def squeezenet() -> Symbol:
    net = _relu(_conv(sym.Variable("data"), 64, 3, "first", 2, 0, bias=True))
    for i, width in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if i in (0, 2, 4):
            net = _pool(net, "max", 3, 2, full=True)
        net = _relu(_conv(net, width, 1, f"fire{i}_squeeze", bias=True))
        net = sym.Concat(*[_relu(_conv(net, 4 * width, k, f"fire{i}_{k}x{k}", bias=True)) for k in (1, 3)], dim=1)
    net = _relu(_conv(sym.Dropout(net, p=0.5), 1000, 1, "scores", bias=True))
    return sym.Flatten(_global(net))


def mlp() -> Symbol:
    """784-512-512-10 with relu; `data` (N, 784), `softmax_label` (N,)."""
    net = sym.Variable("data")
    for i in range(2):
        net = _relu(sym.FullyConnected(net, num_hidden=512, name=f"fc{i}"))
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=10, name="fc2"), name="softmax")


def lenet() -> Symbol:
    """Y. LeCun et al. 1998 with tanh and max pooling; `data` (N, 1, 28, 28), `softmax_label` (N,)."""
    net = sym.Variable("data")
    for i, filters in enumerate((20, 50)):
        net = sym.Activation(_conv(net, filters, 5, f"conv{i}", pad=0, bias=True), act_type="tanh")
        net = _pool(net, "max", 2, 2)
    net = sym.Activation(sym.FullyConnected(net, num_hidden=500, name="fc0"), act_type="tanh")
    return sym.SoftmaxOutput(sym.FullyConnected(net, num_hidden=10, name="fc1"), name="softmax")


def resnet18_loss() -> Symbol:
    """ResNet-18 with 10 classes and the softmax's loss; also `softmax_label` (N,)."""
    return sym.SoftmaxOutput(resnet18(10), name="softmax")
