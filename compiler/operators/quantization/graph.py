"""Decompositions of quantization.

A scale is LEVELS[dtype] / the largest absolute number of a range: what a number is multiplied by, before it is rounded
and kept within the dtype. Some operators take FULL[dtype] instead, as MXNet does.
"""
from __future__ import annotations

from mxc.compiler.graph.building import as_dtype, as_shape, filled
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.quantization.shape import FULL, INT32_LEVELS, LEVELS, calibrated, out_type


def number(builder: GraphBuilder, value: float) -> Entry:
    """An array of one number."""
    return filled(builder, (1,), value, "float32")


def largest(builder: GraphBuilder, low: Entry, high: Entry) -> Entry:
    """The largest absolute number of a range."""
    return builder.make("broadcast_maximum", builder.make("abs", low), builder.make("abs", high))


def scale(builder: GraphBuilder, dtype: str, low: Entry, high: Entry) -> Entry:
    """What numbers of a range are multiplied by to be of `dtype`."""
    return builder.make("_rdiv_scalar", largest(builder, low, high), scalar=LEVELS[dtype])


def saturated(builder: GraphBuilder, x: Entry, dtype: str, name: str = "") -> Entry:
    """`x` rounded and kept within int8 or uint8."""
    kept = builder.make("_mxc_saturate", x, dtype=dtype)
    return builder.make("Cast", kept, dtype=dtype, name=name)


def times(builder: GraphBuilder, x: Entry, factor: Entry) -> Entry:
    """`x` in float32 times an array that is broadcast."""
    return builder.make("broadcast_mul", as_dtype(builder, x, "float32"), factor)


def _extremes(builder: GraphBuilder, data: Entry) -> list[Entry]:
    return [as_shape(builder, builder.make(op, data), (1,)) for op in ("min", "max")]


def _quantized(builder: GraphBuilder, node: Node, data: Entry, span: list[Entry], dtype: str,
               levels: dict[str, float]) -> list[Entry]:
    most = largest(builder, *span)
    factor = builder.make("_rdiv_scalar", most, scalar=levels[dtype])
    made = saturated(builder, times(builder, data, factor), dtype, node.name)
    return [made, builder.make("negative", most), most] if dtype == "int8" else [made, *span]


def quantize(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Data in the range that is given as arrays."""
    return _quantized(builder, node, inputs[0], inputs[1:], node.params.out_type, FULL)


def quantize_v2(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Data in the range of the parameters, or in its own. What is quantized already stays as it is."""
    (data,), dtype, span = inputs, out_type(node.params), calibrated(node.params)
    given = builder.dtype(data)
    if given != "float32":
        low, high = span or (0.0 if given == "uint8" else -LEVELS["int8"], LEVELS[given])
        return [as_dtype(builder, data, dtype), number(builder, low), number(builder, high)]
    ends = [number(builder, v) for v in span] if span else _extremes(builder, data)
    return _quantized(builder, node, data, ends, dtype, LEVELS)


def quantize_asym(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Data times 255 / (high - low), plus what makes the highest number 255."""
    span = calibrated(node.params)
    low, high = [number(builder, v) for v in span] if span else _extremes(builder, inputs[0])
    factor = builder.make("_rdiv_scalar", builder.make("elemwise_sub", high, low), scalar=FULL["uint8"])
    shift = builder.make("_rminus_scalar", builder.make("elemwise_mul", high, factor), scalar=FULL["uint8"])
    x = builder.make("broadcast_add", times(builder, inputs[0], factor), shift)
    return [saturated(builder, x, "uint8", node.name), factor, shift]


def requantize(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """int32 of one range in 8 bits of another: that of the parameters, or the data's own."""
    data, *ends = inputs
    dtype, span = out_type(node.params), calibrated(node.params)
    unit = builder.make("_div_scalar", largest(builder, *ends), scalar=INT32_LEVELS)
    real = as_dtype(builder, data, "float32")
    if span:
        most = number(builder, max(map(abs, span)))
    else:
        most = largest(builder, *[times(builder, end, unit) for end in _extremes(builder, real)])
    factor = times(builder, builder.make("_rdiv_scalar", most, scalar=FULL[dtype]), unit)
    made = saturated(builder, times(builder, real, factor), dtype, node.name)
    return [made, builder.make("negative", most) if dtype == "int8" else number(builder, 0), most]


def dequantize(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Numbers of 8 bits times the unit of their range."""
    data, *ends = inputs
    unit = builder.make("_div_scalar", largest(builder, *ends), scalar=LEVELS[builder.dtype(data)])
    return [times(builder, data, unit)]
