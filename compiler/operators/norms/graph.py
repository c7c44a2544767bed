"""Decompositions and gradients of normalisations.

Batch normalisation is made of means, centred values and scales. Its gradient is, with xhat = (x - mean) * inv and
out = xhat * gamma + beta, over the elements of a channel,

    dbeta = sum(og)    dgamma = sum(og * xhat)    dx = gamma * inv * (og - mean(og) - xhat * mean(og * xhat))

which is two reductions, then one elementwise expression.

Gradients compute the statistics again, by the same nodes as the decomposition (in float32 where the data is float16),
and equal nodes become one later.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import along, as_dtype, as_shape, filled, finished, other_axes, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops.operator import Params


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
    axis = (params.axis if "axis" in params else 1) % ndim  # SyncBatchNorm has no parameter `axis`.
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


def normalized(builder: GraphBuilder, x: Entry, axis: int, eps: float) -> tuple[Entry, Entry, Entry, Entry]:
    """(x - mean) * inverse, inverse = 1 / sqrt(var + eps), mean and var, all with `axis` kept as 1."""
    mean, centred, variance = moments_over(builder, x, (axis,))
    inverse = inverse_deviation(builder, variance, eps)
    return builder.make("broadcast_mul", centred, inverse), inverse, mean, variance


def _scaled(builder: GraphBuilder, node: Node, x: Entry, vectors: list[Entry], axis: int, of: int) -> list[Entry]:
    """Outputs (x - mean) / std * gamma + beta, mean, std; statistics are over `axis`, the vectors lie along axis
    `of`."""
    eps = node.params.eps
    out, _, mean, variance = normalized(builder, x, axis, eps)
    ndim, dtype = len(builder.shape(x)), builder.dtype(x)
    gamma, beta = (along(builder, as_dtype(builder, v, dtype), of, ndim) for v in vectors)
    out = builder.make("broadcast_add", builder.make("broadcast_mul", out, gamma), beta)
    std = builder.make("sqrt", builder.make("_plus_scalar", variance, scalar=eps))
    return finished(builder, node, [out, mean, std])


def layer_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """LayerNorm: statistics are over one axis, and each place along it has its own gamma and beta."""
    x = widened(builder, inputs[0])
    axis = node.params.axis % len(builder.shape(x))
    return _scaled(builder, node, x, inputs[1:], axis, axis)


def grouped(builder: GraphBuilder, data: Entry, vector: Entry) -> Entry:
    """(N, C, ...) reshaped to (N, groups, the rest), float16 in float32; `vector` has an element for each group."""
    shape, groups = builder.shape(data), builder.shape(vector)[0]
    return as_shape(builder, widened(builder, data), (shape[0], groups, prod(shape[1:]) // groups))


def group_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """GroupNorm and InstanceNorm: statistics are over space and the channels of a group (for InstanceNorm, one
    channel), and each group has its own gamma and beta."""
    return _scaled(builder, node, grouped(builder, *inputs[:2]), inputs[1:], 2, 1)


def by_length(builder: GraphBuilder, x: Entry, params: Params) -> Entry:
    """x reshaped to (outer, length, rest): L2Normalization takes the root of the sum of squares over axis 1."""
    shape = builder.shape(x)
    start, stop = {"instance": (1, len(shape)), "channel": (1, 2), "spatial": (2, len(shape))}[params.mode]
    return as_shape(builder, x, (prod(shape[:start]), prod(shape[start:stop]), prod(shape[stop:])))


def l2_norm(builder: GraphBuilder, x: Entry, params: Params) -> Entry:
    """sqrt(sum(x^2) + eps) over axis 1, kept as 1."""
    total = builder.make("sum", builder.make("square", x), axis=(1,), keepdims=True)
    return builder.make("sqrt", builder.make("_plus_scalar", total, scalar=params.eps))


def l2_normalization(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x / sqrt(sum(x^2) + eps) over a sample, over channels or over space; also the divisor."""
    x = by_length(builder, widened(builder, inputs[0]), node.params)
    norm = l2_norm(builder, x, node.params)
    return finished(builder, node, [builder.make("broadcast_div", x, norm), norm])


def planes(builder: GraphBuilder, data: Entry) -> Entry:
    """(N, C, ...) reshaped to (N, 1, C, the rest), float16 in float32: a window over channels becomes one over space.
    """
    shape = builder.shape(data)
    return as_shape(builder, widened(builder, data), (shape[0], 1, shape[1], prod(shape[2:])))


