"""Linear algebra on (batches of) matrices: `mx.nd.linalg.gemm2` is the operator `_linalg_gemm2`."""
from __future__ import annotations

from mxc.ndarray import functions

__getattr__, __dir__ = functions.namespace("linalg")
