"""The reference of layers over numbers of 8 bits, in float32 and whole numbers as MXNet's oneDNN computes them."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.convolution.reference import blocks_of, of_blocks, plain_of
from mxc.compiler.operators.linear.reference import run_plain
from mxc.compiler.operators.quantization.reference import (
    FULL,
    INT32_LEVELS,
    LEVELS,
    Arrays,
    Number,
    largest,
    numbers,
    saturated,
)
from mxc.compiler.operators.quantization.shape import LEAST, calibrated
from mxc.compiler.operators.quantized.shape import in_fours, plain_rnn
from mxc.compiler.operators.rnn.shape import pieces
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def scale(dtype: str, low: np.ndarray | float, high: np.ndarray | float) -> Number:
    """What numbers of a range are multiplied by to be of `dtype`."""
    with np.errstate(divide="ignore"):
        return LEVELS[dtype] / largest(low, high)


def name_of(array: np.ndarray) -> str:
    return array.dtype.name


def convolved(params: Params, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Exact sums: float64 holds whole numbers up to 2^53."""
    arrays = [data.astype(np.float64), weight.astype(np.float64)]
    plain = {k: params[k] for k in ("kernel", "stride", "dilate", "pad", "num_filter", "num_group")}
    return run_plain("Convolution", Params(plain), arrays, False, Draws(), no_bias=True)[0].astype(np.int64)


