"""Shapes, dtypes and values of random operators.

A rule of `values:` checks parameters beyond their types and bounds: it gives the text of what is wrong, or "". MXNet
checks when it computes. So a call of the operator by itself fails where its result is waited for (`runtime/eager.py`),
and a graph with it is refused when it is bound (`compiler/passes/infer.py`).
"""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.extent import counts, whole_shape
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all


def drawn(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All arrays have one shape: that of the parameter `shape`, if it is given."""
    known = merge_all([whole_shape(params.get("shape")), *ins, *outs])  # type: ignore[arg-type]
    return [known] * len(ins), [known] * len(outs)


def drawn_each(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """key, parameters (n, m) -> (n, each)."""
    return ins, [None if ins[1] is None else (ins[1][0], params.each)]


def sample(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The parameters have one shape. For each of their elements numbers of the shape `shape` are drawn, which is the
    shape of the output's last axes."""
    more: Shape = params.shape
    known = merge_all(ins)
    if outs[0] is not None and len(outs[0]) > len(more):
        known = merge(known, outs[0][:len(outs[0]) - len(more)])
    return [known] * len(ins), [None if known is None else merge((*known, *more), outs[0])]


def multinomial(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (..., classes) -> (..., *shape); (1,) for one draw of one distribution."""
    data = ins[0]
    if data is None:
        return ins, outs
    if not data:
        raise MXNetError("expected data of at least one axis, got a number")
    out = merge_all([(*data[:-1], *counts(*params.shape)) or (1,), *outs])
    return ins, [out] * len(outs)


def zipfian(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(rows, n) and (rows,); n different classes of range_max."""
    shape = merge(whole_shape(params.shape), outs[0])
    if shape is None:
        return ins, outs
    if len(shape) != 2:
        raise MXNetError(f"expected a shape of 2 axes, got {shape}")
    if shape[1] > params.range_max:
        raise MXNetError(f"expected a shape of at most range_max = {params.range_max} different classes in a row, "
                         f"got {shape}")
    return ins, [shape, merge(shape[:1], outs[1])]


def drawn_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `dtype` names; else the one that is asked of it, else float32. Inputs agree."""
    known = merge_dtypes(ins)
    return [known] * len(ins), [merge_dtypes([params["dtype"], outs[0]]) or "float32"]  # type: ignore[list-item]


def drawn_integers_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `dtype` names; else the one that is asked of it, else int32."""
    return ins, [merge_dtypes([params["dtype"], outs[0]]) or "int32"]  # type: ignore[list-item]


def float64_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is float64."""
    return ins, ["float64"] * len(outs)


def multinomial_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Classes have the dtype that `dtype` names, the logarithms of their probabilities the data's, a float."""
    require_kind(ins[0], "float", "data")
    data = merge_dtypes([ins[0], *outs[1:]])
    return [data], [merge_dtypes([str(params["dtype"]), outs[0]]), *[data] * len(outs[1:])]


def above_zero(values: Params) -> str:
    """All parameters of the distribution except `loc` have to be above 0."""
    for name in ("scale", "lam", "alpha", "beta"):
        if name in values and not getattr(values, name) > 0:
            return f"expected {name} above 0, got {values[name]}"
    return ""


def not_negative(values: Params) -> str:
    """Parameters of distributions of whole numbers must not be negative; k may be 0, and p is a probability."""
    for name in ("lam", "k", "mu", "alpha"):
        if name in values and not getattr(values, name) >= 0:
            return f"expected {name} of at least 0, got {values[name]}"
    return f"expected p from 0 to 1, got {values.p}" if "p" in values and not 0 <= values.p <= 1 else ""


def ordered(values: Params) -> str:
    return "" if values.low <= values.high else f"expected low <= high, got low {values.low} and high {values.high}"


def integer_range(values: Params) -> str:
    """The range from low to high - 1 must not be empty, and the dtype must hold it."""
    if not values.low < values.high:
        return f"expected low < high, got low {values.low} and high {values.high}"
    if values.dtype != "int64" and not -2**31 <= values.low < values.high <= 2**31:
        return f"low {values.low} and high {values.high} are beyond int32; pass dtype='int64'"
    return ""
