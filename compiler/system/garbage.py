"""Python's search for garbage, where it would only cost time."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage in the block, which makes many objects that stay, or go with their last reference: a search
    among them takes a fifth of the time of the passes, and more than all the rest of loading an artifact, and finds
    none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
