"""Sparse forms of elementwise operators.

Where f(0) is 0, f of the stored elements is all there is: of one array, of the places of both for a sum, of those of
one for a product.
"""
from __future__ import annotations

from functools import partial

import numpy as np

from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Call, Form
from mxc.compiler.ops.storage import (
    CSR,
    DEFAULT,
    ROW_SPARSE,
    Csr,
    Given,
    Parts,
    Rows,
    csr_of,
    dense,
    empty,
    stored,
    with_values,
)

Stypes = tuple[str, ...]


def _parts(given: Given) -> Parts:
    assert not isinstance(given, np.ndarray)
    return given


# ---- of one array


def stored_values(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """f of the stored elements: 0 stays 0."""
    return Form(stypes, _of_stored)


def _of_stored(c: Call) -> list[Given]:
    parts = _parts(c.inputs[0])
    return [with_values(parts, c.of(parts.values))]


def where_zero_stays(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """As `stored_values`, where 0 stays 0 with these parameters."""
    return stored_values(op, params, stypes) if _at_zero(op, params) == 0 else None


def filled_with_zeros(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """As `where_zero_stays`, else dense: f(0) where nothing is stored."""
    return where_zero_stays(op, params, stypes) or Form((DEFAULT,), partial(_filled, _at_zero(op, params)))


def _at_zero(op: Operator, params: Params) -> float:
    with np.errstate(all="ignore"):
        return op.reference(params, [np.zeros(1)], ["float64"])[0].item()


def _filled(rest: float, c: Call) -> list[Given]:
    parts, out = _parts(c.inputs[0]), c.empty(c.shapes[0], c.dtypes[0])
    out[...] = rest
    out[_places(parts)] = c.of(parts.values)
    return [out]


def _places(parts: Parts) -> tuple[np.ndarray, ...]:
    """NumPy's index of the stored elements, or rows."""
    return (parts.rows,) if isinstance(parts, Rows) else (parts.rows(), parts.columns)


def nothing_stored(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Zeros, of which none is stored."""
    return Form(stypes, lambda c: [empty(stypes[0], c.shapes[0], c.dtypes[0])])


# ---- of two arrays


def of_both(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of two arrays kept in the same way: f of the elements of the places of both."""
    return Form(stypes[:1], _union) if stypes[0] == stypes[1] != DEFAULT else None


def sum_of_both(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """As `of_both`; with a dense array, dense."""
    return of_both(op, params, stypes) or (Form((DEFAULT,), is_told=False) if DEFAULT in stypes else None)


def _union(c: Call) -> list[Given]:
    lhs, rhs = map(_parts, c.inputs)
    if isinstance(lhs, Rows) and isinstance(rhs, Rows):
        rows = np.union1d(lhs.rows, rhs.rows)
        return [Rows(c.of(_spread(lhs, rows), _spread(rhs, rows)), rows, lhs.shape)]
    assert isinstance(lhs, Csr) and isinstance(rhs, Csr)
    one, other = _keys(lhs), _keys(rhs)
    keys = np.union1d(one, other)
    values = c.of(*(_at(found, parts.values, keys) for found, parts in ((one, lhs), (other, rhs))))
    kept = values != 0
    rows, columns = np.divmod(keys[kept], lhs.shape[1] or 1)
    return [csr_of(values[kept], rows, columns, lhs.shape)]


def _keys(parts: Csr) -> np.ndarray:
    """The row-major position of each element, which ascends."""
    return parts.rows() * parts.shape[1] + parts.columns


def _at(known: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The values of wanted numbers: those of the known ones, which ascend, and zeros for others."""
    if not len(known):
        return np.zeros((len(wanted), *values.shape[1:]), values.dtype)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found = values[place]
    found[known[place] != wanted] = 0
    return found


def _spread(parts: Rows, rows: np.ndarray) -> np.ndarray:
    """The values of these rows, zeros for what is not stored."""
    return _at(parts.rows, parts.values, rows)


def product(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of two arrays, of which one is kept in parts, or both in the same way: zeros but for the places of that one."""
    if stypes[0] != DEFAULT and stypes[1] != DEFAULT:
        return of_both(op, params, stypes)
    k = 0 if stypes[0] != DEFAULT else 1
    return Form((stypes[k],), partial(_at_places, k))


def quotient(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Dense, for 0 / 0 is no number."""
    return Form((DEFAULT,), is_told=False) if {*stypes} != {CSR} and {*stypes} != {CSR, ROW_SPARSE} else None


def at_first(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """f of the elements that the first array stores; zeros elsewhere, as of what is proportional to it."""
    return Form(stypes[:1], partial(_at_places, 0)) if stypes[0] != DEFAULT else None


def at_rows_of_first(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """As `at_first`, of a row_sparse array."""
    return at_first(op, params, stypes) if stypes[0] == ROW_SPARSE else None


def _at_places(k: int, c: Call) -> list[Given]:
    """f at the places of input k."""
    parts = _parts(c.inputs[k])
    values = [parts.values if i == k else _read(given, parts) for i, given in enumerate(c.inputs)]
    return [with_values(parts, c.of(*values))]


def _read(given: Given, parts: Parts) -> np.ndarray:
    """The elements of an array at the places of another one, with which it is broadcast."""
    if isinstance(given, Rows) and isinstance(parts, Rows):
        return _spread(given, parts.rows)
    if isinstance(given, Csr) and isinstance(parts, Csr):
        return _at(_keys(given), given.values, _keys(parts))
    return np.broadcast_to(dense(given), parts.shape)[_places(parts)]


def broadcast_product(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of a csr array and a dense one, which may be broadcast: a csr array."""
    return Form((CSR,), partial(_at_places, 0)) if stypes == (CSR, DEFAULT) else None


def broadcast_sum(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of a csr array and a dense one, which may be broadcast: dense."""
    return Form((DEFAULT,), is_told=False) if {*stypes} == {CSR, DEFAULT} else None


def kept_as_second(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """The first array, kept as the second is."""
    return Form(stypes[1:], lambda c: [stored(c.inputs[0], stypes[1])])


def condition_in_parts(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """where of a csr condition: y, and x where something is stored that is not 0."""
    return Form((DEFAULT,), _chosen) if stypes == (CSR, DEFAULT, DEFAULT) else None


def _chosen(c: Call) -> list[Given]:
    condition, x, y = c.inputs
    assert isinstance(condition, Csr) and isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    out = c.empty(c.shapes[0], c.dtypes[0])
    out[...] = y
    chosen = tuple(numbers[condition.values != 0] for numbers in _places(condition))
    out[chosen] = x[chosen]
    return [out]


def quadratic(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """Of a csr array, where 0 stays 0."""
    return where_zero_stays(op, params, stypes) if stypes == (CSR,) else None


# ---- of any number of arrays


def sum_of_rows(op: Operator, params: Params, stypes: Stypes) -> Form | None:
    """The sum of row_sparse arrays."""
    return Form((ROW_SPARSE,), _sum) if {*stypes} == {ROW_SPARSE} else None


def _sum(c: Call) -> list[Given]:
    given = [parts for parts in c.inputs if isinstance(parts, Rows)]
    rows = np.unique(np.concatenate([parts.rows for parts in given]))
    return [Rows(c.of(*(_spread(parts, rows) for parts in given)), rows, given[0].shape)]
