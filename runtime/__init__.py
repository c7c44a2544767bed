"""The runtime: contexts, arrays, the engine and the executor; for programs, as `mx.runtime`, the list of features."""
from __future__ import annotations

from typing import Any

__all__ = ["Feature", "Features", "feature_list"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mxc.runtime import features  # only now: importing any part of the runtime runs this file

    return getattr(features, name)
