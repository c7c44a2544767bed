"""Arrays whose pages are locked in the host's memory (the device cpu_pinned), so that a GPU copies from them directly.

A forked process shares pages with its parent until one of them writes there; which of them keeps the page that a device
copies from is not told. So no page is locked while the process forks: these arrays are ordinary ones from then on.
"""
from __future__ import annotations

import bisect
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.system.forks import Lock

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.device import Device

_lock = Lock()
_starts: list[int] = []  # addresses, in order
_ranges: dict[int, tuple[int, Device]] = {}  # bytes, and the device whose driver locked them
_using = 0  # copies that are under way
_is_open = True


def pin(owner: Any, address: int, nbytes: int, device: Device) -> bool:
    """Lock pages, as long as their owner lives. False where the system does not."""
    with _lock:
        if not _is_open or not device.pin(address, nbytes):
            return False
        bisect.insort(_starts, address)
        _ranges[address] = nbytes, device
    weakref.finalize(owner, _unpin, address)
    return True


def _unpin(address: int) -> None:
    with _lock:
        found = _ranges.pop(address, None)
        if found is not None:
            _starts.remove(address)
            found[1].unpin(address)


@contextmanager
def used(flat: np.ndarray) -> Iterator[bool]:
    """Whether bytes are page-locked, as they are inside of this then."""
    global _using
    if not _starts:
        yield False
        return
    address: int = flat.__array_interface__["data"][0]
    with _lock:
        starts = tuple(_starts)  # the garbage collector may take one away at any time
        place = bisect.bisect(starts, address) - 1
        end = starts[place] + _ranges.get(starts[place], (0,))[0] if place >= 0 else 0
        there = _is_open and address + flat.size <= end
        _using += there
    try:
        yield there
    finally:
        with _lock:
            _using -= there


def release_all() -> None:
    """Unlock all pages, when the copies that are under way are done: before the process forks."""
    global _is_open
    with _lock:
        _is_open = False
    while _using:  # their threads go on meanwhile
        time.sleep(0.0001)
    with _lock:
        for address in list(_starts):
            _unpin(address)
        _is_open = True
