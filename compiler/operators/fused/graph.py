"""Decompositions of layers that stand for a subgraph.

Sums of products are those of `quantized`; scales, an addition, an activation and rounding fuse behind them. What
depends on weights and stated ranges alone is computed when a plan is prepared.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_dtype, as_shape, filled, other_axes
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.convolution.shape import geometry
from mxc.compiler.operators.fused.shape import fused_type, last_activation
from mxc.compiler.operators.quantization.graph import largest, number, saturated, scale, times
from mxc.compiler.operators.quantization.shape import LEAST, LEVELS, calibrated
from mxc.compiler.operators.quantized.graph import (
    along_filters,
    along_last,
    convolved,
    int32_range,
    multiplied,
    stated,
    whole_numbers,
)
from mxc.compiler.ops.operator import Params

LARGEST_BIAS = 2.0**30  # of a bias in the scale of its sums


def _activated(builder: GraphBuilder, params: Params, x: Entry) -> Entry:
    kind = params.act_type
    if kind == "clip":
        return builder.make("clip", x, a_min=params.a_min, a_max=params.a_max)
    if kind in ("leaky", "gelu"):
        return builder.make("LeakyReLU", x, act_type=kind, slope=params.slope)
    if kind in ("square", "sqrt", "exp", "abs", "relu"):
        return builder.make(kind, x)
    return builder.make("Activation", x, act_type=kind)


def _activated_in(builder: GraphBuilder, params: Params, x: Entry, kind: str | None, target: Entry) -> Entry:
    """The activation of `x`, in the scale `target`."""
    if kind == "relu":
        return builder.make("relu", x)
    if not kind:
        return x
    return times(builder, _activated(builder, params, builder.make("broadcast_div", x, target)), target)


def _quantized_result(builder: GraphBuilder, params: Params, x: Entry, kind: str | None, target: Entry, into: str,
                      ) -> Entry:
    """`x`, in the scale `target`, after the activation: in `into`."""
    return saturated(builder, _activated_in(builder, params, x, kind, target), into)


def _scales(builder: GraphBuilder, ranges: Entry, bias: Entry | None, unit: Entry) -> Entry:
    """The scale of each filter's weights. Where these are so small that the bias would not fit beside them it is as
    large as it may be; of a filter of zeros it is 1 where there is no bias."""
    least = number(builder, LEAST)
    factor = builder.make("_rdiv_scalar", builder.make("broadcast_maximum", ranges, least), scalar=LEVELS["int8"])
    if bias is None:
        return factor
    size = builder.make("broadcast_maximum", times(builder, builder.make("abs", bias), unit), least)
    most = builder.make("_rdiv_scalar", size, scalar=LARGEST_BIAS)
    return builder.make("broadcast_minimum", factor, most)


def _whole_bias(builder: GraphBuilder, bias: Entry, scales: Entry, unit: Entry) -> Entry:
    """The bias in the scale of the sums, in int32."""
    real = builder.make("broadcast_mul", bias, builder.make("broadcast_mul", scales, unit))
    return as_dtype(builder, builder.make("_mxc_round", real), "int32")


def _folded(builder: GraphBuilder, node: Node, weight: Entry, bias: Entry | None, vectors: list[Entry],
            ) -> tuple[Entry, Entry]:
    """The weight and the bias with a BatchNorm in them."""
    gamma, beta, mean, variance = vectors
    if node.params.fix_gamma:
        gamma = filled(builder, builder.shape(gamma), 1.0, "float32")
    gamma, variance = (as_dtype(builder, entry, "float64") for entry in (gamma, variance))  # as MXNet computes it
    deviation = builder.make("sqrt", builder.make("_plus_scalar", variance, scalar=node.params.eps))
    factor = as_dtype(builder, builder.make("elemwise_div", gamma, deviation), "float32")
    shift = builder.make("elemwise_sub", beta, builder.make("elemwise_mul", mean, factor))
    if bias is not None:
        shift = builder.make("elemwise_add", shift, builder.make("elemwise_mul", bias, factor))
    return times(builder, weight, _rows(builder, factor, weight)), shift


def _rows(builder: GraphBuilder, vector: Entry, weight: Entry) -> Entry:
    """A vector along the first axis of a weight."""
    return as_shape(builder, vector, (prod(builder.shape(vector)), *(1,) * (len(builder.shape(weight)) - 1)))


def fused_conv(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A convolution with what follows it: BatchNorm in its weights, a sum, an activation. Quantized, the weights of
    each filter have a range of their own, or all one where no range is stated for the results."""
    params = node.params
    data, weight, *rest = inputs
    bias = None if params.no_bias else rest.pop(0)
    if params.with_bn:
        weight, bias = _folded(builder, node, weight, bias, rest[:4])
        del rest[:4]
    added = rest.pop(0) if params.with_sum else None
    last, ndim = last_activation(params), len(builder.shape(data))
    if not params.quantized:
        return [_plain_conv(builder, node, data, weight, bias, added, last)]
    span, dtype = calibrated(params), builder.dtype(data)
    unit = scale(builder, dtype, *rest[:2])
    size = builder.make("abs", weight)
    axes = other_axes(ndim, 0) if span else tuple(range(ndim))
    ranges = as_shape(builder, builder.make("max", size, axis=axes), (params.num_filter if span else 1,))
    scales = _scales(builder, ranges, bias if span else None, unit)
    whole = saturated(builder, times(builder, weight, _rows(builder, scales, weight)), "int8")
    sums = convolved(builder, node, data, whole)
    if bias is not None:
        more = _whole_bias(builder, bias, scales, unit)
        sums = builder.make("broadcast_add", sums, along_filters(builder, more, ndim))
    if span is None:
        ends = int32_range(builder, dtype, largest(builder, *rest[:2]), ranges)
        x, target = as_dtype(builder, sums, "float32"), builder.make("broadcast_mul", unit, scales)
        if added is not None:
            share = builder.make("broadcast_div", target, scale(builder, builder.dtype(added), *rest[2:4]))
            x = builder.make("elemwise_add", x, times(builder, added, share))
        elif last in (None, "relu"):
            return [builder.make("relu", sums) if last else sums, *ends]
        return [whole_numbers(builder, _activated_in(builder, params, x, last, target)), *ends]
    made = fused_type(params, last)
    target = scale(builder, made, *stated(builder, span))
    factor = builder.make("broadcast_div", builder.make("broadcast_div", target, unit), scales)
    x = times(builder, sums, along_filters(builder, factor, ndim))
    into = made
    if added is not None:
        into = builder.dtype(added)
        share = builder.make("broadcast_div", target, scale(builder, into, *rest[2:4]))
        x = builder.make("elemwise_add", x, times(builder, added, share))
    out = _quantized_result(builder, params, x, last, target, into)
    return [as_dtype(builder, out, made), *stated(builder, span)]


