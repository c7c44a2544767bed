"""The memory of a GPU: blocks that are kept for the next array of their size when nobody uses them any more."""
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.error import OutOfMemoryError, TargetError
from mxc.compiler.system.forks import Lock

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.device import Device

ALIGNMENT = 256  # bytes: of all addresses, as the driver's are
LARGE = 1 << 20  # bytes from which on sizes are rounded up to a sixteenth of their power of two only
TOLD = 3  # holders that an error names
FORKED = ("this process was forked from one that uses GPUs, so it cannot use them; start it anew (multiprocessing's "
          "method `spawn`), or use mx.cpu()")


def size_class(nbytes: int) -> int:
    """The size really taken for `nbytes`: powers of two up to LARGE, then eight to sixteen steps to each doubling."""
    if nbytes <= LARGE:
        return max(ALIGNMENT, 1 << max(0, nbytes - 1).bit_length())
    step = 1 << (nbytes - 1).bit_length() >> 4
    return -(-nbytes // step) * step


class Allocator:
    """See `GpuMemory` of protocol.py. used, peak, free: bytes in blocks that are in use, the most that ever were, and
    bytes that are kept.

    All work of the device is in one order, so a block that is given back may be given out again at once.
    """

    alignment = ALIGNMENT

    def __init__(self, device: Device):
        self.device = device
        self.used = self.peak = self.free = 0
        self._free: dict[int, list[int]] = {}  # addresses by size
        self._held: dict[int, tuple[int, str]] = {}  # size and holder, by address
        self._lock, self._process = Lock(), os.getpid()

    def allocate(self, nbytes: int, holder: str = "") -> int:
        """See Memory. holder: whose memory it is, for the error when there is none left.

        Where the device has no more, what is kept is given back to it first. Raises OutOfMemoryError, which names the
        largest holders.
        """
        self._enter()
        size = size_class(nbytes)
        with self._lock:
            kept = self._free.get(size)
            if kept:
                address = kept.pop()
                self.free -= size
            else:
                address = self.device.allocate(size)
                if not address:
                    self._release_free()
                    address = self.device.allocate(size)
                if not address:
                    raise OutOfMemoryError(self._refusal(nbytes, holder))
            self._held[address] = size, holder
            self.used += size
            self.peak = max(self.peak, self.used)
            return address

    def _refusal(self, nbytes: int, holder: str) -> str:
        totals: dict[str, list[int]] = {}
        for size, name in self._held.values():
            totals.setdefault(name or "others", []).append(size)
        largest = sorted(totals.items(), key=lambda item: -sum(item[1]))[:TOLD]
        told = "; ".join(f"{sum(sizes):,} bytes {name}{f' (x{len(sizes)})' if len(sizes) > 1 else ''}"
                         for name, sizes in largest)
        _, total = self.device.memory_info()
        return (f"out of memory: gpu({self.device.number}) has no {nbytes:,} bytes left{holder and f' for {holder}'}; "
                f"{self.used:,} of its {total:,} bytes are in use{told and f', most by {told}'}. Use smaller batches, "
                "or let arrays go that are not needed")

    def release(self, address: int) -> None:
        """See Memory. In a forked child, and while the interpreter ends, nothing is done."""
        if sys is None or sys.is_finalizing() or os.getpid() != self._process:  # None: the interpreter has ended
            return
        with self._lock:
            size, _ = self._held.pop(address)
            self.used -= size
            self._free.setdefault(size, []).append(address)
            self.free += size

    def info(self) -> tuple[int, int]:
        """(free, total) bytes of the device; what is kept for later arrays counts as free."""
        free, total = self.device.memory_info()
        return free + self.free, total

    def release_free(self) -> None:
        """Give what is kept back to the device."""
        with self._lock:
            self._release_free()

    def _release_free(self) -> None:
        for size, addresses in self._free.items():
            for address in addresses:
                self.device.release(address)
                self.free -= size
        self._free.clear()

    def _enter(self) -> None:
        """Raise TargetError in a process that was forked from the memory's."""
        if os.getpid() != self._process:
            raise TargetError(f"gpu({self.device.number}): {FORKED}")

    def write(self, address: int, values: np.ndarray) -> None:
        self._enter()
        if values.nbytes:
            self.device.write(address, values)

    def read(self, address: int, values: np.ndarray) -> None:
        self._enter()
        if values.nbytes:
            self.device.read(address, values)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy from one place of the device to another one."""
        self.device.copy(target, source, nbytes)

    def clear(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""
        self.device.clear(address, nbytes)
