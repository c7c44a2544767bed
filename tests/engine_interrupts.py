"""Interrupts (Ctrl-C) between the engine's own steps, and whether it lost work by one."""
from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from mxc.runtime import engine, engine_queue, engine_work

MODULES = vars(engine), vars(engine_queue), vars(engine_work)


@contextlib.contextmanager
def interrupted_at(step: str, event: str) -> Iterator[None]:
    """The block is interrupted once, and must be: where it calls the engine's function `step`, or where that returns.
    event: "call" or "return"."""
    came = []

    def interrupt(frame: FrameType, what: str, _: object) -> Callable | None:
        if frame.f_code.co_name == step and frame.f_globals in MODULES and not came:
            if what == event:
                came.append(True)
                raise KeyboardInterrupt
            return interrupt
        return None

    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        sys.settrace(None)


def check_nothing_is_lost(seconds: float) -> None:
    """All work is done after so many seconds."""
    waits = threading.Thread(target=engine.waitall, daemon=True)
    waits.start()
    waits.join(seconds)
    assert not waits.is_alive(), "what was interrupted is pending for ever"
