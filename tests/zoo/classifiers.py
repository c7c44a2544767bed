"""Networks that classify pictures: AlexNet, residual networks of the second kind, ResNeXt with gates, MobileNet v1 and
v3, ShuffleNet, Inception v3, and two networks for faces.

They are built after their papers; what a saved model of that kind does otherwise, they do too: where strides and biases
are, and in which order branches come. `data` is (N, 3, 224, 224) unless said otherwise.
"""
from __future__ import annotations

from zoo.parts import act, average, conv, conv_norm, conv_norm_relu, dense, norm, pair, pool, prelu, separable

import mxc as mx
from mxc.symbol import Symbol

sym = mx.sym
# MobileNet v1: filters and strides of its thirteen separable convolutions, for 32 filters in the first layer.
MOBILE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))


def alexnet() -> Symbol:
    """A. Krizhevsky et al. 2012, in one part."""
    net = pool(act(conv(sym.Variable("data"), 64, 11, 4, 2, bias=True)), "max", 3, 2)
    net = pool(act(conv(net, 192, 5, bias=True)), "max", 3, 2)
    for filters in (384, 256, 256):
        net = act(conv(net, filters, 3, bias=True))
    net = sym.Flatten(pool(net, "max", 3, 2))
    for _ in range(2):
        net = sym.Dropout(act(dense(net, 4096)), p=0.5)
    return dense(net, 1000)


def resnet18_v2() -> Symbol:
    """K. He et al. 2016: the norm and the relu come before each convolution."""
    net = sym.BatchNorm(sym.Variable("data"), fix_gamma=True, eps=1e-5)
    net = pool(conv_norm_relu(net, 64, 7, 2), "max", 3, 2, 1)
    for stage in range(4):
        for block in range(2):
            width, stride = 64 << stage, 2 if stage and not block else 1
            before = act(norm(net))
            beside = conv(before, width, 1, stride) if stage and not block else net
            body = conv(conv_norm_relu(before, width, 3, stride), width, 3)
            net = body + beside
    return dense(average(act(norm(net))), 1000)


