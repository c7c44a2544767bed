"""Shapes and dtypes of quantization. A range is two numbers of float32, each an array of shape (1,)."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge

NUMBER: Shape = (1,)
EIGHT_BITS = ("int8", "uint8")
# What the largest absolute number of a range becomes: by most of MXNet's operators, by some, and in int32.
LEVELS = {"int8": 127.5, "uint8": 255.5}
FULL = {"int8": 127.0, "uint8": 255.0}
INT32_LEVELS = 2147483648.0  # 2^31 - 1 in float32
LEAST = 1.2e-38  # the smallest normal number of float32


def calibrated(params: Params) -> tuple[float, float] | None:
    """The range that the parameters state; None where they leave it to the data."""
    low, high = params["min_calib_range"], params["max_calib_range"]
    return (low, high) if isinstance(low, float) and isinstance(high, float) else None


def out_type(params: Params) -> str:
    """The dtype of quantized data: `auto` is uint8 where the stated range has no number below 0, else int8."""
    if params.out_type != "auto":
        return params.out_type
    span = calibrated(params)
    return "uint8" if span is not None and span[0] >= 0 else "int8"


def expect_dtype(what: str, dtype: str | None, allowed: tuple[str, ...]) -> None:
    if dtype is not None and dtype not in allowed:
        raise MXNetError(f"expected {what} of dtype {' or '.join(allowed)}, got {dtype}")


def ranged(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The first output has the data's shape. What else there is, in or out, is a number of a range."""
    known = merge(ins[0], outs[0])
    return [known, *[merge(NUMBER, s) for s in ins[1:]]], [known, *[merge(NUMBER, s) for s in outs[1:]]]


def quantize_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32 in, `out_type` out."""
    return ([merge_dtypes([d, "float32"]) for d in ins],
            [merge_dtypes([outs[0], params.out_type]), *[merge_dtypes([d, "float32"]) for d in outs[1:]]])


def quantize_v2_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32, or what is quantized already, in; `out_type` out."""
    expect_dtype("data", ins[0], ("float32", *EIGHT_BITS))
    return ins, [merge_dtypes([outs[0], out_type(params)]), *[merge_dtypes([d, "float32"]) for d in outs[1:]]]


def quantize_asym_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32 in, uint8 and two numbers of float32 out."""
    return ([merge_dtypes([ins[0], "float32"])],
            [merge_dtypes([outs[0], "uint8"]), *[merge_dtypes([d, "float32"]) for d in outs[1:]]])


def requantize_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int32 and its range in, `out_type` and its range out."""
    return ([merge_dtypes([ins[0], "int32"]), *[merge_dtypes([d, "float32"]) for d in ins[1:]]],
            [merge_dtypes([outs[0], out_type(params)]), *[merge_dtypes([d, "float32"]) for d in outs[1:]]])


def dequantize_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """int8 or uint8 and its range in, float32 out."""
    expect_dtype("data", ins[0], EIGHT_BITS)
    return [ins[0], *[merge_dtypes([d, "float32"]) for d in ins[1:]]], [merge_dtypes([outs[0], "float32"])]



def calibrate_entropy(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A histogram of n bins, and the n + 1 places where they begin and end; two numbers."""
    hist, edges = ins
    if hist is None and edges is None:
        return ins, [NUMBER, NUMBER]
    for name, known in (("hist", hist), ("hist_edges", edges)):
        if known is not None and len(known) != 1:
            raise MXNetError(f"expected {name} of one axis, got {known}")
    bins = hist[0] if hist is not None else edges[0] - 1 if edges is not None else 0
    if bins and bins < params.num_quantized_bins:
        raise MXNetError(f"expected a histogram of at least num_quantized_bins={params.num_quantized_bins} bins, got "
                         f"{bins}")
    return [merge((bins,), hist), merge((bins + 1,), edges)], [NUMBER, NUMBER]
