"""Operators of the program's own that tests of several files use: registered once, when this file is imported."""
from __future__ import annotations

import math

import mxc as mx


@mx.operator.elementwise("cut_swish")
def cut_swish(x, *, beta=1.0):
    """x times the sigmoid of beta x; 0 far below 0."""
    if x < -20:
        return 0.0
    return x / (1 + math.exp(-beta * x))


def often_halved_slope(x, *, most=8):
    return 0.5 if abs(x) > 1 else 1.0 + 0 * most


@mx.operator.elementwise("often_halved", gradient=often_halved_slope)
def often_halved(x, *, most=8):
    """x halved until it is below 1, but not more often than `most` says."""
    n = 0
    while abs(x) > 1 and n < most:
        x /= 2
        n += 1
    return x


def blended_slopes(x, y, *, sharp=False):
    weight = 1.0 if sharp and x > y else 0.25
    return weight, 1 - weight


@mx.operator.elementwise("blended", gradient=blended_slopes)
def blended(x, y, *, sharp=False):
    """Something between x and y: the larger one where `sharp`."""
    weight = 1.0 if sharp and x > y else 0.25
    return weight * x + (1 - weight) * y


@mx.operator.elementwise("wholes", gradient=lambda x: 1.0)
def wholes(x):
    """The whole numbers of x, in several ways, and what is between them."""
    n = 0
    while n < min(int(abs(x)), 3):
        n += 1
    return x - math.floor(x) + math.ceil(x) // 3 + round(x) % (n + 1) + (math.trunc(x) << 1)


def network(op: str, **params: object) -> mx.sym.Symbol:
    """A convolution, the operator, a convolution."""
    data = mx.sym.Variable("data")
    net = mx.sym.Convolution(data, num_filter=16, kernel=(3, 3), pad=(1, 1), name="first")
    if op == "swish":
        net = mx.sym.where(net < -20, mx.sym.zeros_like(net), net / (1 + mx.sym.exp(-float(params["beta"]) * net)))
    else:
        net = getattr(mx.sym, op)(net, name="act", **params)
    return mx.sym.Convolution(net, num_filter=8, kernel=(3, 3), pad=(1, 1), name="second")
