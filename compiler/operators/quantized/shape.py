"""Shapes and dtypes of layers over numbers of 8 bits. The numbers of their ranges are arrays of shape (1,)."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.arrange.shape import flatten
from mxc.compiler.operators.convolution import shape as convolutions
from mxc.compiler.operators.gather import shape as gathers
from mxc.compiler.operators.linear import shape as products
from mxc.compiler.operators.pooling.shape import pooled
from mxc.compiler.operators.quantization.shape import EIGHT_BITS, NUMBER, calibrated, expect_dtype, ranged
from mxc.compiler.operators.rnn import shape as layers
from mxc.compiler.operators.slices import shape as joins
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all


def numbers(known: Shapes) -> Shapes:
    return [merge(NUMBER, s) for s in known]


def float32_only_of(dtypes: Dtypes) -> Dtypes:
    return [merge_dtypes([d, "float32"]) for d in dtypes]


def _layer(rule, params: Params, ins: Shapes, outs: Shapes, count: int) -> tuple[Shapes, Shapes]:  # type: ignore[no-untyped-def]
    """The shapes of a layer whose first `count` inputs and first output are those of a plain one."""
    known, made = rule(params, ins[:count], outs[:1])
    return [*known, *numbers(ins[count:])], [*made, *numbers(outs[1:])]


def int8_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Convolution without a bias."""
    return convolutions.convolution(params, ins, outs)