def _plain_conv(builder: GraphBuilder, node: Node, data: Entry, weight: Entry, bias: Entry | None,
                added: Entry | None, last: str | None) -> Entry:
    """The layer in float32."""
    params, g = node.params, geometry(node.params)
    entries = [data, weight, *([] if bias is None else [bias])]
    x = builder.make("Convolution", *entries, name=node.name, kernel=g.kernel, stride=g.stride, dilate=g.dilate,
                     pad=g.pad, num_filter=params.num_filter, num_group=g.groups, no_bias=bias is None)
    if added is not None:
        if params.with_act or params.with_relu:
            x = _activated(builder, params, x)
        x = builder.make("elemwise_add", x, added)
    return _activated(builder, params, x) if last else x


def fused_fully_connected(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A product with the activation that follows it."""
    params = node.params
    data, weight, *rest = inputs
    bias = None if params.no_bias else rest.pop(0)
    kind = params.act_type if params.with_eltwise else None
    if not params.quantized:
        entries = [data, weight, *([] if bias is None else [bias])]
        x = builder.make("FullyConnected", *entries, name=node.name, num_hidden=params.num_hidden,
                         no_bias=bias is None, flatten=params.flatten)
        return [_activated(builder, params, x) if kind else x]
    dtype, span = builder.dtype(data), calibrated(params)
    unit = scale(builder, dtype, *rest[:2])
    bias = None if bias is None else as_shape(builder, bias, (params.num_hidden,))
    if params.channel_wise_quantize:
        ranges = builder.make("max", builder.make("abs", weight), axis=(1,))
        scales = _scales(builder, ranges, bias, unit)
        weight = saturated(builder, times(builder, weight, _rows(builder, scales, weight)), "int8")
        more = None if bias is None else _whole_bias(builder, bias, scales, unit)
    else:
        scales, more = scale(builder, "int8", *rest[2:4]), None
        if bias is not None:
            ratio = builder.make("broadcast_mul", unit, scales)
            ratio = builder.make("broadcast_div", ratio, scale(builder, "int8", *rest[4:6]))
            more = as_dtype(builder, builder.make("_mxc_round", times(builder, bias, ratio)), "int32")
    sums = multiplied(builder, node, data, weight)
    if more is not None:
        sums = builder.make("broadcast_add", sums, along_last(builder, more, sums))
    if params.enable_float_output:
        back = builder.make("broadcast_div", builder.make("reciprocal", unit), scales)
        x = times(builder, sums, along_last(builder, back, sums))
        return [_activated(builder, params, x) if kind else x]
    if span is None:
        ends = int32_range(builder, dtype, largest(builder, *rest[:2]), largest(builder, *rest[2:4]))
        return [builder.make("relu", sums) if kind == "relu" else sums, *ends]
    made = fused_type(params, kind)
    target = scale(builder, made, *stated(builder, span))
    factor = builder.make("broadcast_div", builder.make("broadcast_div", target, unit), scales)
    x = times(builder, sums, along_last(builder, factor, sums))
    return [_quantized_result(builder, params, x, kind, target, made), *stated(builder, span)]
