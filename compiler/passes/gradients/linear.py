"""Gradients of matrix operators: convolutions, fully connected layers, dot. They are matrix operators again."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops.shapes.convolution import deconvolution_padding, geometry
from mxc.compiler.passes.building import as_shape
from mxc.compiler.passes.gradients.context import Gradient

_WINDOW = ("kernel", "stride", "dilate", "pad", "num_group")


def _window(g: Gradient) -> dict[str, object]:
    """kernel, stride, dilate, pad and num_group, with one number for every spatial axis."""
    spelled = geometry(g.params)
    return {"kernel": spelled.kernel, "stride": spelled.stride, "dilate": spelled.dilate, "pad": spelled.pad,
            "num_group": spelled.groups}


def _bias(g: Gradient, axis: int) -> list[Entry | None]:
    """The bias gradient, where there is a bias and it is asked for: the sum over everything but the channels."""
    if len(g.inputs) < 3:
        return []
    return [g.make("sum", g.og, axis=(axis,), exclude=True) if g.asked[2] else None]


def convolution(g: Gradient) -> list[Entry | None]:
    """To the data the transposed convolution of og, to the weight the correlation of the data with og."""
    data, weight = g.inputs[:2]
    window = _window(g)
    to_data = g.make("_mxc_conv_data_grad", g.og, weight, shape=g.shape(data), **window) if g.asked[0] else None
    to_weight = g.make("_mxc_conv_weight_grad", data, g.og, **window) if g.asked[1] else None
    return [to_data, to_weight, *_bias(g, 1)]


def deconvolution(g: Gradient) -> list[Entry | None]:
    """A deconvolution is a convolution's gradient to its data, so to the data it is that convolution of og."""
    data, weight = g.inputs[:2]
    window = {**_window(g), "pad": deconvolution_padding(g.params, g.shape(data)[2:])[0]}
    to_data = to_weight = None
    if g.asked[0]:
        to_data = g.make("Convolution", g.og, weight, num_filter=g.shape(data)[1], no_bias=True, **window)
    if g.asked[1]:
        to_weight = g.make("_mxc_conv_weight_grad", g.og, data, **window)
    return [to_data, to_weight, *_bias(g, 1)]


def convolution_data_grad(g: Gradient) -> list[Entry | None]:
    """A map that is linear in both: to out_grad the convolution of og, to the weight the correlation with og."""
    out_grad, weight = g.inputs
    window = {key: g.params[key] for key in _WINDOW}
    back = None
    if g.asked[0]:
        back = g.make("Convolution", g.og, weight, num_filter=g.shape(out_grad)[1], no_bias=True, **window)
    return [back, g.make("_mxc_conv_weight_grad", g.og, out_grad, **window) if g.asked[1] else None]


def convolution_weight_grad(g: Gradient) -> list[Entry | None]:
    """A map that is linear in both; og is like a weight: to the data its transposed convolution of out_grad, to
    out_grad its convolution of the data."""
    data, out_grad = g.inputs
    window = {key: g.params[key] for key in _WINDOW}
    to_data = g.make("_mxc_conv_data_grad", out_grad, g.og, shape=g.shape(data), **window) if g.asked[0] else None
    back = None
    if g.asked[1]:
        back = g.make("Convolution", data, g.og, num_filter=g.shape(out_grad)[1], no_bias=True, **window)
    return [to_data, back]


def fully_connected(g: Gradient) -> list[Entry | None]:
    """y (N, H) = x (N, K) W^T + b: dx = og W, dW = og^T x, db = the sum of og's rows."""
    data, weight = g.inputs[:2]
    hidden, depth = g.shape(weight)
    og = as_shape(g.builder, g.og, (prod(g.shape(g.og)) // hidden, hidden))
    to_data = to_weight = None
    if g.asked[0]:
        to_data = as_shape(g.builder, g.make("dot", og, weight), g.shape(data))
    if g.asked[1]:
        rows = as_shape(g.builder, data, (g.shape(og)[0], depth))
        to_weight = g.make("dot", og, rows, transpose_a=True)
    return [to_data, to_weight, *_bias(g, len(g.shape(g.og)) - 1)]


def dot(g: Gradient) -> list[Entry | None]:
    """The last axis of lhs (its first, transposed) times the first of rhs (its last, transposed); axes beyond two are
    folded, so that each gradient is a product of two matrices."""
    lhs, rhs = g.inputs
    first, second = g.params.transpose_a, g.params.transpose_b
    a, b = g.shape(lhs), g.shape(rhs)
    depth = a[0] if first else a[-1]
    a2 = as_shape(g.builder, lhs, (depth, prod(a) // depth) if first else (prod(a) // depth, depth))
    b2 = as_shape(g.builder, rhs, (prod(b) // depth, depth) if second else (depth, prod(b) // depth))
    og = as_shape(g.builder, g.og, (prod(a) // depth, prod(b) // depth))
    to_lhs = to_rhs = None
    if g.asked[0]:
        to_lhs = (g.make("dot", b2, og, transpose_a=second, transpose_b=True) if first
                  else g.make("dot", og, b2, transpose_b=not second))
        to_lhs = as_shape(g.builder, to_lhs, a)
    if g.asked[1]:
        to_rhs = (g.make("dot", og, a2, transpose_a=True, transpose_b=first) if second
                  else g.make("dot", a2, og, transpose_a=not first))
        to_rhs = as_shape(g.builder, to_rhs, b)
    return [to_lhs, to_rhs]


def batch_dot(g: Gradient) -> list[Entry | None]:
    """As dot, for every matrix of the batch."""
    lhs, rhs = g.inputs
    first, second = g.params.transpose_a, g.params.transpose_b
    to_lhs = to_rhs = None
    if g.asked[0]:
        to_lhs = (g.make("batch_dot", rhs, g.og, transpose_a=second, transpose_b=True) if first
                  else g.make("batch_dot", g.og, rhs, transpose_b=not second))
    if g.asked[1]:
        to_rhs = (g.make("batch_dot", g.og, lhs, transpose_a=True, transpose_b=first) if second
                  else g.make("batch_dot", lhs, g.og, transpose_a=not first))
    return [to_lhs, to_rhs]
