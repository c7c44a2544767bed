"""Shapes of operators about storage."""
from __future__ import annotations

from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge


def retain(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The output is as the data; the indices are along one axis."""
    data = merge(ins[0], outs[0])
    indices = ins[1]
    if indices is not None and len(indices) != 1:
        raise MXNetError(f"expected indices along one axis, got the shape {indices}")
    return [data, indices], [data]


def retain_dtype(params: Params, ins: list[str | None], outs: list[str | None],
                 ) -> tuple[list[str | None], list[str | None]]:
    """The output is of the data's dtype; the indices are of any."""
    data = ins[0] or outs[0]
    return [data, ins[1]], [data]


def count_stored(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """One number, or one for each row or column."""
    data = ins[0]
    if data is None:
        return [data], [None]
    if len(data) != 2:
        raise MXNetError(f"expected a matrix, got the shape {data}")
    if params.axis not in (None, 0, 1, -1, -2):
        raise MXNetError(f"expected the axis 0, 1 or None, got {params.axis}")
    return [data], [(1,) if params.axis is None else (data[1 - params.axis % 2],)]


def count_dtype(params: Params, ins: list[str | None], outs: list[str | None],
                ) -> tuple[list[str | None], list[str | None]]:
    """int64, whatever the data is."""
    return ins, ["int64"]


def add_rows(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data: (*indices, *inner); indices; (rows, *inner)."""
    data, indices = ins
    if data is None or indices is None:
        return [data, indices], [None]
    if prod(data[:len(indices)]) != prod(indices):
        raise MXNetError(f"indices of shape {indices} do not fit data of shape {data}")
    return [data, indices], [(params.rows, *data[len(indices):])]


def edges(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """u, v and the output are of one length."""
    data, places = ins[0], merge(merge(ins[1], ins[2]), outs[0])
    if data is not None and len(data) != 2:
        raise MXNetError(f"expected a matrix, got the shape {data}")
    if places is not None and len(places) != 1:
        raise MXNetError(f"expected u and v along one axis, got the shape {places}")
    return [data, places, places], [places]


def edges_dtype(params: Params, ins: list[str | None], outs: list[str | None],
                ) -> tuple[list[str | None], list[str | None]]:
    """The output is of the data's dtype; u and v are of any."""
    data = ins[0] or outs[0]
    return [data, ins[1], ins[2]], [data]
