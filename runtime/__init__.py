"""The runtime: contexts, arrays, the engine and the executor; for programs, as `mx.runtime`, the list of features."""
from __future__ import annotations

from mxc.runtime.elsewhere import elsewhere

# Only who asks for them pays: importing any part of the runtime runs this file.
__getattr__, __all__ = elsewhere(__name__, {
    "": "collections ctypes", "mxc.runtime.features": "Feature Features feature_list",
    "mxc.runtime.c_types": "_LIB check_call"})
