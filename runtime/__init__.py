"""The runtime: what runs a program. Devices, arrays, the engine, eager operators, executors, artifacts.

Begin with `engine.py` (all work on arrays goes through it), `array.py` and `executor.py` (a graph bound to arrays);
`invoke.py` and `eager.py` run single operators, `tape.py` and `backward.py` record and differentiate them, `runner.py`
runs plans. The frontend may import every file; the runtime imports the compiler and never the frontend.
For programs the package is `mx.runtime` of MXNet, the list of features.
"""
from __future__ import annotations

from mxc.runtime.elsewhere import elsewhere

# Only who asks for them pays: importing any part of the runtime runs this file.
__getattr__, __all__ = elsewhere(__name__, {
    "": "collections ctypes", "mxc.runtime.features": "Feature Features feature_list",
    "mxc.runtime.c_types": "_LIB check_call"})
