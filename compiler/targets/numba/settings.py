"""Numba's settings (environment variables, and .numba_config.yaml where a program is started), which change code: what
a kernel does must not depend on them."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numba.core import config

FIXED = {"DISABLE_JIT": 0, "FULL_TRACEBACKS": 0}  # functions that are called stay plain Python; errors are printed


@contextlib.contextmanager
def fixed() -> Iterator[None]:
    """Numba's settings as functions are compiled with, for as long as its lock is held."""
    kept = {name: getattr(config, name) for name in FIXED}
    vars(config).update(FIXED)
    try:
        yield
    finally:
        vars(config).update(kept)