def window_size(builder: GraphBuilder, x: Entry, size: int) -> int:
    """How many channels of planes the window around a channel has: `size`, or one less where that is even. It reaches
    no further than there are channels, because code loops over all of it."""
    return 2 * min((size - 1) // 2, builder.shape(x)[2] - 1) + 1


def window_sum(builder: GraphBuilder, x: Entry, size: int) -> Entry:
    """The sum over the window around each channel of planes, of so many channels."""
    return builder.make("Pooling", x, kernel=(size, 1), pad=(size // 2, 0), pool_type="sum")


def lrn_base(builder: GraphBuilder, x: Entry, params: Params) -> Entry:
    """knorm + alpha / nsize * the window's sum of squares."""
    total = builder.make("_mxc_squares_around", x, kernel=(window_size(builder, x, params.nsize),))
    mean = builder.make("_mul_scalar", total, scalar=params.alpha / params.nsize)
    return builder.make("_plus_scalar", mean, scalar=params.knorm)


def lrn_power(builder: GraphBuilder, base: Entry, beta: float) -> Entry:
    """base^-beta; for 3 / 4, the default, by a function of its own: a power takes several times as long as all else."""
    if beta == 0.75:
        return builder.make("_mxc_power_minus_3_4", base)
    return builder.make("_power_scalar", base, scalar=-beta)


def lrn(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x * (knorm + alpha / nsize * the window's sum of squares)^-beta; also what is raised to that power."""
    x = planes(builder, inputs[0])
    base = lrn_base(builder, x, node.params)
    power = lrn_power(builder, base, node.params.beta)
    return finished(builder, node, [builder.make("elemwise_mul", x, power), base])


def moments(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Mean and variance over `axes`."""
    x = widened(builder, inputs[0])
    axes = tuple(a % len(builder.shape(x)) for a in node.params.axes)
    mean, _, variance = moments_over(builder, x, axes)
    return finished(builder, node, [mean, variance])


def batch_norm_with_relu(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """BatchNorm, and the larger of its output and 0."""
    out, *statistics = batch_norm(builder, node, inputs, options)
    return [builder.make("relu", out), *statistics]


def sync_batch_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """BatchNorm of axis 1, whose third output is the variance; 1 / sqrt(var + eps) comes last."""
    out, mean, inverse = batch_norm(builder, node, inputs, options)
    squared = builder.make("reciprocal", builder.make("square", inverse))
    return [out, mean, builder.make("_plus_scalar", squared, scalar=-node.params.eps), inverse]


def batch_norm_grad(g: Gradient) -> list[Entry | None]:
    """The gradient from the batch's mean and 1 / sqrt(var + eps), the node's outputs 1 and last; in training dx depends
    on both. No gradient flows through these outputs, so where the gradient is to be differentiated itself, they are
    computed from the data once more.

    Where the moving statistics were used (inference, use_global_stats) they are constants: dx = og * gamma * inv. With
    fix_gamma gamma counts as 1 and gets a zero gradient. No gradient flows through the outputs mean and var.
    """
    data, gamma = g.inputs[:2]
    shape, params = g.shape(data), g.params
    axis = (params.axis if "axis" in params else 1) % len(shape)  # SyncBatchNorm has no parameter `axis`.
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
        # Means share the accumulators of the sums. The code gets the number of elements at run time and serves every
        # shape.
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


def _normalized(g: Gradient, x: Entry, axis: int, of: int) -> list[Entry | None]:
    """out = xhat * gamma + beta with xhat = (x - mean) * inv over `axis`, gamma and beta along axis `of`:

    dbeta = sum(og)    dgamma = sum(og * xhat)    dx = inv * (d - mean(d) - xhat * mean(d * xhat)), d = og * gamma

    No gradient flows through the outputs mean and std, as in MXNet.
    """
    data, gamma = g.inputs[:2]
    ndim, dtype = len(g.shape(x)), g.dtype(x)
    og = as_shape(g.builder, widened(g.builder, g.og), g.shape(x))
    xhat, inverse = normalized(g.builder, x, axis, g.params.eps)[:2]
    scale = along(g.builder, as_dtype(g.builder, gamma, dtype), of, ndim)
    d = g.make("broadcast_mul", og, scale)
    of_shift = g.make("mean", d, axis=(axis,), keepdims=True)
    of_scale = g.make("mean", g.make("elemwise_mul", d, xhat), axis=(axis,), keepdims=True)
    inner = g.make("elemwise_sub", d, g.make("broadcast_add", g.make("broadcast_mul", xhat, of_scale), of_shift))
    to_data = as_shape(g.builder, g.make("broadcast_mul", inner, inverse), g.shape(data))
    sums = [g.sum_to(e, g.shape(scale)) for e in (g.make("elemwise_mul", og, xhat), og)]
    return [to_data, *(as_shape(g.builder, e, g.shape(gamma)) for e in sums)]


def layer_norm_grad(g: Gradient) -> list[Entry | None]:
    """Statistics over one axis, along which gamma and beta lie too."""
    x = widened(g.builder, g.inputs[0])
    axis = g.params.axis % len(g.shape(x))
    return _normalized(g, x, axis, axis)


def group_norm_grad(g: Gradient) -> list[Entry | None]:
    """GroupNorm and InstanceNorm: gamma and beta for each group."""
    return _normalized(g, grouped(g.builder, *g.inputs[:2]), 2, 1)


def l2_normalization_grad(g: Gradient) -> list[Entry | None]:
    """(og - out * sum(og * out)) / norm."""
    x = by_length(g.builder, widened(g.builder, g.inputs[0]), g.params)
    og = as_shape(g.builder, widened(g.builder, g.og), g.shape(x))
    norm = l2_norm(g.builder, x, g.params)
    out = g.make("broadcast_div", x, norm)
    total = g.make("sum", g.make("elemwise_mul", og, out), axis=(1,), keepdims=True)
    back = g.make("broadcast_div", g.make("elemwise_sub", og, g.make("broadcast_mul", out, total)), norm)
    return [as_shape(g.builder, back, g.shape(g.inputs[0]))]


def lrn_grad(g: Gradient) -> list[Entry | None]:
    """out = x * b^-beta, b = knorm + alpha / nsize * the window's sum of x^2:

    dx = og * b^-beta - 2 * beta * alpha / nsize * x * (the window's sum of og * x * b^(-beta - 1)).
    """
    params = g.params
    x, og = planes(g.builder, g.inputs[0]), planes(g.builder, g.og)
    base = lrn_base(g.builder, x, params)
    power = lrn_power(g.builder, base, params.beta)
    direct = g.make("elemwise_mul", og, power)
    each = g.make("elemwise_mul", g.make("elemwise_mul", og, x), g.make("elemwise_div", power, base))
    total = window_sum(g.builder, each, window_size(g.builder, x, params.nsize))
    around = g.scaled(total, 2 * params.beta * params.alpha / params.nsize)
    back = g.make("elemwise_sub", direct, g.make("elemwise_mul", x, around))
    return [as_shape(g.builder, back, g.shape(g.inputs[0]))]


def squares_around_grad(g: Gradient) -> list[Entry | None]:
    """Each element is in the sums of its neighbours: dx = 2 x * the window's sum of og."""
    total = window_sum(g.builder, g.og, g.params.kernel[0])
    return [g.make("elemwise_mul", g.inputs[0], g.scaled(total, 2.0))]


def moments_grad(g: Gradient) -> list[Entry | None]:
    """og of the mean / n + og of the variance * 2 (x - mean) / n."""
    x = widened(g.builder, g.inputs[0])
    shape = g.shape(x)
    axes = tuple(a % len(shape) for a in g.params.axes)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    of_mean, of_variance = (as_shape(g.builder, widened(g.builder, g.grad(i)), kept) for i in range(2))
    _, centred, _ = moments_over(g.builder, x, axes)
    inner = g.make("broadcast_add", g.make("broadcast_mul", g.scaled(centred, 2.0), of_variance), of_mean)
    return [g.scaled(inner, prod(kept) / prod(shape))]


def batch_norm_with_relu_grad(g: Gradient) -> list[Entry | None]:
    """The gradients of BatchNorm for og where the output is above 0, and for 0 elsewhere."""
    above = g.make("_greater_scalar", g.outputs[0], scalar=0.0)
    g.out_grads[0] = g.make("where", above, g.og, filled(g.builder, g.shape(g.og), 0.0, g.dtype(g.og)))
    return batch_norm_grad(g)
