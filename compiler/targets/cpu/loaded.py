"""Kernels that were loaded into this process."""
from __future__ import annotations

from typing import NamedTuple

from mxc.compiler.error import MXNetError


class Library(NamedTuple):
    """Loaded kernels. hits: came from this process, the cache or an artifact; misses: were compiled, in
    compile_seconds."""

    addresses: dict[str, int]
    hits: int = 0
    misses: int = 0
    compile_seconds: float = 0.0
    load_seconds: float = 0.0

    def address(self, key: str) -> int:
        """Where the function of `key` starts. Raises MXNetError when it is not in this library."""
        if key not in self.addresses:
            raise MXNetError(f"no kernel {key} was loaded")
        return self.addresses[key]
