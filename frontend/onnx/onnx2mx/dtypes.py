"""Dtypes of ONNX as MXNet has them."""
from __future__ import annotations

from mxc.compiler.error import MXNetError, UnsupportedError
from mxc.onnx.package import onnx_package
from mxc.runtime.array import dtype_name


def dtype_of(code: int, what: str) -> str:
    """The dtype of a number in ONNX. what: what has it. Raises UnsupportedError for one that MXNet does not have."""
    onnx = onnx_package(what)
    try:
        return dtype_name(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (MXNetError, KeyError, TypeError, ValueError):
        name = onnx.TensorProto.DataType.Name(code) if code in onnx.TensorProto.DataType.values() else code
        raise UnsupportedError(f"{what}: there is no counterpart of the dtype {name}") from None
