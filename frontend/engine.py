"""How operators that are called one by one are grouped: `mx.engine`."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _Bulk(threading.local):
    size = 0


_bulk = _Bulk()


def set_bulk_size(size: int) -> int:
    """Allow groups of so many operators in this thread; the number before (at first 0).

    A hint: results and their order are the same for every size, and executors compile whole graphs anyway.
    """
    before, _bulk.size = _bulk.size, int(size)
    return before


@contextlib.contextmanager
def bulk(size: int) -> Iterator[None]:
    """A scope with another `set_bulk_size`."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)
