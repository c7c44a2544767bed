"""Decompositions of layers over numbers of 8 bits.

Sums of products are whole numbers in int32 (`_mxc_int8_convolution`, `_mxc_int8_product`). What becomes of them is
arithmetic in float32, in MXNet's order of operations, and fuses behind the sums: scales, an addition, an activation,
rounding to 8 bits. What depends on weights and stated ranges alone is computed when a plan is prepared.
"""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.building import as_dtype, as_shape, filled
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.quads import fits_quads, has_quads, product_by_quads
from mxc.compiler.operators.convolution.shape import geometry
from mxc.compiler.operators.quantization.graph import largest, number, saturated, scale, times
from mxc.compiler.operators.quantization.shape import FULL, INT32_LEVELS, LEAST, LEVELS, calibrated
from mxc.compiler.operators.quantized.shape import plain_rnn
from mxc.compiler.operators.rnn.graph import joined, part
from mxc.compiler.operators.rnn.shape import pieces
from mxc.compiler.ops.operator import Params

BELOW_INT32 = 2147483520.0  # the largest number of float32 below 2^31
EXACT_FLOAT32 = 2**24  # whole numbers up to it are exact in float32
LARGEST_PRODUCT = 255 * 128  # of numbers of 8 bits


def stated(builder: GraphBuilder, span: tuple[float, float]) -> list[Entry]:
    return [number(builder, value) for value in span]


def int32_range(builder: GraphBuilder, dtype: str, data: Entry, weight: Entry) -> list[Entry]:
    """The range of sums of products, of the largest absolute numbers of data of `dtype` and an int8 weight."""
    units = builder.make("broadcast_mul", builder.make("_div_scalar", data, scalar=FULL[dtype]),
                         builder.make("_div_scalar", weight, scalar=FULL["int8"]))
    most = builder.make("_mul_scalar", units, scalar=INT32_LEVELS)
    return [builder.make("negative", most), most]


def along_filters(builder: GraphBuilder, vector: Entry, ndim: int) -> Entry:
    return as_shape(builder, vector, (1, prod(builder.shape(vector)), *(1,) * (ndim - 2)))


def convolved(builder: GraphBuilder, node: Node, data: Entry, weight: Entry) -> Entry:
    """Sums of products in int32, without a bias."""
    g = geometry(node.params)
    return builder.make("_mxc_int8_convolution", data, weight, name=node.name, kernel=g.kernel, stride=g.stride,
                        dilate=g.dilate, pad=g.pad, num_filter=node.params.num_filter, num_group=g.groups)


