"""Shapes and dtypes of operators that read and write at indices."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.extent import counts
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge, merge_all, normal_axis


def take(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The indices' axes stand in the place of the data's `axis`."""
    data, indices = ins
    if data is None:
        return ins, outs
    axis = normal_axis(params.axis, len(data))
    if indices is None:
        return ins, outs
    return ins, [merge((*data[:axis], *indices, *data[axis + 1:]), outs[0])]


def embedding(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (...) and weight (input_dim, output_dim) -> (..., output_dim)."""
    data, weight = ins[0], merge(ins[1], (params.input_dim, params.output_dim))
    if outs[0] is not None:
        data = merge(data, outs[0][:-1])
    return [data, weight], [outs[0] if data is None else merge((*data, params.output_dim), outs[0])]


def bound_index(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The output has the shape of the indices."""
    known = merge(ins[0], outs[0])
    return [known], [known]


def index_columns(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(axes of `shape`, ...) -> (...)."""
    indices = ins[0]
    if indices is None:
        return ins, outs
    if indices[0] and indices[0] != len(params.shape):
        raise MXNetError(f"expected {len(params.shape)} rows of indices, one for each axis of {params.shape}, got the "
                         f"shape {indices}")
    return ins, [merge(indices[1:], outs[0])]


def pick(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """One element of each line along `axis`, which the output keeps as 1 with `keepdims`; the index may keep it."""
    data, index = ins
    if params.axis is None:
        raise MXNetError("expected an axis, got None, which pick does not take")
    if data is None:
        return ins, outs
    axis = normal_axis(params.axis, len(data))
    kept = (*data[:axis], 1, *data[axis + 1:])
    left = (*data[:axis], *data[axis + 1:]) or (1,)
    index = merge(index, kept if index is not None and len(index) == len(data) else left)
    out = merge(kept if params.keepdims else left, outs[0])
    return [data, index], [out]


def unpick(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """What flows into pick's output, with its axis of `size` again."""
    grad = ins[0]
    if grad is None:
        return ins, outs
    rest = grad[params.axis + 1:] if params.kept else grad[params.axis:]
    return ins, [merge((*grad[:params.axis], params.size, *rest), outs[0])]


def batch_take(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(N, M) and indices (N,) -> (N,)."""
    data, indices = ins
    if data is not None and len(data) != 2:
        raise MXNetError(f"expected a of 2 dimensions, got {data}")
    rows = merge(merge(indices, outs[0]), None if data is None else data[:1])
    return [data, rows], [rows]


def one_hot(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(...) -> (..., depth)."""
    indices = ins[0] if outs[0] is None else merge(ins[0], outs[0][:-1])
    return [indices], [outs[0] if indices is None else merge((*indices, *counts(params.depth)), outs[0])]


def onehot_encode(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Indices (N,), and an array (N, depth) whose shape is the output's."""
    known = merge(ins[1], outs[0])
    if known is not None and len(known) != 2:
        raise MXNetError(f"expected rhs of 2 dimensions, got {known}")
    return [merge(ins[0], None if known is None else known[:1]), known], [known]


def fill_element(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """lhs (N, M), mhs and rhs (N,) -> (N, M)."""
    lhs = merge(ins[0], outs[0])
    if lhs is not None and len(lhs) != 2:
        raise MXNetError(f"expected lhs of 2 dimensions, got {lhs}")
    rows = merge(merge(ins[1], ins[2]), None if lhs is None else lhs[:1])
    return [lhs, rows, rows], [lhs]


def _check_indices(indices: tuple[int, ...] | None, rank: int | None) -> None:
    """Raises MXNetError unless `indices`, where known, have at least two axes, the first of them 1..rank long."""
    if indices is not None and len(indices) < 2:
        raise MXNetError(f"expected indices of at least 2 dimensions, got {indices}")
    if indices is not None and rank is not None and indices[0] > rank:
        raise MXNetError(f"expected at most {rank} rows of indices, one for each axis, got the shape {indices}")


def gather_nd(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data of N axes and indices (M, ...) -> (..., the data's axes from M on)."""
    data, indices = ins
    _check_indices(indices, len(data) if data is not None else None)
    if data is None or indices is None or 0 in indices:
        return ins, outs
    return ins, [merge((*indices[1:], *data[indices[0]:]), outs[0])]


def scatter_nd(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (..., axes of `shape` from M on) and indices (M, ...) -> `shape`."""
    data, indices = ins
    _check_indices(indices, len(params.shape))
    if indices is not None and 0 not in indices:
        data = merge(data, (*indices[1:], *params.shape[indices[0]:]) or (1,))
    return [data, indices], [merge(params.shape, outs[0])]


def scatter_set_nd(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """lhs of `shape`; the others as in scatter_nd."""
    (values, indices), out = scatter_nd(params, [ins[1], ins[2]], [merge(ins[0], outs[0])])
    return [out[0], values, indices], out


def ravel(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(axes of `shape`, N) -> (N,)."""
    data = ins[0]
    if not params.shape:
        raise MXNetError("expected a shape with axes, got none")
    if data is not None and len(data) != 2:
        raise MXNetError(f"expected data of 2 dimensions, got {data}")
    return index_columns(params, [merge(data, (len(params.shape), *(outs[0] or (0,))))], outs)


def unravel(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(...) -> (axes of `shape`, ...)."""
    if not params.shape:
        raise MXNetError("expected a shape with axes, got none")
    data = merge(ins[0], None if outs[0] is None else outs[0][1:])
    return [data], [outs[0] if data is None else merge((len(params.shape), *data), outs[0])]


def index_copy(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Old (R, ...), indices (N,), new (N, ...) -> (R, ...)."""
    old, indices, new = merge(ins[0], outs[0]), ins[1], ins[2]
    if indices is not None and len(indices) != 1:
        raise MXNetError(f"expected index_vector of 1 dimension, got {indices}")
    if old is not None:
        new = merge(new, (0, *old[1:]))
    if new is not None:
        indices = merge(indices, new[:1])
        old = merge(old, (0, *new[1:]))
    if new is not None and indices is not None:
        new = merge(new, (*indices, *new[1:]))
    if old is not None and indices is not None and old[0] and indices[0] > old[0]:
        raise MXNetError(f"expected at most {old[0]} rows of new_tensor, as many as old_tensor has, got {indices[0]}")
    return [old, indices, new], [old]


def scatter_add(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (outer, count, inner), indices (count,) -> (outer, rows, inner)."""
    data = ins[0]
    if data is None:
        return ins, outs
    outer, count, inner = data
    return [data, (count,)], [(outer, params.rows, inner)]


def scatter_rows(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (count, inner), indices (count,) -> (rows, inner)."""
    data = ins[0]
    return (ins, outs) if data is None else ([data, data[:1]], [(params.rows, data[1])])


def scatter_set(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """base (rows, inner), data (count, inner), indices (count,) -> (rows, inner)."""
    return ins, [merge(ins[0], outs[0])]


def rows_of(shape: tuple[int, ...], axes: int) -> tuple[int, int]:
    """An array as (places that an index of `axes` axes tells, elements at each)."""
    return math.prod(shape[:axes]), math.prod(shape[axes:])


def embedding_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weight and output have one dtype: `dtype` where nothing else is known of it. The data's dtype is free."""
    known = merge_dtypes([ins[1], outs[0]]) or params["dtype"]
    assert isinstance(known, str)
    return [ins[0], known], [known]


def batch_take_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data and output agree; indices are int32."""
    known = merge_dtypes([ins[0], outs[0]])
    return [known, merge_dtypes([ins[1], "int32"])], [known]


def onehot_encode_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The second input and the output agree; the indices are free."""
    known = merge_dtypes([ins[1], outs[0]])
    return [ins[0], known], [known]


def two_and_index(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The first two inputs and the output agree; the third, an index, is free."""
    known = merge_dtypes([*ins[:2], outs[0]])
    return [known, known, ins[2]], [known]


def index_copy_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The first and the last input and the output agree; the index between is free."""
    known = merge_dtypes([ins[0], ins[2], outs[0]])
    return [known, ins[1], known], [known]


def count_sketch(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (..., n), h and s (1, n) -> (..., out_dim)"""
    data, places = ins[0], merge_all([ins[1], ins[2], (1, 0)])
    if not data:
        return [data, places, places], outs
    places = merge(places, (1, data[-1]))
    return [data, places, places], [merge((*data[:-1], params.out_dim), outs[0])]


def sketch_of_size(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The last axis of known data becomes `size`."""
    assert ins[0] is not None
    return ins, [(*ins[0][:-1], params.size)]
