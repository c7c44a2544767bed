"""Normalisations by a sample's own statistics, and the losses besides softmax, as reductions and arithmetic."""
from __future__ import annotations

from math import inf, prod

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.table import Params
from mxc.compiler.passes.building import along, as_dtype, as_shape, filled, widened
from mxc.compiler.passes.decompositions.normalization import batch_norm, inverse_deviation, moments_over
from mxc.compiler.passes.decompositions.softmax import softmax_over
from mxc.compiler.passes.registry import Options

LEAST = 1e-8  # the probability below which softmax_cross_entropy does not go


def _finished(builder: GraphBuilder, node: Node, outputs: list[Entry]) -> list[Entry]:
    """`outputs` with the shapes and dtypes of the node's own."""
    assert builder.old is not None
    facts = builder.old
    return [as_dtype(builder, as_shape(builder, entry, facts.shape(Entry(node, i))), facts.dtype(Entry(node, i)))
            for i, entry in enumerate(outputs)]


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
    return _finished(builder, node, [out, mean, std])


def layer_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Statistics over one axis, and a gamma and beta for each place along it."""
    x = widened(builder, inputs[0])
    axis = node.params.axis % len(builder.shape(x))
    return _scaled(builder, node, x, inputs[1:], axis, axis)


def grouped(builder: GraphBuilder, data: Entry, vector: Entry) -> Entry:
    """(N, C, ...) as (N, groups, the rest), in float32 where it is float16; a group for each element of `vector`."""
    shape, groups = builder.shape(data), builder.shape(vector)[0]
    return as_shape(builder, widened(builder, data), (shape[0], groups, prod(shape[1:]) // groups))


def group_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """GroupNorm and InstanceNorm: statistics over the channels of a group (of InstanceNorm one channel) and over space,
    gamma and beta for each group."""
    return _scaled(builder, node, grouped(builder, *inputs[:2]), inputs[1:], 2, 1)


def by_length(builder: GraphBuilder, x: Entry, params: Params) -> Entry:
    """x as (outer, length, rest), where L2Normalization takes the root of the sum of squares over axis 1."""
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
    return _finished(builder, node, [builder.make("broadcast_div", x, norm), norm])


def planes(builder: GraphBuilder, data: Entry) -> Entry:
    """(N, C, ...) as (N, 1, C, the rest), in float32 where it is float16: a window over channels is one over space."""
    shape = builder.shape(data)
    return as_shape(builder, widened(builder, data), (shape[0], 1, shape[1], prod(shape[2:])))


def window_sum(builder: GraphBuilder, x: Entry, size: int) -> Entry:
    """The sum over the window of channels around each channel of planes: `size` of them, one less where that is
    even. No further than there are channels, whatever `size`: the window is looped over."""
    half = min((size - 1) // 2, builder.shape(x)[2] - 1)
    return builder.make("Pooling", x, kernel=(2 * half + 1, 1), pad=(half, 0), pool_type="sum")


def lrn_base(builder: GraphBuilder, x: Entry, params: Params) -> Entry:
    """knorm + alpha / nsize * the window's sum of squares."""
    total = window_sum(builder, builder.make("square", x), params.nsize)
    mean = builder.make("_mul_scalar", total, scalar=params.alpha / params.nsize)
    return builder.make("_plus_scalar", mean, scalar=params.knorm)


