"""Training that compiles for long says so in its log: else nothing is heard of it before the first batch."""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mxc.compiler.system.progress import watched

EVERY = 5.0  # seconds between two lines, and before the first: kernels of small networks take less


@contextmanager
def compiling_logged(logger: Any) -> Iterator[None]:
    """While the block runs, a compilation of kernels that goes on logs how many are done of how many."""
    told = time.monotonic()

    def tell(done: int, total: int, _: str) -> None:
        nonlocal told
        now = time.monotonic()
        if done == 0:
            told = now
        elif done < total and now - told >= EVERY:
            told = now
            logger.info("Compiling: %d of %d kernels done", done, total)

    with watched(tell):
        yield
