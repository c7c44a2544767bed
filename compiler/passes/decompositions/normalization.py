"""Batch normalisation as means, centred values and scales."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import along, as_dtype, as_shape, filled, other_axes, widened
from mxc.compiler.passes.registry import Options


def moments_over(builder: GraphBuilder, x: Entry, axes: tuple[int, ...]) -> tuple[Entry, Entry, Entry]:
    """(mean, x - mean, variance) over `axes`; mean and variance keep them as 1."""
    mean = builder.make("mean", x, axis=axes, keepdims=True)
    centred = builder.make("broadcast_sub", x, mean)
    variance = builder.make("mean", builder.make("square", centred), axis=axes, keepdims=True)
    return mean, centred, variance


def inverse_deviation(builder: GraphBuilder, variance: Entry, eps: float) -> Entry:
    """1 / sqrt(variance + eps)."""
    return builder.make("rsqrt", builder.make("_plus_scalar", variance, scalar=eps))


def batch_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """out = (x - mean) / sqrt(var + eps) * gamma + beta for each channel; also mean and 1 / sqrt(var + eps).

    In training mean and var are the batch's, else the moving ones; then the operator is one multiplication and one
    addition, which `simplify` can move into the weights of a convolution before it.
    """
    params = node.params
    data, gamma, beta, moving_mean, moving_var = inputs
    ndim = len(builder.shape(data))
    axis = (params.axis if "axis" in params else 1) % ndim  # SyncBatchNorm has none
    x = widened(builder, data)
    if params.fix_gamma:
        gamma = filled(builder, builder.shape(gamma), 1.0, builder.dtype(gamma))
    if options.is_train and not params.use_global_stats:
        mean, centred, variance = moments_over(builder, x, other_axes(ndim, axis))
        inverse = inverse_deviation(builder, variance, params.eps)
        scale = builder.make("broadcast_mul", along(builder, gamma, axis, ndim), inverse)
        scaled = builder.make("broadcast_mul", centred, scale)
        out = builder.make("broadcast_add", scaled, along(builder, beta, axis, ndim))
    else:
        mean, inverse = moving_mean, inverse_deviation(builder, moving_var, params.eps)
        scale = builder.make("elemwise_mul", gamma, inverse)
        shift = builder.make("elemwise_sub", beta, builder.make("elemwise_mul", mean, scale))
        scaled = builder.make("broadcast_mul", x, along(builder, scale, axis, ndim))
        out = builder.make("broadcast_add", scaled, along(builder, shift, axis, ndim))
    vector = builder.shape(gamma)
    return [as_dtype(builder, out, builder.dtype(data)),
            as_shape(builder, mean, vector), as_shape(builder, inverse, vector)]
