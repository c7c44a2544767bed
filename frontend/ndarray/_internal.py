"""Every operator as a function, those whose names begin with an underscore too: `mx.nd._internal._plus_scalar`."""
from __future__ import annotations

from typing import Any

from mxc.compiler.error import MXNetError


def __getattr__(name: str) -> Any:
    from mxc.ndarray import decoding, functions

    return decoding.FUNCTIONS.get(name) or functions.lookup(name)


def _set_value(src: float, out: Any = None, name: str | None = None) -> Any:
    """`out` with every element `src`. Raises MXNetError without `out`, which is what the operator is for."""
    if out is None:
        raise MXNetError("_set_value: expected an array `out` whose elements become src, got none")
    out[:] = src
    return out