def quad_convolution(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As a convolution with a packed weight, of int32 that hold four channels each."""
    return convolutions.packed_convolution(params, ins, outs)


def in_fours(params: Params, data: Shape) -> Shape:
    """The shape of 8-bit data in blocks, or plain, that of int32 in blocks which hold four channels each."""
    if len(data) == len(params.kernel) + 2:
        return (data[0], -(-data[1] // 4), *data[2:], 1)
    return (*data[:-1], data[-1] // 4)


def blocked_quads(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As a convolution in blocks, with a packed weight of int32 that hold four channels each."""
    data, weight = ins
    if data is None:
        return ins, outs
    known, made = convolutions.blocked_convolution(params, [in_fours(params, data), weight], outs)
    return [data, known[1]], made


def blocked_quads_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data of int8 or uint8, a weight of int32; int32 out."""
    expect_dtype("data", ins[0], EIGHT_BITS)
    return [ins[0], merge_dtypes([ins[1], "int32"])], [merge_dtypes([outs[0], "int32"])]


def int8_product(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(M, K) and (N, K) -> (M, N)"""
    data, weight = ins
    return ins, [None if data is None or weight is None else (data[0], weight[0])]


def int8_sums(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data of int8 or uint8, a weight of int8; int32 out."""
    expect_dtype("data", ins[0], EIGHT_BITS)
    return [ins[0], merge_dtypes([ins[1], "int8"])], [merge_dtypes([outs[0], "int32"])]


def quantized_conv(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Convolution of 2 or 3 axes of space."""
    if len(params.kernel) < 2:
        raise MXNetError(f"expected a kernel of 2 or 3 axes, got {params.kernel}")
    return _layer(convolutions.convolution, params, ins, outs, 2 if params.no_bias else 3)


def quantized_fully_connected(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As FullyConnected."""
    return _layer(products.fully_connected, params, ins, outs, 2 if params.no_bias else 3)


def product_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data of int8 or uint8, weight and bias of int8; int32 out."""
    count = 2 if params.no_bias else 3
    expect_dtype("data", ins[0], EIGHT_BITS)
    return ([ins[0], *[merge_dtypes([d, "int8"]) for d in ins[1:count]], *float32_only_of(ins[count:])],
            [merge_dtypes([outs[0], "int32"]), *float32_only_of(outs[1:])])


def quantized_pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Pooling, for data of 4 or 5 axes, by maximum or mean."""
    if params.pool_type not in ("max", "avg"):
        raise MXNetError(f"expected pool_type max or avg, got {params.pool_type}")
    data = ins[0]
    if data is not None and len(data) not in (4, 5):
        raise MXNetError(f"expected data of 4 or 5 axes, got {data}")
    out = outs[0] if data is None else merge(pooled(params, data), outs[0])
    return [data, *numbers(ins[1:])], [out, *numbers(outs[1:])]


def kept_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int8 or uint8 in, and the same out."""
    known = merge_dtypes([ins[0], outs[0]])
    expect_dtype("data", known, EIGHT_BITS)
    return [known, *float32_only_of(ins[1:])], [known, *float32_only_of(outs[1:])]


def quantized_flatten(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, everything else)."""
    return _layer(flatten, params, ins, outs, 1)


def flatten_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The first output is as the data."""
    known = merge_dtypes([ins[0], outs[0]])
    return [known, *float32_only_of(ins[1:])], [known, *float32_only_of(outs[1:])]


def quantized_act(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The first output has the data's shape. Raises MXNetError for activations but relu."""
    if params.act_type != "relu":
        raise MXNetError(f"expected act_type relu, got {params.act_type}")
    return ranged(params, ins, outs)


def act_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int8 or uint8 in, int8 out."""
    expect_dtype("data", ins[0], EIGHT_BITS)
    return [ins[0], *float32_only_of(ins[1:])], [merge_dtypes([outs[0], "int8"]), *float32_only_of(outs[1:])]


def quantized_concat(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Concat; the arrays are first, then all their ranges."""
    count = params.num_args
    known, made = joins.concat(params, ins[:count], outs[:1])
    return [*known, *numbers(ins[count:])], [*made, *numbers(outs[1:])]


def concat_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """uint8 where all arrays are, else int8."""
    arrays = ins[:params.num_args]
    for dtype in arrays:
        expect_dtype("data", dtype, EIGHT_BITS)
    made = outs[0]
    if None not in arrays:
        made = merge_dtypes([made, "int8" if "int8" in arrays else "uint8"])
    return [*arrays, *float32_only_of(ins[params.num_args:])], [made, *float32_only_of(outs[1:])]


def quantized_pair(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Both arrays and the first output have one shape."""
    known = merge_all([*ins[:2], outs[0]])
    return [known, known, *numbers(ins[2:])], [known, *numbers(outs[1:])]


def add_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int32; with a range among the parameters uint8 where both arrays are, else int8."""
    made = outs[0]
    for dtype in ins[:2]:
        expect_dtype("an array", dtype, EIGHT_BITS)
    if calibrated(params) is None:
        made = merge_dtypes([made, "int32"])
    elif None not in ins[:2]:
        made = merge_dtypes([made, "int8" if "int8" in ins[:2] else "uint8"])
    return [*ins[:2], *float32_only_of(ins[2:])], [made, *float32_only_of(outs[1:])]


def mul_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int8 in; float32 out where that is asked for, else int8 with a range among the parameters, else int32."""
    made = "float32" if params.enable_float_output else "int8" if calibrated(params) else "int32"
    return ([*[merge_dtypes([d, "int8"]) for d in ins[:2]], *float32_only_of(ins[2:])],
            [merge_dtypes([outs[0], made]), *float32_only_of(outs[1:])])


def quantized_batch_norm(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The first output as the data; each vector has as many elements as the data has channels."""
    if calibrated(params) is None:
        raise MXNetError("expected min_calib_range and max_calib_range, the range of the results; got none")
    data = merge(ins[0], outs[0])
    channels = None if data is None else (data[params.axis % len(data)],)
    return ([data, *[merge(channels, s) for s in ins[1:5]], *numbers(ins[5:])], [data, *numbers(outs[1:])])


def batch_norm_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int8 or uint8 in, int8 out; all else is float32."""
    return act_dtype(params, ins, outs)


def quantized_embedding(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Embedding."""
    return _layer(gathers.embedding, params, ins, outs, 2)


def quantized_embedding_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """A weight of int8, and so are the rows."""
    known = merge_dtypes([ins[1], outs[0], "int8"])
    return [ins[0], known, *float32_only_of(ins[2:])], [known, *float32_only_of(outs[1:])]


def plain_rnn(params: Params) -> dict[str, object]:
    """The parameters of the RNN that a quantized one stands for."""
    return {name: value for name, value in params.items() if name != "quantized"}


def quantized_rnn(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As RNN; data_scale and data_shift are numbers. Only LSTM layers are there, without projection and lengths."""
    if params.mode != "lstm":
        raise MXNetError(f"expected mode=lstm, got mode={params.mode}")
    for name in ("projection_size", "use_sequence_length"):
        if params[name]:
            raise MXNetError(f"expected no {name}, got {params[name]}")
    plain = Params(plain_rnn(params))
    rest = [None] * (4 - len(outs))
    known, made = layers.rnn(plain, ins[:4], [*outs, *rest])
    return [*known, *numbers(ins[4:])], made[:len(outs)]


def quantized_rnn_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data of uint8, all else of float32."""
    return [merge_dtypes([ins[0], "uint8"]), *float32_only_of(ins[1:])], float32_only_of(outs)
