"""Operators that MXNet has for sparse arrays too, here on dense ones: `mx.nd.sparse.dot` and so on."""
from __future__ import annotations

from typing import Any

from mxc.ndarray import functions
from mxc.ndarray.arithmetic import add, divide, multiply, subtract

__all__ = ["add", "divide", "multiply", "subtract"]
_, __dir__ = functions.namespace("sparse")

_SPARSE = ("BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "array", "csr_matrix", "empty", "row_sparse_array",
           "zeros")


def __getattr__(name: str) -> Any:
    if name in _SPARSE:
        raise AttributeError(f"module 'mxc.ndarray.sparse' has no attribute {name!r}: arrays are kept dense; make one "
                             "with mx.nd.array or mx.nd.zeros, which sparse operators take as well")
    return functions.lookup(name, "sparse")
