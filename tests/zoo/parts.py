"""Layers that the networks of this folder share. Outputs keep their names short: kernels do not show them."""
from __future__ import annotations

import mxc as mx
from mxc.symbol import Symbol

Pair = int | tuple[int, int]


def pair(size: Pair) -> tuple[int, int]:
    return size if isinstance(size, tuple) else (size, size)


def conv(net: Symbol, filters: int, kernel: Pair, stride: int = 1, pad: Pair | None = None, groups: int = 1,
         bias: bool = False) -> Symbol:
    """A convolution; without `pad` as much as keeps the size at stride 1."""
    kernel = pair(kernel)
    pad = (kernel[0] // 2, kernel[1] // 2) if pad is None else pair(pad)
    return mx.sym.Convolution(net, kernel=kernel, stride=pair(stride), pad=pad, num_filter=filters, num_group=groups,
                              no_bias=not bias)


def norm(net: Symbol, eps: float = 1e-5, fix_gamma: bool = False) -> Symbol:
    return mx.sym.BatchNorm(net, eps=eps, fix_gamma=fix_gamma)


def act(net: Symbol, kind: str = "relu") -> Symbol:
    return mx.sym.Activation(net, act_type=kind)


def prelu(net: Symbol) -> Symbol:
    return mx.sym.LeakyReLU(net, act_type="prelu")


def conv_norm(net: Symbol, filters: int, kernel: Pair, stride: int = 1, pad: Pair | None = None, groups: int = 1,
              bias: bool = False, eps: float = 1e-5) -> Symbol:
    return norm(conv(net, filters, kernel, stride, pad, groups, bias), eps)


def conv_norm_relu(net: Symbol, filters: int, kernel: Pair, stride: int = 1, pad: Pair | None = None, groups: int = 1,
                   bias: bool = False, eps: float = 1e-5) -> Symbol:
    return act(conv_norm(net, filters, kernel, stride, pad, groups, bias, eps))


def pool(net: Symbol, kind: str, kernel: int, stride: int = 1, pad: int = 0, full: bool = False) -> Symbol:
    return mx.sym.Pooling(net, pool_type=kind, kernel=pair(kernel), stride=pair(stride), pad=pair(pad),
                          pooling_convention="full" if full else "valid")


def average(net: Symbol) -> Symbol:
    """Over all of the picture."""
    return mx.sym.Pooling(net, pool_type="avg", global_pool=True, kernel=(1, 1))


def dense(net: Symbol, units: int, flatten: bool = True) -> Symbol:
    return mx.sym.FullyConnected(net, num_hidden=units, flatten=flatten)


def separable(net: Symbol, width: int, filters: int, stride: int = 1, fix_gamma: bool = False,
              eps: float = 1e-5) -> Symbol:
    """A filter of 3x3 for each of `width` channels, then a 1x1 convolution, each with its norm and relu."""
    net = act(norm(conv(net, width, 3, stride, groups=width), eps, fix_gamma))
    return act(norm(conv(net, filters, 1), eps, fix_gamma))
