"""The reference of layers that stand for a subgraph, in float32 and whole numbers as MXNet's oneDNN computes them."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.fused.shape import fused_type, last_activation
from mxc.compiler.operators.linear.reference import run_plain
from mxc.compiler.operators.quantization.reference import LEVELS, Arrays, Number, largest, numbers, saturated
from mxc.compiler.operators.quantization.shape import calibrated
from mxc.compiler.operators.quantized.reference import (
    along_filters,
    convolved,
    int32_range,
    multiplied,
    name_of,
    scale,
)
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def activated(params: Params, x: np.ndarray) -> np.ndarray:
    """The activation of a fused layer's numbers."""
    kind = params.act_type
    if kind == "clip":
        return np.clip(x, params.a_min, params.a_max)
    if kind == "leaky":
        return np.where(x > 0, x, x * Number(params.slope))
    name = "LeakyReLU" if kind == "gelu" else "Activation"
    return run_plain(name, Params({"act_type": kind, "slope": 0.25, "lower_bound": 0.125, "upper_bound": 0.334}
                                  if kind == "gelu" else {"act_type": kind}), [x], False, Draws())[0].astype(np.float32)


def _limited(bias: np.ndarray | None, factor: np.ndarray, unit: Number) -> np.ndarray:
    """Scales of weights that are so small that the bias would not fit: as much as it does."""
    if bias is None:
        return np.where(np.isfinite(factor), factor, 1).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(bias == 0, np.float32(1), Number(2**30) / (np.abs(bias) * unit))
        return np.where(np.isfinite(factor), np.where(bias == 0, factor, np.minimum(factor, most)), most,
                        ).astype(np.float32)


def fused_conv(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """A convolution with what follows it: BatchNorm in its weights, a sum, an activation. Quantized, the weights of
    each filter have a range of their own, or all one where no range is stated for the results."""
    data, weight, *rest = inputs
    bias = None if params.no_bias else rest.pop(0)
    if params.with_bn:
        gamma, beta, mean, variance = rest[:4]
        del rest[:4]
        gamma = np.ones_like(gamma) if params.fix_gamma else gamma
        factor = (gamma / np.sqrt(variance.astype(np.float64) + params.eps)).astype(np.float32)
        weight = weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))
        bias = beta - mean * factor + (0 if bias is None else bias * factor)
    added = rest.pop(0) if params.with_sum else None
    last = last_activation(params)
    if not params.quantized:
        plain = Params({k: params[k] for k in ("kernel", "stride", "dilate", "pad", "num_filter", "num_group")})
        (x,) = run_plain("Convolution", plain, [data, weight], is_train, rng, no_bias=True)
        x = x if bias is None else x + along_filters(bias, x.ndim)
        x = activated(params, x) if params.with_sum and (params.with_act or params.with_relu) else x
        x = x if added is None else x + added
        return [activated(params, x) if last else x]
    span, unit = calibrated(params), scale(name_of(data), *rest[:2])
    ranges = np.abs(weight).reshape(len(weight), -1).max(1)
    ranges = ranges if span else np.full_like(ranges, ranges.max())
    with np.errstate(divide="ignore"):
        scales = _limited(bias, (LEVELS["int8"] / ranges).astype(np.float32), unit)
    whole = saturated(weight * scales.reshape(-1, *(1,) * (weight.ndim - 1)), "int8")
    sums = convolved(params, data, whole)
    if bias is not None:
        sums = sums + along_filters(np.rint(bias * (scales * unit)).astype(np.int64), sums.ndim)
    if span is None:
        ends = int32_range(name_of(data), largest(*rest[:2]), Number(ranges.max()))
        x, target = sums.astype(np.float32), unit * scales[0]
        if added is not None:
            x = x + added.astype(np.float32) * (target / scale(name_of(added), *rest[2:4]))
        elif last in (None, "relu"):
            return [np.maximum(sums, 0) if last else sums, *ends]
        x = np.maximum(x, 0) if last == "relu" else activated(params, x / target) * target if last else x
        return [np.clip(np.rint(x), -2.0**31, 2.0**31 - 128).astype(np.int64), *ends]
    dtype = fused_type(params, last)
    target = scale(dtype, *span)
    x = sums.astype(np.float32) * along_filters((target / unit / scales).astype(np.float32), sums.ndim)
    if added is not None:
        x = x + added.astype(np.float32) * (target / scale(name_of(added), *rest[2:4]))
    if last:
        x = np.maximum(x, 0) if last == "relu" else activated(params, x / target) * target
    into = dtype if added is None else name_of(added)
    return [saturated(x, into).view(dtype), *numbers(*span)]


def fused_fully_connected(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """A product with the activation that follows it."""
    data, weight, *rest = inputs
    bias = None if params.no_bias else rest.pop(0)
    act = params.with_eltwise
    if not params.quantized:
        rows = data.reshape(len(data), -1) if params.flatten else data
        x = rows.astype(np.float64) @ weight.T.astype(np.float64) + (0 if bias is None else bias)
        x = x.astype(np.float32)
        return [activated(params, x) if act else x]
    unit = scale(name_of(data), *rest[:2])
    if params.channel_wise_quantize:
        with np.errstate(divide="ignore"):
            scales = _limited(bias, LEVELS["int8"] / np.abs(weight).max(1), unit)
        weight = saturated(weight * scales[:, None], "int8")
        more = 0 if bias is None else np.rint(bias * (scales * unit))
    else:
        scales = np.asarray(scale("int8", *rest[2:4]))
        more = 0 if bias is None else np.rint(bias * (unit * scales / scale("int8", *rest[4:6])))
    sums = multiplied(params, data, weight) + np.asarray(more).astype(np.int64)
    span = calibrated(params)
    kind = params.act_type if act else None
    if params.enable_float_output:
        x = sums.astype(np.float32) * (Number(1) / unit / scales)
        return [activated(params, x) if act else x]
    if span is None:
        ends = int32_range(name_of(data), largest(*rest[:2]), largest(*rest[2:4]))
        return [np.maximum(sums, 0) if kind == "relu" else sums, *ends]
    dtype = fused_type(params, kind)
    target = scale(dtype, *span)
    x = sums.astype(np.float32) * (target / unit / scales)
    if act:
        x = np.maximum(x, 0) if kind == "relu" else activated(params, x / target) * target
    return [saturated(x, dtype), *numbers(*span)]
