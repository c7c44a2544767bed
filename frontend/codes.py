"""The numbers by which MXNet's files and library know dtypes, gradient requests and storage types."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.dtypes import BFLOAT16
from mxc.compiler.passes.stated import DTYPE_CODES

_DTYPE_MX_TO_NP = {-1: None, **{code: BFLOAT16 if name == "bfloat16" else np.dtype(name).type
                              for code, name in DTYPE_CODES.items()}}
_DTYPE_NP_TO_MX = {dtype: code for code, dtype in _DTYPE_MX_TO_NP.items()}
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
_STORAGE_TYPE_ID_TO_STR = {number: name for name, number in _STORAGE_TYPE_STR_TO_ID.items()}
_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = \
    _STORAGE_TYPE_STR_TO_ID.values()
# What `mx.nd.get_indexing_dispatch_code` gives.
_NDARRAY_UNSUPPORTED_INDEXING, _NDARRAY_BASIC_INDEXING, _NDARRAY_ADVANCED_INDEXING = -1, 0, 1
_NDARRAY_EMPTY_TUPLE_INDEXING = 2
_SIGNED_INT32_UPPER_LIMIT = 2**31 - 1


def _int64_enabled() -> bool:
    """Whether arrays may have 2^31 elements and more."""
    return True
