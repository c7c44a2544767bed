"""Rows of an array by their numbers: what a store sends to those who ask for some of a weight's rows."""
from __future__ import annotations

from math import prod

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.storage import CSR, Rows
from mxc.runtime import engine
from mxc.runtime.array import LARGE, Array


def copy_rows(source: Array, rows: np.ndarray, target: Array) -> None:
    """Write rows of `source` to `target`, in which all others are zero.

    rows: their numbers, int64, ascending and in range. Raises MXNetError where the shapes differ, and for csr arrays.
    """
    if CSR in (source.stype, target.stype):
        raise MXNetError("rows are copied between dense and row_sparse arrays, got a csr array")
    if source.shape != target.shape:
        raise MXNetError(f"rows of an array of shape {source.shape} do not fit an array of shape {target.shape}")

    def work() -> None:
        given = source.given()
        if isinstance(given, np.ndarray):
            values = given[rows]
        else:
            values = np.zeros((len(rows), *source.shape[1:]), source.dtype)
            assert isinstance(given, Rows)
            _, here, there = np.intersect1d(rows, given.rows, assume_unique=True, return_indices=True)
            values[here] = given.values[there]
        target.have(Rows(values, rows, source.shape))

    engine.push(work, [source.variable], [target.variable], "copy_rows", len(rows) * prod(source.shape[1:]) < LARGE)
