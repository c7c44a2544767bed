"""Shapes and dtypes of layers that stand for a subgraph, and what their parameters have of it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.convolution import shape as convolutions
from mxc.compiler.operators.quantization.shape import EIGHT_BITS, calibrated, expect_dtype
from mxc.compiler.operators.quantized.shape import float32_only_of, numbers, quantized_fully_connected
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge

WITHOUT_NEGATIVE = ("relu", "sigmoid", "softrelu")  # activations whose results are uint8


def fused_type(params: Params, act_type: str | None) -> str:
    """The dtype of a fused layer's results: int32 where no range is stated, else uint8 or int8 by its activation."""
    if calibrated(params) is None:
        return "int32"
    return "uint8" if act_type in WITHOUT_NEGATIVE or (act_type == "clip" and params.a_min >= 0) else "int8"


def last_activation(params: Params) -> str | None:
    """What the results of a fused convolution come out of."""
    if params.with_sum:
        return params.act_type if params.with_postsum_act or params.with_postsum_relu else None
    return params.act_type if params.with_act or params.with_relu else None


def fused_conv(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As Convolution; what is added has the results' shape, and the vectors of a normalisation one number a filter."""
    count = 2 if params.no_bias else 3
    vectors = 4 if params.with_bn else 0
    rest = ins[count + vectors:]
    summed = rest[:1] if params.with_sum else []
    known, (made,) = convolutions.convolution(params, ins[:count], outs[:1])
    made = merge(made, summed[0]) if summed else made
    filters = [merge((params.num_filter,), s) for s in ins[count:count + vectors]]
    return ([*known, *filters, *([made] if summed else []), *numbers(rest[len(summed):])],
            [made, *numbers(outs[1:])])


def fused_conv_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weights are float32; quantized, data and what is added are int8 or uint8, else float32 too."""
    made = "float32"
    given = list(ins)
    count = (2 if params.no_bias else 3) + (4 if params.with_bn else 0)
    arrays = [0, *([count] if params.with_sum else [])]
    if params.quantized:
        made = fused_type(params, last_activation(params))
        for k in arrays:
            expect_dtype("data" if k == 0 else "what is added", given[k], EIGHT_BITS)
    kept = {k: given[k] for k in arrays} if params.quantized else {}
    return ([kept.get(k) if k in kept else merge_dtypes([d, "float32"]) for k, d in enumerate(given)],
            [merge_dtypes([outs[0], made]), *float32_only_of(outs[1:])])


def fused_fully_connected(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """As FullyConnected."""
    return quantized_fully_connected(params, ins, outs)


def fused_fully_connected_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32 throughout; quantized, int8 weights of one range or float32 weights of a range for each row."""
    if not params.quantized:
        return float32_only_of(ins), float32_only_of(outs)
    count = 2 if params.no_bias else 3
    weights = "float32" if params.channel_wise_quantize else "int8"
    made = "float32" if params.enable_float_output else fused_type(params, params.act_type if params.with_eltwise
                                                                   else None)
    expect_dtype("data", ins[0], EIGHT_BITS)
    if params.channel_wise_quantize and made == "int32":
        raise MXNetError("channel_wise_quantize: expected min_calib_range and max_calib_range, or enable_float_output")
    return ([ins[0], *[merge_dtypes([d, weights]) for d in ins[1:count]], *float32_only_of(ins[count:])],
            [merge_dtypes([outs[0], made]), *float32_only_of(outs[1:])])


# --- what the subgraph tells


def _activation(node: Any) -> dict[str, object]:
    """What the parameters of a fused layer have of an operator that follows it in its subgraph."""
    params = node.params
    if node.op.name == "clip":
        return {"act_type": "clip", "a_min": params.a_min, "a_max": params.a_max}
    if node.op.name == "LeakyReLU" and params.act_type in ("leaky", "gelu"):
        return {"act_type": params.act_type, "slope": params.slope}
    if node.op.name == "Activation":
        return {"act_type": params.act_type}
    if node.op.name in ("square", "sqrt", "exp", "abs", "relu"):
        return {"act_type": node.op.name}
    raise MXNetError(f"its subgraph has the operator {node.op.name}, which cannot follow there")


def _inner(subgraphs: Sequence[Any], first: str) -> list[Any]:
    """The operators of the one subgraph of a fused layer, in order. Raises MXNetError where it has no such layer."""
    if len(subgraphs) != 1:
        raise MXNetError(f"expected one subgraph, got {len(subgraphs)}")
    nodes = [node for node in subgraphs[0].nodes if node.op is not None]
    if not nodes or nodes[0].op is None or nodes[0].op.name != first:
        raise MXNetError(f"expected a subgraph that begins with {first}, got "
                         f"{', '.join(node.op.name for node in nodes) or 'nothing'}")
    return nodes


def fused_conv_inner(params: Params, subgraphs: Sequence[Any]) -> dict[str, object]:
    """The parameters of the convolution, the BatchNorm and the activation in its subgraph."""
    conv, *rest = _inner(subgraphs, "Convolution")
    names = ("kernel", "stride", "dilate", "pad", "num_filter", "num_group", "no_bias", "layout")
    found: dict[str, object] = {name: conv.params[name] for name in names}
    for node in rest:
        if node.op.name == "BatchNorm":
            found |= {"eps": node.params.eps, "fix_gamma": node.params.fix_gamma}
        elif node.op.name not in ("elemwise_add", "_plus"):
            found |= _activation(node)
    return found


def fused_fully_connected_inner(params: Params, subgraphs: Sequence[Any]) -> dict[str, object]:
    """The parameters of the product and the activation in its subgraph."""
    product, *rest = _inner(subgraphs, "FullyConnected")
    found = {name: product.params[name] for name in ("num_hidden", "no_bias", "flatten")}
    for node in rest:
        found |= _activation(node)
    return found
