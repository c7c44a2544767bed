"""Gradients of normalisation layers.

All are of one form. With xhat = (x - mean) * inv, out = xhat * gamma + beta and h = og * gamma,

    dbeta = sum(og)    dgamma = sum(og * xhat)    dx = inv * (h - mean(h) - xhat * mean(h * xhat))

where the means of dx run over the elements that share mean and inv: two reductions, then one elementwise expression.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import along, as_dtype, as_shape, other_axes, widened
from mxc.compiler.passes.gradients.context import Gradient, Shape


def _normalised(g: Gradient, x: Entry, mean: Entry, inverse: Entry) -> Entry:
    return g.make("broadcast_mul", g.make("broadcast_sub", x, mean), inverse)


def _to_data(g: Gradient, h: Entry, xhat: Entry, inverse: Entry, axes: tuple[int, ...]) -> Entry:
    """dx of the module's text; `axes`: what mean and inverse are taken over."""
    mean = g.make("mean", h, axis=axes, keepdims=True)
    slope = g.make("mean", g.make("elemwise_mul", h, xhat), axis=axes, keepdims=True)
    centred = g.make("elemwise_sub", g.make("broadcast_sub", h, mean), g.make("broadcast_mul", xhat, slope))
    return g.make("broadcast_mul", centred, inverse)


def batch_norm(g: Gradient) -> list[Entry | None]:
    """By the batch's mean and 1 / sqrt(var + eps), which are the node's outputs 1 and 2; both act on dx in training.

    Where the moving statistics were used (inference, use_global_stats) they are constants: dx = og * gamma * inv. With
    fix_gamma gamma counts as 1 and gets a zero gradient. No gradient flows through the outputs mean and var.
    """
    data, gamma = g.inputs[:2]
    shape, params = g.shape(data), g.params
    axis = params.axis % len(shape)
    axes = other_axes(len(shape), axis)
    x, og = widened(g.builder, data), widened(g.builder, g.og)
    mean, inverse = (along(g.builder, e, axis, len(shape)) for e in g.outputs[1:3])
    xhat = _normalised(g, x, mean, inverse)
    batch = g.is_train and not params.use_global_stats
    scale = inverse
    if not params.fix_gamma:
        scale = g.make("broadcast_mul", inverse, along(g.builder, gamma, axis, len(shape)))
    to_beta = g.make("sum", og, axis=axes, keepdims=True)
    to_gamma = g.make("sum", g.make("elemwise_mul", og, xhat), axis=axes, keepdims=True)
    inner = og
    if batch:
        count = float(prod(shape) // shape[axis])
        common = g.make("broadcast_add", g.make("broadcast_mul", xhat, to_gamma), to_beta)
        inner = g.make("elemwise_sub", og, g.make("_div_scalar", common, scalar=count))
    vector = g.shape(gamma)
    return [g.make("broadcast_mul", inner, scale),
            None if params.fix_gamma else as_shape(g.builder, to_gamma, vector), as_shape(g.builder, to_beta, vector)]


def batch_norm_moving(g: Gradient) -> list[Entry | None]:
    """moving = moving * momentum + batch * (1 - momentum), with the biased variance; kept with use_global_stats.

    The variance comes back from output 2: var = inv^-2 - eps.
    """
    if g.params.use_global_stats:
        return [None, None]
    mean, inverse = g.outputs[1:3]
    var = g.make("_plus_scalar", g.make("_power_scalar", inverse, scalar=-2.0), scalar=-float(g.params.eps))
    momentum = float(g.params.momentum)
    return [g.make("elemwise_add", g.scaled(state, momentum), g.scaled(new, 1.0 - momentum))
            for state, new in zip(g.aux, (mean, var), strict=True)]


def layer_norm(g: Gradient) -> list[Entry | None]:
    """Over one axis; output 1 is the mean, output 2 sqrt(var + eps)."""
    data, gamma, beta = g.inputs
    ndim = len(g.shape(data))
    axis = g.params.axis % ndim
    kept = tuple(1 if i == axis else dim for i, dim in enumerate(g.shape(data)))
    x, og = widened(g.builder, data), widened(g.builder, g.og)
    mean, std = (as_shape(g.builder, as_dtype(g.builder, e, g.dtype(x)), kept) for e in g.outputs[1:3])
    inverse = g.make("reciprocal", std)
    scale = along(g.builder, as_dtype(g.builder, gamma, g.dtype(x)), axis, ndim)
    return _affine(g, og, _normalised(g, x, mean, inverse), inverse, scale, axis, (axis,), g.shape(beta))


def instance_norm(g: Gradient) -> list[Entry | None]:
    """Over space; output 1 is the mean, output 2 the variance."""
    data, gamma, beta = g.inputs
    shape = g.shape(data)
    x, og = widened(g.builder, data), widened(g.builder, g.og)
    kept = (*shape[:2], *[1] * (len(shape) - 2))
    mean, var = (as_shape(g.builder, as_dtype(g.builder, e, g.dtype(x)), kept) for e in g.outputs[1:3])
    inverse = g.make("rsqrt", g.make("_plus_scalar", var, scalar=float(g.params.eps)))
    scale = along(g.builder, as_dtype(g.builder, gamma, g.dtype(x)), 1, len(shape))
    xhat = _normalised(g, x, mean, inverse)
    return _affine(g, og, xhat, inverse, scale, 1, tuple(range(2, len(shape))), g.shape(beta))


def _affine(g: Gradient, og: Entry, xhat: Entry, inverse: Entry, scale: Entry, axis: int, axes: tuple[int, ...],
            vector: Shape) -> list[Entry | None]:
    """The three gradients of a layer whose gamma and beta lie along `axis`, with statistics over `axes`."""
    rest = other_axes(len(g.shape(og)), axis)
    to_data = _to_data(g, g.make("broadcast_mul", og, scale), xhat, inverse, axes) if g.asked[0] else None
    to_gamma = g.make("sum", g.make("elemwise_mul", og, xhat), axis=rest, keepdims=True)
    to_beta = g.make("sum", og, axis=rest, keepdims=True)
    return [to_data, as_shape(g.builder, to_gamma, vector), as_shape(g.builder, to_beta, vector)]


def l2_normalization(g: Gradient) -> list[Entry | None]:
    """out = x / n with n = sqrt(sum(x^2) + eps), output 1: dx = (og - out * sum(og * out)) / n."""
    shape, dtype = g.shape(g.inputs[0]), g.dtype(widened(g.builder, g.og))
    og, out = widened(g.builder, g.og), widened(g.builder, g.outputs[0])
    first, last = {"instance": (1, len(shape)), "channel": (1, 2), "spatial": (2, len(shape))}[g.params.mode]
    axes = tuple(range(first, last))
    kept = tuple(1 if i in axes else dim for i, dim in enumerate(shape))
    norm = as_shape(g.builder, as_dtype(g.builder, g.outputs[1], dtype), kept)
    along_out = g.make("sum", g.make("elemwise_mul", og, out), axis=axes, keepdims=True)
    return [g.make("broadcast_div", g.make("elemwise_sub", og, g.make("broadcast_mul", out, along_out)), norm)]