def lrn(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """x * (knorm + alpha / nsize * the window's sum of squares)^-beta; also what is raised to that power."""
    x = planes(builder, inputs[0])
    base = lrn_base(builder, x, node.params)
    power = builder.make("_power_scalar", base, scalar=-node.params.beta)
    return _finished(builder, node, [builder.make("elemwise_mul", x, power), base])


def hits(builder: GraphBuilder, label: Entry, classes: int, dtype: str) -> Entry:
    """1 where the last axis, of length `classes`, is at the label (cut to an integer), else 0."""
    shape = builder.shape(label)
    numbers = builder.make("_arange", start=0.0, stop=float(classes), dtype=dtype)
    chosen = builder.make("trunc", as_shape(builder, as_dtype(builder, label, dtype), (*shape, 1)))
    return builder.make("broadcast_equal", chosen, along(builder, numbers, len(shape), len(shape) + 1))


def softmax_cross_entropy(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The sum over the rows of -log(softmax at the label), which is at least LEAST."""
    x = widened(builder, inputs[0])
    shape, dtype = builder.shape(x), builder.dtype(x)
    hit = hits(builder, inputs[1], shape[1], dtype)
    each = builder.make("where", hit, softmax_over(builder, x, (1,)), filled(builder, shape, 0.0, dtype))
    chosen = builder.make("_maximum_scalar", builder.make("sum", each, axis=(1,)), scalar=LEAST)
    total = builder.make("sum", builder.make("log", chosen), axis=(0,))
    return _finished(builder, node, [builder.make("negative", total)])


def moments(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Mean and variance over `axes`."""
    x = widened(builder, inputs[0])
    axes = tuple(a % len(builder.shape(x)) for a in node.params.axes)
    mean, _, variance = moments_over(builder, x, axes)
    return _finished(builder, node, [mean, variance])


def argmax_channel(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """argmax over axis 1."""
    return [builder.make("argmax", inputs[0], axis=1, name=node.name)]


def batch_norm_with_relu(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """BatchNorm, and the larger of its output and 0."""
    out, *statistics = batch_norm(builder, node, inputs, options)
    return [builder.make("relu", out), *statistics]


def sync_batch_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """BatchNorm of axis 1, whose third output is the variance; 1 / sqrt(var + eps) comes last."""
    out, mean, inverse = batch_norm(builder, node, inputs, options)
    squared = builder.make("reciprocal", builder.make("square", inverse))
    return [out, mean, builder.make("_plus_scalar", squared, scalar=-node.params.eps), inverse]


def eye(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """1 where row + k is the column."""
    assert builder.old is not None
    shape = builder.old.shape(Entry(node))
    row, column = (along(builder, builder.make("_arange", start=0.0, stop=float(n), dtype="int64"), axis, 2)
                   for axis, n in enumerate(shape))
    moved = builder.make("_plus_scalar", row, scalar=float(node.params.k))
    return _finished(builder, node, [builder.make("broadcast_equal", moved, column)])


def linspace(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """start + i * step in float64, then cast."""
    params = node.params
    steps = params.num - 1 if params.endpoint else params.num
    places = builder.make("_arange", start=0.0, stop=float(params.num), dtype="float64")
    step = (params.stop - params.start) / steps if steps else 0.0
    numbers = builder.make("_plus_scalar", builder.make("_mul_scalar", places, scalar=step), scalar=params.start)
    return _finished(builder, node, [numbers])


def zero_padded(builder: GraphBuilder, data: Entry, pad: tuple[int, ...]) -> Entry:
    """`data` (N, C, ...) with zeros around it in space."""
    for axis, width in enumerate(pad, 2):
        if width:
            shape = builder.shape(data)
            zeros = filled(builder, (*shape[:axis], width, *shape[axis + 1:]), 0.0, builder.dtype(data))
            data = builder.make("Concat", zeros, data, zeros, num_args=3, dim=axis)
    return data


def reaching(builder: GraphBuilder, node: Node, data: Entry) -> Entry:
    """`data`, padded already, with -inf behind it where the last window begins behind it: the maximum of nothing."""
    assert builder.old is not None
    extents = builder.old.shape(Entry(node))[2:]
    strides = node.params.stride or (1, 1)
    for axis, (extent, kernel, stride) in enumerate(zip(extents, node.params.kernel, strides, strict=True), 2):
        shape = builder.shape(data)
        start = (extent - 1) * stride
        if start >= shape[axis]:
            more = (*shape[:axis], start + kernel - shape[axis], *shape[axis + 1:])
            data = builder.make("Concat", data, filled(builder, more, -inf, builder.dtype(data)), num_args=2, dim=axis)
    return data


def pooling_v1(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Pooling in which padding counts as zeros, in a maximum too, and an average divides by the kernel's size even
    where the convention `full` cuts a window short."""
    params, data = node.params, inputs[0]
    if params.global_pool:
        reduction = {"avg": "mean", "sum": "sum", "max": "max"}[params.pool_type]
        return [builder.make(reduction, data, axis=(2, 3), keepdims=True, name=node.name)]
    common = {"kernel": params.kernel, "stride": params.stride, "pooling_convention": params.pooling_convention}
    if params.pool_type == "max":
        padded = reaching(builder, node, zero_padded(builder, data, params.pad))
        return [builder.make("Pooling", padded, pool_type="max", name=node.name, **common)]
    total = builder.make("Pooling", widened(builder, data), pool_type="sum", pad=params.pad, **common)
    if params.pool_type == "avg":
        total = builder.make("_mul_scalar", total, scalar=1.0 / prod(params.kernel))
    return [as_dtype(builder, total, builder.dtype(data))]
