"""Numba's settings (environment variables, and .numba_config.yaml where a program is started), which change code: what
a kernel does must not depend on them."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numba.core import config

FIXED = {"DISABLE_JIT": 0, "FULL_TRACEBACKS": 0}  # 1 leaves called functions plain Python, and prints errors


@contextlib.contextmanager
def fixed() -> Iterator[None]:
    """Gives Numba the settings that functions are compiled with. The caller holds Numba's lock meanwhile."""
    kept = {name: getattr(config, name) for name in FIXED}
    vars(config).update(FIXED)
    try:
        yield
    finally:
        vars(config).update(kept)
