"""Ctrl-C around code that does not pass KeyboardInterrupt on. Python drops an exception that is raised in a callback
from C code, such as LLVM's; and a package may turn one that comes while it is imported into another error, as NumPy
does."""
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


@contextmanager
def noticed() -> Iterator[list[int]]:
    """Gives a list to which every interrupt that comes inside is added; it also does what it would do anyway. The list
    stays empty in other threads than the main one, and where no Python function handles interrupts."""
    handler = signal.getsignal(signal.SIGINT)
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield came
        return

    def notice(number: int, frame: FrameType | None) -> None:
        came.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, notice)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, handler)
