"""Gradients of normalisations by a sample's own statistics, and of the losses besides softmax.

Statistics are made anew here, by the nodes that the forward decomposition makes, in float32 where the data is float16:
equal nodes become one.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import along, as_dtype, as_shape, filled, widened
from mxc.compiler.passes.decompositions import norms
from mxc.compiler.passes.decompositions.normalization import moments_over
from mxc.compiler.passes.decompositions.softmax import softmax_over
from mxc.compiler.passes.gradients.context import Gradient, ignores, loss
from mxc.compiler.passes.gradients.normalization import batch_norm


def _normalized(g: Gradient, x: Entry, axis: int, of: int) -> list[Entry | None]:
    """out = xhat * gamma + beta with xhat = (x - mean) * inv over `axis`, gamma and beta along axis `of`:

    dbeta = sum(og)    dgamma = sum(og * xhat)    dx = inv * (d - mean(d) - xhat * mean(d * xhat)), d = og * gamma

    No gradient flows through the outputs mean and std, as in MXNet.
    """
    data, gamma = g.inputs[:2]
    ndim, dtype = len(g.shape(x)), g.dtype(x)
    og = as_shape(g.builder, widened(g.builder, g.og), g.shape(x))
    xhat, inverse = norms.normalized(g.builder, x, axis, g.params.eps)[:2]
    scale = along(g.builder, as_dtype(g.builder, gamma, dtype), of, ndim)
    d = g.make("broadcast_mul", og, scale)
    of_shift = g.make("mean", d, axis=(axis,), keepdims=True)
    of_scale = g.make("mean", g.make("elemwise_mul", d, xhat), axis=(axis,), keepdims=True)
    inner = g.make("elemwise_sub", d, g.make("broadcast_add", g.make("broadcast_mul", xhat, of_scale), of_shift))
    to_data = as_shape(g.builder, g.make("broadcast_mul", inner, inverse), g.shape(data))
    sums = [g.sum_to(e, g.shape(scale)) for e in (g.make("elemwise_mul", og, xhat), og)]
    return [to_data, *(as_shape(g.builder, e, g.shape(gamma)) for e in sums)]


def layer_norm(g: Gradient) -> list[Entry | None]:
    """Statistics over one axis, along which gamma and beta lie too."""
    x = widened(g.builder, g.inputs[0])
    axis = g.params.axis % len(g.shape(x))
    return _normalized(g, x, axis, axis)


def group_norm(g: Gradient) -> list[Entry | None]:
    """GroupNorm and InstanceNorm: gamma and beta for each group."""
    return _normalized(g, norms.grouped(g.builder, *g.inputs[:2]), 2, 1)


def l2_normalization(g: Gradient) -> list[Entry | None]:
    """(og - out * sum(og * out)) / norm."""
    x = norms.by_length(g.builder, widened(g.builder, g.inputs[0]), g.params)
    og = as_shape(g.builder, widened(g.builder, g.og), g.shape(x))
    norm = norms.l2_norm(g.builder, x, g.params)
    out = g.make("broadcast_div", x, norm)
    total = g.make("sum", g.make("elemwise_mul", og, out), axis=(1,), keepdims=True)
    back = g.make("broadcast_div", g.make("elemwise_sub", og, g.make("broadcast_mul", out, total)), norm)
    return [as_shape(g.builder, back, g.shape(g.inputs[0]))]


def lrn(g: Gradient) -> list[Entry | None]:
    """out = x * b^-beta, b = knorm + alpha / nsize * the window's sum of x^2:

    dx = og * b^-beta - 2 * beta * alpha / nsize * x * (the window's sum of og * x * b^(-beta - 1)).
    """
    params = g.params
    x, og = norms.planes(g.builder, g.inputs[0]), norms.planes(g.builder, g.og)
    base = norms.lrn_base(g.builder, x, params)
    direct = g.make("elemwise_mul", og, g.make("_power_scalar", base, scalar=-params.beta))
    each = g.make("elemwise_mul", g.make("elemwise_mul", og, x),
                  g.make("_power_scalar", base, scalar=-params.beta - 1.0))
    around = g.scaled(norms.window_sum(g.builder, each, params.nsize), 2 * params.beta * params.alpha / params.nsize)
    back = g.make("elemwise_sub", direct, g.make("elemwise_mul", x, around))
    return [as_shape(g.builder, back, g.shape(g.inputs[0]))]


@ignores("label")
@loss
def svm_output(g: Gradient) -> list[Entry | None]:
    """With s = -1 at the label's class and 1 elsewhere, and v = margin + s * x: regularization_coefficient times s
    where v > 0 (use_linear), or 2 * s * v there; 0 elsewhere."""
    data, label = g.inputs
    x = widened(g.builder, data)
    hit = norms.hits(g.builder, label, g.shape(x)[-1], g.dtype(x))
    sign = g.make("_rminus_scalar", g.scaled(hit, 2.0), scalar=1.0)
    over = g.make("_plus_scalar", g.make("elemwise_mul", sign, x), scalar=g.params.margin)
    if g.params.use_linear:
        size, factor = g.make("_greater_scalar", over, scalar=0.0), 1.0
    else:
        size, factor = g.make("_maximum_scalar", over, scalar=0.0), 2.0
    return [g.scaled(g.make("elemwise_mul", sign, size), factor * g.params.regularization_coefficient), None]


@ignores("label")
def softmax_cross_entropy(g: Gradient) -> list[Entry | None]:
    """(softmax - 1 at the label's class) * og, also where the loss is at its bound."""
    x = widened(g.builder, g.inputs[0])
    classes, dtype = g.shape(x)[1], g.dtype(x)
    back = g.make("elemwise_sub", softmax_over(g.builder, x, (1,)), norms.hits(g.builder, g.inputs[1], classes, dtype))
    return [g.make("broadcast_mul", back, as_shape(g.builder, widened(g.builder, g.og), (1, 1))), None]


def moments(g: Gradient) -> list[Entry | None]:
    """og of the mean / n + og of the variance * 2 (x - mean) / n."""
    x = widened(g.builder, g.inputs[0])
    shape = g.shape(x)
    axes = tuple(a % len(shape) for a in g.params.axes)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    of_mean, of_variance = (as_shape(g.builder, widened(g.builder, g.grad(i)), kept) for i in range(2))
    _, centred, _ = moments_over(g.builder, x, axes)
    inner = g.make("broadcast_add", g.make("broadcast_mul", g.scaled(centred, 2.0), of_variance), of_mean)
    return [g.scaled(inner, prod(kept) / prod(shape))]


def batch_norm_with_relu(g: Gradient) -> list[Entry | None]:
    """As BatchNorm, of og where the output is above 0."""
    above = g.make("_greater_scalar", g.outputs[0], scalar=0.0)
    g.out_grads[0] = g.make("where", above, g.og, filled(g.builder, g.shape(g.og), 0.0, g.dtype(g.og)))
    return batch_norm(g)


def pooling_v1(g: Gradient) -> list[Entry | None]:
    """max: og goes to the first largest element of its window in the data padded with zeros. avg, sum: og goes to the
    whole window, for avg divided by the kernel's size."""
    data, params = g.inputs[0], g.params
    shape, og = g.shape(data), widened(g.builder, g.og)
    kernel = shape[2:] if params.global_pool else params.kernel
    pad = (0, 0) if params.global_pool else params.pad or (0, 0)
    common = {"kernel": kernel, "stride": () if params.global_pool else params.stride,
              "pooling_convention": params.pooling_convention}
    if params.pool_type == "max":
        back = g.make("_mxc_max_pool_grad", norms.zero_padded(g.builder, data, pad), g.og, pool_type="max", **common)
        for axis, width in enumerate(pad, 2):
            if width:
                back = g.make("slice_axis", back, axis=axis, begin=width, end=width + shape[axis])
        return [back]
    if params.global_pool:
        back = g.broadcast_to(og, shape)
    else:
        back = g.make("_mxc_avg_pool_grad", og, pool_type="sum", pad=pad, shape=shape, **common)
    return [g.scaled(back, 1.0 / prod(kernel)) if params.pool_type == "avg" else back]
