"""MXNet's `mx.engine`: how operators that are called one by one are grouped. The engine is runtime/engine.py."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"": "ctypes", "mxc.base": "_LIB check_call"})
__all__ = ["bulk", "set_bulk_size", *_names]


class _Bulk(threading.local):
    size = 0


_bulk = _Bulk()


def set_bulk_size(size: int) -> int:
    """Keep the number of operators that may be gathered into one piece of work, for this thread; the number before (at
    first 0).

    It changes neither results nor speed: small operators run at the call, and executors compile whole graphs.
    """
    before, _bulk.size = _bulk.size, int(size)
    return before


@contextlib.contextmanager
def bulk(size: int) -> Iterator[None]:
    """A scope with another `set_bulk_size`; the one before is back at its end, also after an error."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)
