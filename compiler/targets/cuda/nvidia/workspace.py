"""The memory that calls of NVIDIA's libraries work in: one piece for all calls of a device, which run in one order."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.allocator import Allocator

ALIGNMENT = 16  # bytes: of every address that a library gets; other call sites run mxc's kernels


class Workspace:
    """Where a larger piece is asked for, those before stay: calls and graphs of calls know their addresses. So all
    pieces together have less than twice the bytes of the largest."""

    def __init__(self, memory: Allocator):
        self.memory = memory
        self._address = self._size = 0

    def of(self, nbytes: int) -> int:
        """The address of so many bytes. Raises OutOfMemoryError."""
        if nbytes > self._size:
            size = 1 << (nbytes - 1).bit_length()
            self._address, self._size = self.memory.allocate(size, "workspace of NVIDIA's libraries"), size
        return self._address if nbytes else 0
