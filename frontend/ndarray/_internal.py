"""Every operator as a function, those whose names begin with an underscore too: `mx.nd._internal._plus_scalar`."""
from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from mxc.ndarray import decoding, functions

    return decoding.FUNCTIONS.get(name) or functions.lookup(name)
