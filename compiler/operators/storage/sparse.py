"""Sparse forms of operators about storage, and what other families take of them: rows by their numbers."""
from __future__ import annotations

from math import prod

import numpy as np

from mxc.compiler.ops.expr import as_dtype
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Call, Form, block_of, name_of
from mxc.compiler.ops.storage import CSR, DEFAULT, INDEX, ROW_SPARSE, Csr, Given, Rows, stored

Stypes = tuple[str, ...]


def cast_storage(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """The data in another storage type."""
    return Form((params.stype,), lambda c: [stored(c.inputs[0], params.stype)])


def count_stored(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of a csr array, what is stored."""
    return Form((DEFAULT,), _counted) if stypes == (CSR,) else None


def _counted(c: Call) -> list[Given]:
    (parts,), axis = c.inputs, c.params.axis
    assert isinstance(parts, Csr)
    if axis is None:
        return [np.array([len(parts.values)])]
    return [np.diff(parts.starts) if axis % 2 else np.bincount(parts.columns, minlength=parts.shape[1])]


def retain(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Those of a row_sparse array's rows that are asked for."""
    return Form((ROW_SPARSE,), _retained) if stypes == (ROW_SPARSE, DEFAULT) else None


def _retained(c: Call) -> list[Given]:
    parts, wanted = c.inputs
    assert isinstance(parts, Rows) and isinstance(wanted, np.ndarray)
    rows = np.intersect1d(as_dtype(wanted, INDEX), parts.rows)
    return [Rows(rows_at(c, parts, rows), rows, parts.shape)]


def rows_at(c: Call, parts: Rows, rows: np.ndarray) -> np.ndarray:
    """The rows of these numbers, which are in range, as an array (count, ...); zeros for what is not stored."""
    places = np.minimum(np.searchsorted(parts.rows, rows), max(len(parts.rows) - 1, 0))
    if len(parts.rows):
        places[parts.rows[places] != rows] = -1
    else:
        places[:] = -1
    inner = prod(parts.shape[1:])
    out = c.empty((len(rows), *parts.shape[1:]), parts.values.dtype)
    c.run("pick_rows", [parts.values, places, out], (len(rows), inner, block_of(len(rows), inner)),
          zero=name_of(parts.values.dtype))
    return out


def add_rows(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """The sums of the rows that there are."""
    return Form((ROW_SPARSE,), _added) if params.stype == ROW_SPARSE and stypes == (DEFAULT, DEFAULT) else None


def _added(c: Call) -> list[Given]:
    data, indices = c.inputs
    assert isinstance(data, np.ndarray) and isinstance(indices, np.ndarray)
    shape, dtype = c.shapes[0], c.dtypes[0]
    numbers = np.clip(as_dtype(indices, INDEX).ravel(), 0, shape[0] - 1)
    order = np.argsort(numbers, kind="stable")
    rows, starts = np.unique(numbers[order], return_index=True)
    ends = np.append(starts, len(order)).astype(INDEX)
    inner = prod(shape[1:])
    out = c.empty((len(rows), *shape[1:]), dtype)
    c.run("sum_groups", [data, order, ends, out], (len(rows), inner, block_of(len(rows), inner)), real=dtype)
    return [Rows(out, rows, shape)]


def edges(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Elements of a csr array."""
    return Form((DEFAULT,), _edges) if stypes == (CSR, DEFAULT, DEFAULT) else None


def _edges(c: Call) -> list[Given]:
    parts, *places = c.inputs
    assert isinstance(parts, Csr)
    rows, columns = (as_dtype(np.asarray(place), INDEX) for place in places)
    known, width = parts.rows() * parts.shape[1] + parts.columns, parts.shape[1]
    wanted = np.where((columns >= 0) & (columns < width), rows * width + columns, -1)
    place = np.searchsorted(known, wanted)
    is_there = np.append(known, -1)[place] == np.where(wanted < 0, -2, wanted)
    return [np.where(is_there, np.append(parts.values, parts.values.dtype.type(0))[place], -1).astype(c.dtypes[0])]
