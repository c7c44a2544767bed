"""Shapes and dtypes of operators that make arrays from numbers and shapes."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.extent import counts
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, normal_axis


def arange_length(params: Params) -> int | None:
    """How many numbers `_arange` makes; None when its length is inferred from what uses it."""
    if params["infer_range"] and params["stop"] is None:
        return None
    start, stop, step, repeat = (params[k] for k in ("start", "stop", "step", "repeat"))
    assert isinstance(start, float) and isinstance(step, float) and isinstance(repeat, int)
    if stop is None:
        start, stop = 0.0, start
    assert isinstance(stop, float)
    if step == 0:
        raise MXNetError("expected a step other than 0")
    if not all(map(math.isfinite, (start, stop, step, (stop - start) / step))):
        raise MXNetError(f"the range from {start} to {stop} by {step} has no finite number of elements")
    count = math.ceil((stop - start) / step) * repeat
    if count <= 0:
        raise MXNetError(f"the range from {start} to {stop} by {step} is empty")
    return count


def arange(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(number of values,)."""
    count = arange_length(params)
    return ins, [merge(None if count is None else (count,), outs[0])]


def shape_array(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(rank,)."""
    return ins, [merge((0 if ins[0] is None else len(ins[0]),), outs[0])]


def size_array(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(1,)."""
    return ins, [merge((1,), outs[0])]


def index_axes(params: Params, rank: int) -> Shape:
    """The axes that index_array tells the index in."""
    axes = params["axes"]
    assert axes is None or isinstance(axes, tuple)
    return tuple(range(rank)) if axes is None else tuple(normal_axis(a, rank) for a in axes)


def index_array(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape and an axis more, of an index for each of `axes`."""
    data = ins[0]
    if data is None:
        return ins, outs
    return ins, [merge((*data, len(index_axes(params, len(data)))), outs[0])]


def arange_like(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, or (its extent along `axis`,)."""
    data, axis = ins[0], params["axis"]
    if data is None:
        return ins, outs
    assert axis is None or isinstance(axis, int)
    shape = data if axis is None else (data[normal_axis(axis, len(data))],)
    return ins, [merge(shape, outs[0])]


def eye(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, M), or (N, N) where M is not above 0."""
    rows, columns = params["N"], params["M"]
    assert isinstance(rows, int) and isinstance(columns, int)
    return ins, [merge(counts(rows, columns if columns > 0 else rows), outs[0])]


def linspace(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(num,)."""
    number = params["num"]
    assert isinstance(number, int)
    return ins, [merge(counts(number), outs[0])]


def numbered_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype of MXNet's number `dtype`; -1: the dtype that its users need."""
    numbers = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
    number = params["dtype"]
    assert isinstance(number, int)
    return ins, outs if number == -1 else [merge_dtypes([numbers[number], *outs])]
