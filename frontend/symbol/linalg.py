"""Linear algebra on (batches of) matrices: `mx.sym.linalg.gemm2` is the operator `_linalg_gemm2`."""
from __future__ import annotations

from mxc.symbol import functions

__getattr__, __dir__ = functions.namespace("linalg")
