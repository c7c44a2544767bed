"""Parts beside the others whose interface may change: `mx.contrib`. There are `amp`, `onnx` and `quantization`.

Begin with `amp/amp.py`: mixed precision; with `onnx/import_model.py`; or with `quantization.py`: networks over numbers
of 8 bits, whose graphs are made in `quantized_graph.py`, fused in `fused_graph.py`, and told their ranges by
`calibration.py`. Programs import the parts by their names, `from mxc.contrib import onnx`; mxc's command `convert` does
too.
"""
from __future__ import annotations

from typing import Any

_ALIASES = {"quant": "quantization"}
__all__ = ["onnx", "quant", "quantization"]
_FOUND = ("amp", *__all__)  # MXNet's star import leaves out amp


def __getattr__(name: str) -> Any:
    import importlib

    if name in _FOUND:
        return importlib.import_module(f"mxc.contrib.{_ALIASES.get(name, name)}")
    raise AttributeError(f"module 'mxc.contrib' has no attribute {name!r}; it has {', '.join(_FOUND)}")
