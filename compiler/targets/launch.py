"""What targets share about the code of kernels: how it is launched and called, and what it was printed by."""
from __future__ import annotations

import functools
from dataclasses import dataclass

from mxc.compiler.system import sources


@dataclass(frozen=True)
class Launch:
    """key: of the kernel's code. units: independent pieces of work. scratch_bytes: of each thread. values: run-time
    integers after the buffers. calls: which of them are addresses of other kernels' code, and of which (by key)."""

    key: str
    units: int
    scratch_bytes: int
    values: tuple[int, ...]
    calls: tuple[tuple[int, str], ...] = ()


@functools.cache
def sources_digest() -> str:
    """A digest of the code that makes kernels: entries that another version made are not used."""
    return sources.digest("functions", "kernel", "targets") + sources.digest("operators", suffixes=("kernel.py",))


def symbol(key: str) -> str:
    """The name of the function of `key` in its code."""
    return "mxc_" + key.replace("-", "_")
