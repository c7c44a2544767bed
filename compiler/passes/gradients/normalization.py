"""The gradient of batch normalisation, and its moving statistics.

With xhat = (x - mean) * inv and out = xhat * gamma + beta, over the elements of a channel,

    dbeta = sum(og)    dgamma = sum(og * xhat)    dx = gamma * inv * (og - mean(og) - xhat * mean(og * xhat))

which is two reductions, then one elementwise expression.
"""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import along, as_shape, other_axes, widened
from mxc.compiler.passes.decompositions.normalization import inverse_deviation, moments_over
from mxc.compiler.passes.gradients.context import Gradient


def batch_norm(g: Gradient) -> list[Entry | None]:
    """By the batch's mean and 1 / sqrt(var + eps), the node's outputs 1 and last; both act on dx in training. As no
    gradient flows through them, they are made of the data once more where the gradient is differentiated again.

    Where the moving statistics were used (inference, use_global_stats) they are constants: dx = og * gamma * inv. With
    fix_gamma gamma counts as 1 and gets a zero gradient. No gradient flows through the outputs mean and var.
    """
    data, gamma = g.inputs[:2]
    shape, params = g.shape(data), g.params
    axis = (params.axis if "axis" in params else 1) % len(shape)  # SyncBatchNorm has none
    axes = other_axes(len(shape), axis)
    x, og = widened(g.builder, data), widened(g.builder, g.og)
    batch = g.is_train and not params.use_global_stats
    if batch and g.again:
        _, centred, variance = moments_over(g.builder, x, axes)
        inverse = inverse_deviation(g.builder, variance, params.eps)
    else:
        mean, inverse = (along(g.builder, e, axis, len(shape)) for e in (g.outputs[1], g.outputs[-1]))
        centred = g.make("broadcast_sub", x, mean)
    xhat = g.make("broadcast_mul", centred, inverse)
    scale = inverse
    if not params.fix_gamma:
        scale = g.make("broadcast_mul", inverse, along(g.builder, gamma, axis, len(shape)))
    to_beta = g.make("sum", og, axis=axes, keepdims=True)
    to_gamma = g.make("sum", g.make("elemwise_mul", og, xhat), axis=axes, keepdims=True)
    inner = og
    if batch:
        # Means share the sums' accumulators, and a kernel takes their count at run time: it serves every shape.
        of_beta = g.make("mean", og, axis=axes, keepdims=True)
        of_gamma = g.make("mean", g.make("elemwise_mul", og, xhat), axis=axes, keepdims=True)
        inner = g.make("elemwise_sub", og, g.make("broadcast_add", g.make("broadcast_mul", xhat, of_gamma), of_beta))
    vector = g.shape(gamma)
    return [g.make("broadcast_mul", inner, scale),
            None if params.fix_gamma else as_shape(g.builder, to_gamma, vector), as_shape(g.builder, to_beta, vector)]


def batch_norm_moving(g: Gradient) -> list[Entry | None]:
    """moving = moving * momentum + batch * (1 - momentum), with the biased variance; kept with use_global_stats.

    The variance comes back from the last output: var = inv^-2 - eps.
    """
    if g.params.use_global_stats:
        return [None, None]
    mean, inverse = g.outputs[1], g.outputs[-1]
    var = g.make("_plus_scalar", g.make("reciprocal", g.make("square", inverse)), scalar=-float(g.params.eps))
    momentum = float(g.params.momentum)
    return [g.make("elemwise_add", g.scaled(state, momentum), g.scaled(new, 1.0 - momentum))
            for state, new in zip(g.aux, (mean, var), strict=True)]
