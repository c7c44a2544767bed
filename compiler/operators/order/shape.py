"""Shapes and dtypes of sorting, scans and histograms."""
from __future__ import annotations

from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.basic.shape import same_dtype
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, normal_axis


def flattened(shape: Shape) -> Shape:
    """The shape of all elements in one axis; 0 where a dimension is not known."""
    return (prod(shape),)


def around(shape: Shape, axis: int | None) -> Shape:
    """(elements before, along, behind) an axis; None: all lie along it."""
    if axis is None:
        return 1, prod(shape), 1
    axis %= len(shape)
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1:])


def count_of(params: Params, size: int) -> int:
    """How many of `size` numbers topk finds: k, or all of them where k is less than 1. Raises MXNetError when there
    are not so many."""
    k = params["k"]
    assert isinstance(k, int)
    if size and k > size:
        raise MXNetError(f"expected k of at most the {size} numbers along the axis, got {k}")
    return k if k >= 1 else size


def _axis(params: Params, rank: int) -> int | None:
    axis = params["axis"]
    assert axis is None or isinstance(axis, int)
    return None if axis is None else normal_axis(axis, rank)


def topk(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """mask: the data's shape. Else the data's with k along the axis, or (k,) for axis None."""
    data = ins[0]
    if data is None:
        return ins, outs
    axis = _axis(params, len(data))
    shape, along = (flattened(data), 0) if axis is None else (data, axis)
    count = count_of(params, shape[along])
    if params["ret_typ"] == "mask":
        known = merge(data, outs[0])
        return [known], [known]
    found = (*shape[:along], count, *shape[along + 1:])
    return ins, [merge(found, out) for out in outs]


def sort(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, in one axis for axis None."""
    data = ins[0]
    if data is None:
        return ins, outs
    if _axis(params, len(data)) is None:
        return ins, [merge(flattened(data), out) for out in outs]
    known: Shape | None = data
    for out in outs:
        known = merge(known, out)
    return [known], [known] * len(outs)


def argsort_rows(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (rows, n) -> (rows, k)."""
    assert isinstance(params["k"], int)
    return ins, [None if ins[0] is None else (ins[0][0], params["k"])]


def take_along(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (rows, n), order (rows, k) -> (rows, k)."""
    return ins, [ins[1]]


def put_along(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data, order (rows, k) -> (rows, n)."""
    assert isinstance(params["n"], int)
    return ins, [None if ins[0] is None else (ins[0][0], params["n"])]


def histogram(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Counts (bins,) and edges (bins + 1,): from `bin_cnt`, or the second input."""
    bins = params["bin_cnt"]
    if bins is None:
        edges = merge(ins[1], outs[1])
        if edges is not None and (len(edges) != 1 or edges[0] == 1):
            raise MXNetError(f"expected bins of one axis and at least 2 edges, got {edges}")
        return [ins[0], edges], [None if edges is None else (max(edges[0] - 1, 0),), edges]
    limits = params["range"]
    if not isinstance(limits, tuple) or len(limits) != 2 or not limits[0] < limits[1]:
        raise MXNetError(f"expected bin_cnt with a range of two ascending numbers, got {limits}")
    assert isinstance(bins, int)
    return ins, [(bins,), (bins + 1,)]


def histogram_counts(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (n), edges (bins + 1) -> (bins,)."""
    return ins, [None if ins[1] is None else (ins[1][0] - 1,)]


def topk_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Values and masks have the data's dtype, places that of the parameter."""
    places = params["dtype"]
    assert isinstance(places, str)
    if params["ret_typ"] == "indices":
        return ins, [merge_dtypes([places, outs[0]])]
    known = merge_dtypes([ins[0], outs[0]])
    return [known], [known, *(merge_dtypes([places, o]) for o in outs[1:])]


def sort_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Values have the data's dtype, places are int32."""
    known = merge_dtypes([ins[0], outs[0]])
    return [known], [known, "int32"]


def cumsum_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `dtype` names, else the data's, and int64 for bool."""
    asked = params["dtype"]
    assert asked is None or isinstance(asked, str)
    if asked or ins[0] == "bool":
        return ins, [merge_dtypes([asked or "int64", outs[0]])]
    return same_dtype(params, ins, outs)


def histogram_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Counts are int64, edges have the data's dtype."""
    known = merge_dtypes([*ins, outs[1]])
    return [known] * len(ins), ["int64", known]