def multiplied(builder: GraphBuilder, node: Node, data: Entry, weight: Entry) -> Entry:
    """Rows times rows in int32, as FullyConnected has them."""
    shape = builder.shape(data)
    rows = shape[0] if node.params.flatten else prod(shape[:-1])
    made = builder.make("_mxc_int8_product", as_shape(builder, data, (rows, prod(shape) // rows)), weight,
                        name=node.name)
    return made if node.params.flatten else as_shape(builder, made, (*shape[:-1], node.params.num_hidden))


def int8_convolution(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """Kept where the target has kernels over four channels at a time. Else in float32, where that holds the sums, or
    float64, which holds all."""
    channels, taps = builder.shape(inputs[0])[1], prod(node.params.kernel)
    if fits_quads(node, channels, options):
        return None
    depth = channels // node.params.num_group * taps
    dtype = "float32" if depth * LARGEST_PRODUCT < EXACT_FLOAT32 else "float64"
    wide = [as_dtype(builder, entry, dtype) for entry in inputs]
    made = builder.make("Convolution", *wide, name=node.name, no_bias=True, **node.params)
    return [as_dtype(builder, made, "int32")]


def int8_product(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """In int32 by kernels over four elements of the rows at a time, where the target has them; else in float64, which
    holds all such sums."""
    data, weight = inputs
    if has_quads(options) and 0 not in builder.shape(data):
        return product_by_quads(builder, node, data, weight, options)
    wide = [as_dtype(builder, entry, "float64") for entry in inputs]
    made = builder.make("FullyConnected", *wide, name=node.name, no_bias=True, flatten=False,
                        num_hidden=builder.shape(weight)[0])
    return [as_dtype(builder, made, "int32")]


def quantized_conv(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Sums in int32, the bias added to them as it is. The range is that of int8 data also where they are uint8."""
    data, weight, *rest = inputs
    out = convolved(builder, node, data, weight)
    if not node.params.no_bias:
        bias = as_dtype(builder, rest.pop(0), "int32")
        out = builder.make("broadcast_add", out, along_filters(builder, bias, len(builder.shape(out))))
    ends = [largest(builder, *rest[:2]), largest(builder, *rest[2:4])]
    return [out, *int32_range(builder, "int8", *ends)]


def quantized_fully_connected(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Sums in int32, the bias brought to their scale and cut to whole numbers."""
    data, weight, *rest = inputs
    out, dtype = multiplied(builder, node, data, weight), builder.dtype(data)
    if not node.params.no_bias:
        bias = rest.pop(0)
        unit = builder.make("broadcast_mul", scale(builder, dtype, *rest[:2]), scale(builder, "int8", *rest[2:4]))
        unit = builder.make("broadcast_div", unit, scale(builder, "int8", *rest[4:6]))
        cut = as_dtype(builder, builder.make("trunc", times(builder, as_shape(builder, bias, (node.params.num_hidden,)),
                                                            unit)), "int32")
        out = builder.make("broadcast_add", out, along_last(builder, cut, out))
    return [out, *int32_range(builder, dtype, largest(builder, *rest[:2]), largest(builder, *rest[2:4]))]


def along_last(builder: GraphBuilder, vector: Entry, out: Entry) -> Entry:
    """A vector along the last axis of `out`."""
    ndim = len(builder.shape(out))
    return as_shape(builder, vector, (*(1,) * (ndim - 1), prod(builder.shape(vector))))


def quantized_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Means are rounded, halves to the even number. The largest of numbers of 8 bits is found among these."""
    data, *ends = inputs
    if node.params.pool_type == "max":
        return [builder.make("_mxc_int8_pooling", data, name=node.name, **node.params), *ends]
    made = builder.make("Pooling", as_dtype(builder, data, "float32"), name=node.name, **node.params)
    return [saturated(builder, made, builder.dtype(data)), *ends]


def quantized_flatten(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """(N, everything else), and the range."""
    return [builder.make("Flatten", inputs[0], name=node.name), *inputs[1:]]


def quantized_act(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """relu, and the range as it was."""
    return [as_dtype(builder, builder.make("relu", inputs[0], name=node.name), "int8"), *inputs[1:]]


def quantized_concat(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Arrays brought to the widest range."""
    params = node.params
    arrays, ends = inputs[:params.num_args], inputs[params.num_args:]
    low, high = ends[:2]
    for least, most in zip(ends[2::2], ends[3::2], strict=True):
        low, high = builder.make("broadcast_minimum", low, least), builder.make("broadcast_maximum", high, most)
    dtype = "int8" if any(builder.dtype(a) == "int8" for a in arrays) else "uint8"
    target, parts = scale(builder, dtype, low, high), []
    for array, least, most in zip(arrays, ends[::2], ends[1::2], strict=True):
        factor = builder.make("broadcast_div", target, scale(builder, builder.dtype(array), least, most))
        parts.append(saturated(builder, times(builder, array, factor), dtype))
    return [builder.make("Concat", *parts, name=node.name, num_args=len(parts), dim=params.dim), low, high]


def whole_numbers(builder: GraphBuilder, x: Entry) -> Entry:
    """`x` rounded, in int32."""
    kept = builder.make("clip", builder.make("_mxc_round", x), a_min=-INT32_LEVELS, a_max=BELOW_INT32)
    return as_dtype(builder, kept, "int32")


def quantized_elemwise_add(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Both in the scale of the sum. Where one is uint8 and the other int8 that one is rounded to int8 first."""
    sides, spans, span = inputs[:2], (inputs[2:4], inputs[4:6]), calibrated(node.params)
    given = [builder.dtype(a) for a in sides]
    ends = [largest(builder, *each) for each in spans]
    most = number(builder, max(map(abs, span))) if span else builder.make("broadcast_add", *ends)
    dtype = "int32" if span is None else "int8" if "int8" in given else "uint8"
    levels = INT32_LEVELS if span is None else LEVELS[dtype]
    parts = []
    for array, name, end in zip(sides, given, ends, strict=True):
        factor = builder.make("broadcast_div", builder.make("_mul_scalar", end, scalar=levels),
                              builder.make("_mul_scalar", most, scalar=LEVELS[name]))
        part = times(builder, array, factor)
        if name == "uint8" and "int8" in given:
            part = as_dtype(builder, saturated(builder, part, "int8"), "float32")
        parts.append(part)
    total = builder.make("elemwise_add", *parts, name=node.name)
    if span:
        return [saturated(builder, total, dtype), *stated(builder, span)]
    return [whole_numbers(builder, total), builder.make("negative", most), most]


def quantized_elemwise_mul(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Products in int32, in float32, or of a stated range: cut to whole numbers there, which wrap, as in MXNet."""
    lhs, rhs, *ends = inputs
    product = builder.make("elemwise_mul", as_dtype(builder, lhs, "int32"), as_dtype(builder, rhs, "int32"),
                           name=node.name)
    left, right = scale(builder, "int8", *ends[:2]), scale(builder, "int8", *ends[2:])
    span = calibrated(node.params)
    if node.params.enable_float_output:
        unit = builder.make("reciprocal", builder.make("broadcast_mul", left, right))
        return [times(builder, product, unit)]
    if span is None:
        most = [largest(builder, *ends[:2]), largest(builder, *ends[2:])]
        return [product, *int32_range(builder, "int8", *most)]
    target = scale(builder, "int8", *stated(builder, span))
    factor = builder.make("broadcast_div", builder.make("broadcast_div", target, left), right)
    cut = as_dtype(builder, builder.make("trunc", times(builder, product, factor)), "int32")
    return [as_dtype(builder, cut, "int8"), *stated(builder, span)]


def quantized_batch_norm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """With the moving statistics; gamma counts with fix_gamma too, as in MXNet. Halves of uint8 data are cut."""
    data, gamma, beta, mean, variance, *ends = inputs
    span, eps, shape = calibrated(node.params), node.params.eps, builder.shape(data)
    assert span is not None
    x = as_dtype(builder, data, "float32")
    if builder.dtype(data) == "uint8":
        x = builder.make("floor", builder.make("_div_scalar", x, scalar=2.0))
    target, source = scale(builder, "int8", *stated(builder, span)), scale(builder, "int8", *ends)
    deviation = builder.make("sqrt", builder.make("_plus_scalar", variance, scalar=eps))
    factor = builder.make("elemwise_div", gamma, deviation)
    shift = builder.make("elemwise_sub", beta, builder.make("elemwise_mul", mean, factor))
    factor = builder.make("broadcast_div", builder.make("broadcast_mul", factor, target), source)
    shift = builder.make("broadcast_mul", shift, target)
    along = [1] * len(shape)
    along[node.params.axis] = shape[node.params.axis]
    x = builder.make("broadcast_mul", x, as_shape(builder, factor, along))
    one = builder.make("sqrt", builder.make("_plus_scalar", number(builder, 1), scalar=eps))
    x = builder.make("broadcast_add", builder.make("broadcast_div", x, as_shape(builder, one, (1,) * len(shape))),
                     as_shape(builder, shift, along))
    return [saturated(builder, x, "int8", node.name), *stated(builder, span)]


def quantized_embedding(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Rows of the weight, and its range."""
    plain = {**node.params, "dtype": "int8"}
    return [builder.make("Embedding", *inputs[:2], name=node.name, **plain), *inputs[2:]]


def quantized_rnn(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """RNN of the data in float32, and of weights that are rounded to 8 bits: each gate's numbers, of data and of state
    together, have a range of their own."""
    data, vector, state, cell, factor, shift = inputs
    plain = Params(plain_rnn(node.params))
    x = builder.make("broadcast_sub", as_dtype(builder, data, "float32"), as_shape(builder, shift, (1, 1, 1)))
    x = builder.make("broadcast_div", x, as_shape(builder, factor, (1, 1, 1)))
    found = {(p.layer, p.direction, p.name): as_shape(builder, part(builder, vector, 0, p.start, p.stop), p.shape)
             for p in pieces(plain, builder.shape(data)[2])}
    for layer, side, name in [place for place in found if place[2] == "input"]:
        pair = [found[layer, side, name], found[layer, side, "recurrent"]]
        most = builder.make("broadcast_maximum", *[
            builder.make("max", builder.make("abs", e), axis=(1,), keepdims=True) for e in pair])
        least = filled(builder, builder.shape(most), LEAST, "float32")
        scales = builder.make("_rdiv_scalar", builder.make("broadcast_maximum", most, least), scalar=FULL["int8"])
        for each, weight in zip((name, "recurrent"), pair, strict=True):
            whole = builder.make("_mxc_round", builder.make("broadcast_mul", weight, scales))
            found[layer, side, each] = builder.make("broadcast_div", whole, scales)
    flat = [as_shape(builder, e, (prod(builder.shape(e)),)) for e in found.values()]
    made = builder.make_all("RNN", x, joined(builder, flat, 0), state, cell, name=node.name, **plain)
    return made[:node.num_outputs]
