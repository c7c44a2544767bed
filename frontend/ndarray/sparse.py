"""Operators that MXNet has for sparse arrays too, here on dense ones: `mx.nd.sparse.dot` and so on."""
from __future__ import annotations

from mxc.ndarray import functions
from mxc.ndarray.arithmetic import add, divide, multiply, subtract

__all__ = ["add", "divide", "multiply", "subtract"]
__getattr__, __dir__ = functions.namespace("sparse")
