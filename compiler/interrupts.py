"""Ctrl-C around calls of LLVM: Python drops an exception that is raised in a callback out of C code, so an interrupt
that comes while LLVM works would be lost."""
from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held() -> Iterator[None]:
    """An interrupt that comes inside takes effect at the end. Does nothing in other threads than the main one, which
    Python never interrupts, and where no Python function handles interrupts."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
