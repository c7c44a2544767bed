"""Memory of the host's devices: blocks aligned to 64 bytes, which return to a pool when nobody can reach them any more.
Those of the device cpu_pinned are page-locked once this process uses a GPU, so that the GPU copies from them directly.

A block offers the NumPy array interface, so that every NumPy view on it, however it was made, keeps it alive: memory
goes back to the pool only after the last view is gone.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler import targets
from mxc.compiler.error import OutOfMemoryError
from mxc.compiler.system.forks import Lock

if TYPE_CHECKING:
    from mxc.runtime.context import Context

ALIGNMENT = 64
LOCKED = 64 << 10  # bytes from which on a block of cpu_pinned is page-locked; a GPU's smaller copies go another way
HUGE = 2 << 20  # bytes of the large pages that x86-64 and most of arm64 have
POOL_LIMIT = 64 << 20  # bytes that the pool keeps in all where no more are in use; what exceeds it goes to the system


class Statistics:
    """Bytes in blocks that are in use, the most that ever were, and bytes kept free in the pool."""

    def __init__(self) -> None:
        self.used = self.peak = self.free = 0


statistics = Statistics()
_free: dict[tuple[Context, int], list[np.ndarray]] = {}
# Reentrant: in the middle of an allocation the garbage collector may collect a block, whose memory comes back here.
_lock = Lock()


def size_class(nbytes: int) -> int:
    """The size really taken for `nbytes`: multiples of 64 up to 512, then eight steps to each doubling."""
    step = max(ALIGNMENT, 1 << max(0, nbytes - 1).bit_length() >> 4)
    return max(ALIGNMENT, -(-nbytes // step) * step)


class MemoryBlock:
    """`nbytes` of host memory for `context`, its first byte at a multiple of 64. zeroed: all 0, else anything."""

    __slots__ = ("__weakref__", "_raw", "address", "context", "nbytes")

    def __init__(self, nbytes: int, context: Context, zeroed: bool = False):
        context.require()
        self.nbytes, self.context = size_class(nbytes), context
        with _lock:
            kept = _free.get((context, self.nbytes))
            raw = kept.pop() if kept else None
            if raw is not None:
                statistics.free -= self.nbytes
            statistics.used += self.nbytes
            statistics.peak = max(statistics.peak, statistics.used)
        if raw is not None and zeroed:
            raw.fill(0)
        is_locked = context.device_type == "cpu_pinned" and self.nbytes >= LOCKED
        alignment, is_new = mmap.PAGESIZE if is_locked else ALIGNMENT, raw is None
        if raw is None:
            try:
                raw = _bytes(self.nbytes + alignment, zeroed)
            except (MemoryError, ValueError):  # ValueError: more than an address can be
                with _lock:
                    statistics.used -= self.nbytes
                raise OutOfMemoryError(f"out of memory: {context} has no {nbytes} bytes left "
                                       f"({statistics.used} bytes are in use)") from None
        self._raw = raw
        start: int = raw.__array_interface__["data"][0]
        self.address = -(-start // alignment) * alignment
        if is_locked and is_new:
            targets.gpus().pin(raw, self.address, self.nbytes)

    @property
    def __array_interface__(self) -> dict[str, object]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}

    def __del__(self) -> None:
        raw = getattr(self, "_raw", None)
        if raw is None or _lock is None:  # the allocation failed, or the interpreter ends
            return
        with _lock:
            statistics.used -= self.nbytes
            if statistics.free + self.nbytes <= max(POOL_LIMIT, statistics.used):
                _free.setdefault((self.context, self.nbytes), []).append(raw)
                statistics.free += self.nbytes


def _bytes(nbytes: int, zeroed: bool) -> np.ndarray:
    """Memory of the system. Where it has no more, what is kept for later is given back to it first."""
    is_mapped = nbytes >= HUGE and hasattr(mmap, "MADV_HUGEPAGE")
    make = _mapped if is_mapped else functools.partial(np.zeros if zeroed else np.empty, dtype=np.uint8)
    try:
        return make(nbytes)
    except MemoryError:
        release_free()
        targets.gpus().release_staging()
        return make(nbytes)


def _mapped(nbytes: int) -> np.ndarray:
    """Zeroed memory that nobody had before, in large pages where the system has them (Linux's transparent huge pages),
    but for what does not fill one. Pages of the C library's heap would stay small, and each costs a look-up, in a
    virtual machine two: ResNet-50 of 8 bits took 7.7 ms with its weights there and 6.3 ms so, on an Intel Xeon, and
    after half a second of rest 166 and 39 ms."""
    try:
        area = mmap.mmap(-1, nbytes + HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OverflowError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise MemoryError(str(error)) from None
    memory = np.frombuffer(area, np.uint8)
    begin = -memory.ctypes.data % HUGE
    with contextlib.suppress(OSError):  # a system whose pages are all small
        area.madvise(mmap.MADV_HUGEPAGE, begin, nbytes // HUGE * HUGE)
    return memory[begin:begin + nbytes]


def release_free(context: Context | None = None) -> None:
    """Give what the pool keeps free (for `context`, or for all devices) back to the system, and what the C library
    keeps."""
    with _lock:
        for key in [k for k in _free if context is None or k[0] == context]:
            statistics.free -= key[1] * len(_free.pop(key))
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None  # glibc has it
    if trim is not None:
        trim(0)
