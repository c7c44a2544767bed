"""Parts beside the others whose interface may change: `mx.contrib`. There are `onnx`, and `amp` as far as packages
ask for it.

Begin with `onnx/import_model.py`. Programs import them by their names, `from mxc.contrib import onnx`; mxc's command
`convert` does too.
"""
from __future__ import annotations

from typing import Any

__all__ = ["onnx"]


def __getattr__(name: str) -> Any:
    import importlib

    if name in __all__:
        return importlib.import_module(f"mxc.contrib.{name}")
    raise AttributeError(f"module 'mxc.contrib' has no attribute {name!r}; it has {', '.join(__all__)}, and amp, which "
                         "is imported by its name")
