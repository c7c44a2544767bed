"""ONNX models: `mx.onnx` writes them, `mx.contrib.onnx` reads them too. Needs the extra `onnx`.

Begin with `mx2onnx/export.py` (symbols to ONNX) or `onnx2mx/load.py` (ONNX to symbols). Both are a table of converters,
an operator each, over a `Call` that a converter reads its operator from and makes nodes with. `extents.py` says how
sizes stay free.
"""
from mxc.onnx import mx2onnx
from mxc.onnx.export_model import export_model, get_operator_support

__all__ = ["export_model", "get_operator_support", "mx2onnx"]
