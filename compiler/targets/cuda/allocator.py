"""The memory of a GPU: blocks that are kept for the next array of their size when nobody uses them any more, and the
copies to them and from them.

What is copied to memory that kernels still use is copied beside it, and put there by the device between two kernels: a
program that writes the same array in each step waits no more than one that makes new arrays.

A block is given back while kernels that use it may still run. The next holder's kernels come behind these by
themselves; a copy to the block, which is in a stream of its own, has to follow the mark that the block came with
(`last_use`). Only before memory is given back to the driver all work is waited for.
"""
from __future__ import annotations

import os
import sys
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.error import OutOfMemoryError, TargetError
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Stream
from mxc.compiler.targets.cuda.order import Order
from mxc.compiler.targets.cuda.staging import Staging

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.device import Device
    from mxc.compiler.targets.cuda.order import Mark

ALIGNMENT = 256  # bytes: of all addresses, as the driver's are
LARGE = 1 << 20  # bytes from which on sizes are rounded up to a sixteenth of their power of two only
TOLD = 3  # holders that an error names
IN_ORDER = 64 << 10  # bytes up to which a copy to the device is quicker in the order of computing than beside it
COPY_TO, COPY_FROM = "a copy to the device", "a copy to the host"  # what errors call them
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
    bytes that are kept. order, staging: of the device's streams, and of its copies."""

    alignment = ALIGNMENT

    def __init__(self, device: Device):
        self.device, self.order = device, Order(device)
        self.staging = Staging(self.order)
        self.used = self.peak = self.free = 0
        # By size, the first first: addresses, each with the work that used it last, and a copy to it that no kernel
        # came behind.
        self._free: dict[int, deque[tuple[int, Mark | None, Mark | None]]] = {}
        self._held: dict[int, tuple[int, str, Mark | None]] = {}  # size, holder and last use before, by address
        # What was given back since: the garbage collector does so in the middle of anything, whatever locks are held.
        self._returned: deque[tuple[int, Mark | None, Mark | None]] = deque()
        self._lock, self._process = Lock(), os.getpid()

    def allocate(self, nbytes: int, holder: str = "") -> int:
        """See Memory. holder: whose memory it is, for the error when there is none left.

        Where the device has no more, what is kept is given back to it first. Raises OutOfMemoryError, which names the
        largest holders.
        """
        self._enter()
        size = size_class(nbytes)
        with self._lock:
            address, before, sent = self._kept(size) or (self.device.allocate(size), None, None)
            if not address and self._free:
                self.device.wait()
                self._release_free()
                address = self.device.allocate(size)
            if not address:
                raise OutOfMemoryError(self._refusal(nbytes, holder))
            self._hold(address, size, holder, before)
        self.order.follow(Stream.COMPUTE, sent)  # without the lock: those of streams are never taken in it
        return address

    def _kept(self, size: int) -> tuple[int, Mark | None, Mark | None] | None:
        """The kept block of that size whose work began first, which is not kept any more."""
        self._take_back()
        kept = self._free.get(size)
        if not kept:
            return None
        self.free -= size
        return kept.popleft()

    def _hold(self, address: int, size: int, holder: str, before: Mark | None) -> None:
        self._held[address] = size, holder, before
        self.used += size
        self.peak = max(self.peak, self.used)

    def _refusal(self, nbytes: int, holder: str) -> str:
        totals: dict[str, list[int]] = {}
        for size, name, _ in self._held.values():
            totals.setdefault(name or "others", []).append(size)
        largest = sorted(totals.items(), key=lambda item: -sum(item[1]))[:TOLD]
        told = "; ".join(f"{sum(sizes):,} bytes {name}{f' (x{len(sizes)})' if len(sizes) > 1 else ''}"
                         for name, sizes in largest)
        _, total = self.device.memory_info()
        wanted = holder.removeprefix("in ")
        return (f"out of memory: gpu({self.device.number}) has no {nbytes:,} bytes left{wanted and f' for {wanted}'}; "
                f"{self.used:,} of its {total:,} bytes are in use{told and f', most by {told}'}. Use smaller batches, "
                "or let arrays go that are not needed")

    def last_use(self, address: int) -> Mark | None:
        """See GpuMemory."""
        return self._held[address][2]

    def release(self, address: int, sent: Mark | None = None) -> None:
        """See GpuMemory. In a forked child, and while the interpreter ends, nothing is done."""
        if sys is None or sys.is_finalizing() or os.getpid() != self._process:  # None: the interpreter has ended
            return
        self._returned.append((address, self.order.latest(Stream.COMPUTE), sent))

    def _take_back(self) -> None:
        while self._returned:
            returned = self._returned.popleft()
            size = self._held.pop(returned[0])[0]
            self.used -= size
            self._free.setdefault(size, deque()).append(returned)
            self.free += size

    def info(self) -> tuple[int, int]:
        """(free, total) bytes of the device; what is kept for later arrays counts as free."""
        with self._lock:
            self._take_back()
            free, total = self.device.memory_info()
            return free + self.free, total

    def release_free(self) -> None:
        """Give what is kept back to the device, and to the system."""
        self._enter()
        with self._lock:
            self._take_back()
            self.device.wait()
            self._release_free()
        self.staging.release()

    def _release_free(self) -> None:
        """Give what is kept back; the device has done all work that used it."""
        for size, kept in self._free.items():
            for address, _, _ in kept:
                self.device.release(address)
                self.free -= size
        self._free.clear()

    def _enter(self) -> None:
        """Raise TargetError in a process that was forked from the memory's."""
        if os.getpid() != self._process:
            raise TargetError(f"gpu({self.device.number}): {FORKED}")

    def write(self, address: int, values: np.ndarray) -> None:
        """See Memory. It is in the order of computing."""
        self._enter()
        if values.nbytes:
            small = values.nbytes <= IN_ORDER
            self._small(address, values) if small else self.staging.write(Stream.COMPUTE, address, values, COPY_TO)

    def _small(self, address: int, values: np.ndarray) -> Mark:
        return self.staging.write_small(address, values, COPY_TO)

    def read(self, address: int, values: np.ndarray) -> None:
        """See Memory. It is in the order of computing."""
        self._enter()
        if values.nbytes:
            self.staging.read(Stream.COMPUTE, address, values, COPY_FROM)

    def send(self, address: int, values: np.ndarray, after: Mark | None) -> Mark | None:
        """See GpuMemory."""
        self._enter()
        if not values.nbytes:
            return None
        if values.nbytes <= IN_ORDER:
            return self._small(address, values)
        beside = 0 if after is None or self.order.is_over(after) else self._beside(values.nbytes)
        try:
            if not beside:
                self.order.follow(Stream.SEND, after)
                return self.staging.write(Stream.SEND, address, values, COPY_TO)
            self.order.follow(Stream.COMPUTE, self.staging.write(Stream.SEND, beside, values, COPY_TO))
            self.copy(address, beside, values.nbytes)
            return self.computed()
        except BaseException:  # an interrupt: what has begun comes before whatever uses the memory next
            self.order.follow(Stream.COMPUTE, self.order.latest(Stream.SEND))
            raise
        finally:
            if beside:
                self.release(beside)

    def _beside(self, nbytes: int) -> int:
        """The address of memory that no stream uses, for a copy to memory that is used; 0 where there is none."""
        size = size_class(nbytes)
        with self._lock:
            kept = self._kept(size)
        address = 0
        if kept is not None and all(mark is None or self.order.is_over(mark) for mark in kept[1:]):
            address = kept[0]
        with self._lock:
            if kept is not None and not address:
                self._free.setdefault(size, deque()).appendleft(kept)
                self.free += size
            address = address or self.device.allocate(size)
            if address:
                self._hold(address, size, "in copies to the device", None)
        return address

    def fetch(self, address: int, values: np.ndarray, after: Mark | None) -> None:
        """See GpuMemory."""
        self._enter()
        if values.nbytes:
            self.order.follow(Stream.FETCH, after)
            self.staging.read(Stream.FETCH, address, values, COPY_FROM)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """See GpuMemory."""
        self._enter()
        with self.order.work(Stream.COMPUTE, ("a copy on the device",)):
            self.device.copy(target, source, nbytes)

    def clear(self, address: int, nbytes: int) -> None:
        """See GpuMemory."""
        self._enter()
        with self.order.work(Stream.COMPUTE, ("zeros",)):
            self.device.clear(address, nbytes)

    def computed(self) -> Mark | None:
        """See GpuMemory."""
        return self.order.latest(Stream.COMPUTE)

    def follow(self, mark: Mark | None) -> None:
        """See GpuMemory."""
        self._enter()
        self.order.follow(Stream.COMPUTE, mark)

    def wait(self, mark: Mark | None) -> None:
        """See GpuMemory."""
        self._enter()
        self.order.wait(mark)