def gated(net: Symbol, width: int, ratio: int = 16) -> Symbol:
    """J. Hu et al. 2017: each channel times what its average and those of the others say."""
    gate = sym.contrib.AdaptiveAvgPooling2D(net, output_size=1)
    gate = act(conv(act(conv(gate, width // ratio, 1, bias=True)), width, 1, bias=True), "sigmoid")
    return sym.broadcast_mul(net, gate)


def se_resnext50() -> Symbol:
    """S. Xie et al. 2016, 32 groups of 4 filters, with gates."""
    net = pool(conv_norm_relu(sym.Variable("data"), 64, 7, 2), "max", 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            width, stride = 128 << stage, 2 if stage and not block else 1
            body = conv_norm_relu(conv_norm_relu(net, width, 1), width, 3, stride, groups=32)
            body = gated(conv_norm(body, 2 * width, 1), 2 * width)
            net = act(body + (net if block else conv_norm(net, 2 * width, 1, stride)))
    return dense(average(net), 1000)


def mobile(net: Symbol, first: int = 32, first_stride: int = 2, **how: float) -> list[Symbol]:
    """All separable layers of MobileNet v1, the first convolution's output before them."""
    net = act(norm(conv(net, first, 3, first_stride), **how))
    layers, width = [net], first
    for filters, stride in MOBILE:
        layers.append(separable(layers[-1], width, filters * first // 32, stride, **how))
        width = filters * first // 32
    return layers


def mobilenet_v1() -> Symbol:
    """A. Howard et al. 2017."""
    return dense(average(mobile(sym.Variable("data"))[-1]), 1000)


def mobilenet_v2() -> Symbol:
    """M. Sandler et al. 2018: inverted bottlenecks, of which the first begins with its filters."""
    def relu6(net: Symbol) -> Symbol:
        return sym.clip(net, a_min=0, a_max=6)

    net, width = relu6(conv_norm(sym.Variable("data"), 32, 3, 2)), 32
    for grow, filters, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            inner = width * grow
            body = relu6(conv_norm(net, inner, 1)) if grow > 1 else net
            body = relu6(conv_norm(body, inner, 3, 1 if block else first, groups=inner))
            body = conv_norm(body, filters, 1)
            net, width = (body + net if block else body), filters
    return sym.Flatten(conv(average(relu6(conv_norm(net, 1280, 1))), 1000, 1))


def mobilenet_v3_small() -> Symbol:
    """A. Howard et al. 2019: inverted bottlenecks with gates and activations of straight pieces."""
    def hard(net: Symbol) -> Symbol:
        return net * sym.clip(net + 3, 0, 6) / 6

    layers = ((3, 16, 16, True, act, 2), (3, 72, 24, False, act, 2), (3, 88, 24, False, act, 1),
              (5, 96, 40, True, hard, 2), (5, 240, 40, True, hard, 1), (5, 240, 40, True, hard, 1),
              (5, 120, 48, True, hard, 1), (5, 144, 48, True, hard, 1), (5, 288, 96, True, hard, 2),
              (5, 576, 96, True, hard, 1), (5, 576, 96, True, hard, 1))
    net, width = hard(conv_norm(sym.Variable("data"), 16, 3, 2)), 16
    for kernel, inner, filters, is_gated, kind, stride in layers:
        body = kind(conv_norm(net, inner, 1)) if inner != width else net
        body = kind(conv_norm(body, inner, kernel, stride, groups=inner))
        if is_gated:
            gate = act(conv(average(body), inner // 4, 1, bias=True))
            body = sym.broadcast_mul(body, sym.clip(conv(gate, inner, 1, bias=True) + 3, 0, 6) / 6)
        body = conv_norm(body, filters, 1)
        net, width = (body + net if stride == 1 and filters == width else body), filters
    net = hard(conv(average(hard(conv_norm(net, 576, 1))), 1024, 1, bias=True))
    return sym.Flatten(conv(net, 1000, 1, bias=True))


def shufflenet() -> Symbol:
    """X. Zhang et al. 2017, three groups."""
    def unit(net: Symbol, inner: int, filters: int, stride: int, is_first: bool) -> Symbol:
        body = conv_norm_relu(net, inner, 1, groups=1 if is_first else 3, bias=True)
        if not is_first:
            body = sym.Reshape(sym.SwapAxis(sym.Reshape(body, shape=(0, -4, 3, -1, -2)), dim1=1, dim2=2),
                               shape=(0, -3, -2))
        body = conv_norm(body, inner, 3, stride, groups=inner, bias=True)
        return conv_norm(body, filters, 1, groups=3, bias=True)

    net = pool(conv(sym.Variable("data"), 24, 3, 2, bias=True), "max", 3, 2, 1)
    width = 24
    for stage, (filters, repeats) in enumerate(((240, 3), (480, 7), (960, 3))):
        beside = pool(net, "avg", 3, 2, 1)
        inner = (filters - width) // 4
        net = act(sym.Concat(beside, unit(net, inner, filters - width, 2, stage == 0), dim=1))
        for _ in range(repeats):
            net = act(net + unit(net, filters // 4, filters, 1, False))
        width = filters
    return dense(average(net), 1000)


def inception_v3() -> Symbol:
    """C. Szegedy et al. 2015; `data` (N, 3, 299, 299)."""
    def layer(net: Symbol, filters: int, kernel: int | tuple[int, int], stride: int = 1,
              pad: int | None = None) -> Symbol:
        return conv_norm_relu(net, filters, kernel, stride, pad, eps=1e-3)

    def chain(net: Symbol, *layers: tuple) -> Symbol:
        for each in layers:
            net = layer(net, *each)
        return net

    def joined(*branches: Symbol) -> Symbol:
        return sym.Concat(*branches, dim=1)

    def smaller(net: Symbol) -> Symbol:
        return pool(net, "max", 3, 2)

    def smooth(net: Symbol, filters: int) -> Symbol:
        return layer(pool(net, "avg", 3, 1, 1), filters, 1)

    net = smaller(chain(sym.Variable("data"), (32, 3, 2, 0), (32, 3, 1, 0), (64, 3)))
    net = smaller(chain(net, (80, 1), (192, 3, 1, 0)))
    for last in (32, 64, 64):
        net = joined(layer(net, 64, 1), chain(net, (48, 1), (64, 5)), chain(net, (64, 1), (96, 3), (96, 3)),
                     smooth(net, last))
    net = joined(layer(net, 384, 3, 2, 0), chain(net, (64, 1), (96, 3), (96, 3, 2, 0)), smaller(net))
    for n in (128, 160, 160, 192):
        flat, tall = (1, 7), (7, 1)
        net = joined(layer(net, 192, 1), chain(net, (n, 1), (n, flat), (192, tall)),
                     chain(net, (n, 1), (n, tall), (n, flat), (n, tall), (192, flat)), smooth(net, 192))
    net = joined(chain(net, (192, 1), (320, 3, 2, 0)),
                 chain(net, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)), smaller(net))
    for _ in range(2):
        left, right = layer(net, 384, 1), chain(net, (448, 1), (384, 3))
        net = joined(layer(net, 320, 1), *(joined(layer(part, 384, (1, 3)), layer(part, 384, (3, 1)))
                                           for part in (left, right)), smooth(net, 192))
    return dense(sym.Dropout(pool(net, "avg", 8, 8), p=0.5), 1000)


def gender_age() -> Symbol:
    """A narrow MobileNet v1 that begins at full size, for faces: 202 numbers, normed; `data` (N, 3, 112, 112)."""
    net = (sym.Variable("data") - 127.5) * 0.0078125
    net = prelu(norm(mobile(net, 8, 1, eps=1e-3, fix_gamma=True)[-1], 2e-5))
    net = sym.Pooling(net, pool_type="avg", global_pool=True, kernel=pair(7))
    return norm(dense(sym.Flatten(net), 202), 2e-5, True)


def face_embedding() -> Symbol:
    """A residual network for faces as J. Deng et al. 2018 train it: norms first, PReLU, and a normed embedding of 512
    numbers; `data` (N, 3, 112, 112)."""
    net = (sym.Variable("data") - 127.5) * 0.0078125
    net = prelu(conv_norm(net, 64, 3, eps=2e-5))
    for stage in range(4):
        for block in range(2):
            width, stride = 64 << stage, 1 if block else 2
            body = prelu(norm(conv(norm(net, 2e-5), width, 3), 2e-5))
            body = conv_norm(body, width, 3, stride, eps=2e-5)
            net = body + (net if block else conv_norm(net, width, 1, stride, eps=2e-5))
    net = dense(sym.Dropout(norm(net, 2e-5), p=0.4), 512)
    return sym.L2Normalization(norm(net, 2e-5, True))