def multiplied(params: Params, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    rows = data.reshape(len(data), -1) if params.flatten else data
    return rows.astype(np.int64) @ weight.astype(np.int64).T


def along_filters(vector: np.ndarray, ndim: int) -> np.ndarray:
    return vector.reshape(1, -1, *(1,) * (ndim - 2))


def int32_range(data: np.ndarray | str, data_range: Number, weight_range: Number) -> Arrays:
    most = INT32_LEVELS * (data_range / FULL[str(data)] * (weight_range / FULL["int8"]))
    return numbers(-most, most)


def int8_convolution(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Exact sums of products."""
    return [convolved(params, *inputs)]


def quad_convolution(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The sum over the four bytes of each element: of uint8 in the data, of int8 in the weight."""
    data, weight = inputs
    total = None
    for shift in (0, 8, 16, 24):
        parts = (data >> shift & 255).astype(np.float64), (weight >> shift & 255).astype(np.uint8).view(np.int8)
        (made,) = run_plain("_mxc_convolution", params, [parts[0], parts[1].astype(np.float64)], is_train, rng)
        total = made if total is None else total + made
    return [np.asarray(total)]


def blocked_quads(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Exact sums over data in blocks, to which 128 is added where they are int8, to what lies around them too."""
    data, packed = inputs
    (_, blocks, *_, inner), groups = in_fours(params, data.shape), params.num_group
    channels, plain = blocks * inner // groups, data if data.ndim == len(params.kernel) + 2 else plain_of(data)
    words = of_blocks(packed, (params.num_filter, channels, *params.kernel), groups, inner)
    parts = np.stack([words >> shift & 255 for shift in (0, 8, 16, 24)], 2).astype(np.uint8).view(np.int8)
    weight = parts.reshape(params.num_filter, 4 * channels, *params.kernel)
    out = convolved(params, plain, weight[:, :plain.shape[1] // groups])
    if name_of(data) == "int8":
        out += along_filters(128 * weight.reshape(len(weight), -1).sum(1, dtype=np.int64), out.ndim)
    return [blocks_of(out, params.block)]


def int8_product(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Exact sums of products of rows; lifted: 128 is added to the weight."""
    data, weight = (a.astype(np.int64) for a in inputs)
    return [data @ (weight + 128 * params.lifted).T]


def quantized_conv(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Sums in int32, the bias added to them as it is. The range is that of int8 data also where they are uint8."""
    data, weight, *rest = inputs
    out = convolved(params, data, weight)
    if not params.no_bias:
        out = out + along_filters(rest.pop(0).astype(np.int64), out.ndim)
    return [out, *int32_range("int8", largest(*rest[:2]), largest(*rest[2:4]))]


def quantized_fully_connected(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Sums in int32, the bias brought to their scale and cut to whole numbers."""
    data, weight, *rest = inputs
    out = multiplied(params, data, weight)
    bias = None if params.no_bias else rest.pop(0)
    if bias is not None:
        unit = scale(name_of(data), *rest[:2]) * scale("int8", *rest[2:4]) / scale("int8", *rest[4:6])
        out = out + np.trunc(bias * unit).astype(np.int64)
    return [out, *int32_range(name_of(data), largest(*rest[:2]), largest(*rest[2:4]))]


def quantized_pooling(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Means are rounded, halves to the even number."""
    data, *ends = inputs
    (out,) = run_plain("Pooling", params, [data.astype(np.float32)], is_train, rng)
    return [saturated(out, name_of(data)), *ends]


def quantized_flatten(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """(N, everything else), and the range."""
    return [inputs[0].reshape(len(inputs[0]), -1), *inputs[1:]]


def quantized_act(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """relu, and the range as it was."""
    return [np.maximum(inputs[0], 0).view(np.int8), *inputs[1:]]


def quantized_concat(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Arrays brought to the widest range."""
    arrays, ends = inputs[:params.num_args], inputs[params.num_args:]
    low, high = min(e[0] for e in ends[::2]), max(e[0] for e in ends[1::2])
    dtype = "int8" if any(name_of(a) == "int8" for a in arrays) else "uint8"
    target, parts = scale(dtype, low, high), []
    for array, least, most in zip(arrays, ends[::2], ends[1::2], strict=True):
        same = name_of(array) == dtype and (least[0], most[0]) == (low, high)
        parts.append(array if same else saturated(array * (target / scale(name_of(array), least, most)), dtype))
    return [np.concatenate(parts, params.dim), *numbers(low, high)]


def quantized_elemwise_add(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Both in the scale of the sum. Where one is uint8 and the other int8 that one is rounded to int8 first."""
    sides, spans = inputs[:2], (inputs[2:4], inputs[4:6])
    given, span = [name_of(a) for a in sides], calibrated(params)
    most = largest(*span) if span else largest(*spans[0]) + largest(*spans[1])
    dtype = "int32" if span is None else "int8" if "int8" in given else "uint8"
    levels = INT32_LEVELS if span is None else LEVELS[dtype]
    parts = []
    for array, name, ends in zip(sides, given, spans, strict=True):
        part = array.astype(np.float32) * (largest(*ends) * levels / (most * LEVELS[name]))
        mixed = name == "uint8" and "int8" in given
        parts.append(saturated(part, "int8").astype(np.float32) if mixed else part)
    total = parts[0] + parts[1]
    made = np.rint(total).astype(np.int64) if span is None else saturated(total, dtype)
    return [np.clip(made, -2**31, 2**31 - 1), *numbers(*(span or (-most, most)))]


def quantized_elemwise_mul(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Products in int32, in float32, or of a stated range: cut to whole numbers there, which wrap, as in MXNet."""
    lhs, rhs, *ends = inputs
    product = lhs.astype(np.int32) * rhs.astype(np.int32)
    left, right, span = scale("int8", *ends[:2]), scale("int8", *ends[2:]), calibrated(params)
    if params.enable_float_output:
        return [product * (Number(1) / (left * right))]
    if span is None:
        return [product, *int32_range("int8", largest(*ends[:2]), largest(*ends[2:]))]
    cut = np.trunc(product.astype(np.float32) * (scale("int8", *span) / left / right))
    return [cut.astype(np.int64).astype(np.int8), *numbers(*span)]


def quantized_batch_norm(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """With the moving statistics; gamma counts with fix_gamma too, as in MXNet. Halves of uint8 data are cut."""
    data, gamma, beta, mean, variance, *ends = inputs
    span = calibrated(params)
    assert span is not None
    eps, x = Number(params.eps), data.astype(np.float32)
    x = np.floor(x / 2) if data.dtype == np.uint8 else x
    target, source = scale("int8", *span), scale("int8", *ends)
    factor = (gamma / np.sqrt(variance + eps)).astype(np.float32)
    shape = [1] * data.ndim
    shape[params.axis] = -1
    times, plus = (factor * target / source).reshape(shape), ((beta - mean * factor) * target).reshape(shape)
    return [saturated(x * times / np.sqrt(Number(1) + eps) + plus, "int8"), *numbers(*span)]


def quantized_embedding(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Rows of the weight, and its range."""
    data, weight, *ends = inputs
    plain = Params({k: params[k] for k in ("input_dim", "output_dim", "dtype", "sparse_grad")})
    return [run_plain("Embedding", plain, [data, weight], is_train, rng)[0], *ends]


def quantized_rnn(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """RNN of the data in float32, and of weights in 8 bits."""
    data, vector, state, cell, factor, shift = inputs
    plain, vector = Params(plain_rnn(params)), vector.copy()
    places = {(p.layer, p.direction, p.name): p for p in pieces(plain, data.shape[2])}
    for (layer, side, name), own in places.items():
        if name == "input":
            other = places[layer, side, "recurrent"]
            rows = [vector[p.start:p.stop].reshape(p.shape) for p in (own, other)]
            most = np.maximum(*[np.abs(each).max(1, keepdims=True) for each in rows])
            scales = FULL["int8"] / np.maximum(most, Number(LEAST))
            for each in rows:
                each[:] = np.rint(each * scales) / scales
    x = (data.astype(np.float32) - shift[0]) / factor[0]
    operator = table.get("RNN")
    made = operator.reference(operator.make_params(plain), [x, vector, state, cell], ["float32"] * 4, is_train, rng)
    return made[:3 if params.state_outputs else 1]
