"""Normalisation layers as means, centred values and scales."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import along, as_dtype, as_shape, filled, other_axes, widened
from mxc.compiler.passes.registry import Options


def _moments(builder: GraphBuilder, x: Entry, axes: tuple[int, ...]) -> tuple[Entry, Entry, Entry]:
    """(mean, x - mean, variance) over `axes`; mean and variance keep them as 1."""
    mean = builder.make("mean", x, axis=axes, keepdims=True)
    centred = builder.make("broadcast_sub", x, mean)
    variance = builder.make("mean", builder.make("square", centred), axis=axes, keepdims=True)
    return mean, centred, variance


def _inverse_deviation(builder: GraphBuilder, variance: Entry, eps: float) -> Entry:
    return builder.make("rsqrt", builder.make("_plus_scalar", variance, scalar=eps))


def batch_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """out = (x - mean) / sqrt(var + eps) * gamma + beta for each channel; also mean and 1 / sqrt(var + eps).

    In training mean and var are the batch's, else the moving ones; then the operator is one multiplication and one
    addition, which `simplify` can move into the weights of a convolution before it.
    """
    params = node.params
    data, gamma, beta, moving_mean, moving_var = inputs
    ndim = len(builder.shape(data))
    axis = params.axis % ndim
    x = widened(builder, data)
    if params.fix_gamma:
        gamma = filled(builder, builder.shape(gamma), 1.0, builder.dtype(gamma))
    if options.is_train and not params.use_global_stats:
        mean, centred, variance = _moments(builder, x, other_axes(ndim, axis))
        inverse = _inverse_deviation(builder, variance, params.eps)
        scale = builder.make("broadcast_mul", along(builder, gamma, axis, ndim), inverse)
        scaled = builder.make("broadcast_mul", centred, scale)
        out = builder.make("broadcast_add", scaled, along(builder, beta, axis, ndim))
    else:
        mean, inverse = moving_mean, _inverse_deviation(builder, moving_var, params.eps)
        scale = builder.make("elemwise_mul", gamma, inverse)
        shift = builder.make("elemwise_sub", beta, builder.make("elemwise_mul", mean, scale))
        scaled = builder.make("broadcast_mul", x, along(builder, scale, axis, ndim))
        out = builder.make("broadcast_add", scaled, along(builder, shift, axis, ndim))
    vector = builder.shape(gamma)
    return [as_dtype(builder, out, builder.dtype(data)),
            as_shape(builder, mean, vector), as_shape(builder, inverse, vector)]


def _finish(builder: GraphBuilder, node: Node, outputs: list[Entry]) -> list[Entry]:
    """`outputs` with the shapes and dtypes that the node's own outputs have."""
    assert builder.old is not None
    finished = []
    for i, entry in enumerate(outputs):
        own = Entry(node, i)
        shaped = as_shape(builder, entry, builder.old.shape(own))
        finished.append(as_dtype(builder, shaped, builder.old.dtype(own)))
    return finished


def _affine(builder: GraphBuilder, x: Entry, gamma: Entry, beta: Entry, axis: int) -> Entry:
    """x * gamma + beta along `axis`, in x's dtype."""
    ndim, dtype = len(builder.shape(x)), builder.dtype(x)
    scale = along(builder, as_dtype(builder, gamma, dtype), axis, ndim)
    shift = along(builder, as_dtype(builder, beta, dtype), axis, ndim)
    return builder.make("broadcast_add", builder.make("broadcast_mul", x, scale), shift)


def layer_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """out = (x - mean) / std * gamma + beta over one axis; also mean and std = sqrt(var + eps)."""
    data, gamma, beta = inputs
    axis = node.params.axis % len(builder.shape(data))
    mean, centred, variance = _moments(builder, widened(builder, data), (axis,))
    std = builder.make("sqrt", builder.make("_plus_scalar", variance, scalar=node.params.eps))
    out = _affine(builder, builder.make("broadcast_div", centred, std), gamma, beta, axis)
    return _finish(builder, node, [out, mean, std])


def instance_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """out = (x - mean) / sqrt(var + eps) * gamma + beta over the spatial axes; also mean and var."""
    data, gamma, beta = inputs
    axes = tuple(range(2, len(builder.shape(data))))
    mean, centred, variance = _moments(builder, widened(builder, data), axes)
    inverse = _inverse_deviation(builder, variance, node.params.eps)
    out = _affine(builder, builder.make("broadcast_mul", centred, inverse), gamma, beta, 1)
    return _finish(builder, node, [out, mean, variance])


def group_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """out = (x - mean) / std * gamma + beta over the channels of a group and space, with gamma and beta for each group;
    also mean and std."""
    data, gamma, beta = inputs
    shape, groups = builder.shape(data), node.params.num_groups
    grouped = as_shape(builder, widened(builder, data), (shape[0], groups, shape[1] // groups, *shape[2:]))
    mean, centred, variance = _moments(builder, grouped, tuple(range(2, len(shape) + 1)))
    std = builder.make("sqrt", builder.make("_plus_scalar", variance, scalar=node.params.eps))
    out = _affine(builder, builder.make("broadcast_div", centred, std), gamma, beta, 1)
    return _finish(builder, node, [out, mean, std])


def l2_normalization(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """out = x / sqrt(sum(x^2) + eps) over a sample, over channels or over space; also the divisor."""
    x = widened(builder, inputs[0])
    ndim = len(builder.shape(x))
    axes = {"instance": tuple(range(1, ndim)), "channel": (1,), "spatial": tuple(range(2, ndim))}[node.params.mode]
    total = builder.make("sum", builder.make("square", x), axis=axes, keepdims=True)
    norm = builder.make("sqrt", builder.make("_plus_scalar", total, scalar=node.params.eps))
    return _finish(builder, node, [builder.make("broadcast_div", x, norm), norm])
