"""Copies between a GPU and the host's memory, by way of page-locked blocks: only from these a device copies by itself.

An array is copied in pieces. While the device copies one, the next one is put into another block, or a former one taken
out of its block. Arrays that are page-locked themselves (pinned.py) need no blocks. Where the system locks no pages
the driver copies from the memory as it is, and the caller waits.
"""
from __future__ import annotations

import contextlib
import warnings
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda import pinned
from mxc.compiler.targets.cuda.device import Stream

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.order import Mark, Order

# Not measured. A piece takes 0.2 ms to copy at 20 GB/s, by far more than to begin that; two blocks are on their way
# for each direction then, and other copies have to wait for them.
PIECE = 4 << 20  # bytes of a block
BLOCKS = 4  # blocks of a device
ALIGNMENT = 256  # bytes: of what small copies have in a block


class Staging:
    """The blocks of one device. They are made as they are needed."""

    def __init__(self, order: Order):
        self._order, self._device = order, order.device
        self._lock = Lock()
        self._free: list[np.ndarray] = []
        self._busy: deque[tuple[Mark, np.ndarray]] = deque()  # blocks with the last copy that uses each
        self._small: tuple[Mark, np.ndarray] | None = None  # a block that small copies fill, up to `_filled`
        self._filled = 0
        self._made = 0
        self._is_refused = self._is_closed = False

    def write(self, stream: Stream, address: int, values: np.ndarray, name: str) -> Mark:
        """Begin to copy an array, which is in one piece, to the device. It may be changed afterwards. Returns the mark
        of the copy. Raises MXNetError where the device has failed."""
        flat = _bytes(values)
        with pinned.used(flat) as is_pinned:
            if is_pinned:
                return self._as_it_is(stream, address, flat, name)
        for start in range(0, flat.size, PIECE):
            part = flat[start:start + PIECE]
            block = self._take()
            if block is None:
                mark = self._as_it_is(stream, address + start, part, name)
                continue
            block[:part.size] = part
            with self._order.work(stream, (name,)) as mark:
                self._device.write(stream, address + start, block[:part.size])
            self._busy.append((mark, block))
        return mark

    def write_small(self, address: int, values: np.ndarray, name: str) -> Mark:
        """As `write`, in the order of computing, of a few bytes."""
        flat = _bytes(values)
        with self._lock:
            if self._small is not None and self._filled + flat.size > PIECE:
                self._busy.append(self._small)
                self._small = None
            block = self._small[1] if self._small is not None else self._take()
            if block is None:
                return self._as_it_is(Stream.COMPUTE, address, flat, name)
            start = self._filled if self._small is not None else 0
            block[start:start + flat.size] = flat
            with self._order.work(Stream.COMPUTE, (name,)) as mark:
                self._small, self._filled = (mark, block), start + -(-flat.size // ALIGNMENT) * ALIGNMENT
                self._device.write(Stream.COMPUTE, address, block[start:start + flat.size])
            return mark

    def read(self, stream: Stream, address: int, values: np.ndarray, name: str) -> None:
        """Copy from the device into an array that is in one piece. Raises MXNetError where the device has failed."""
        flat = _bytes(values)
        with pinned.used(flat) as is_pinned:
            if is_pinned:
                self._as_it_is(stream, address, flat, name, reads=True)
                return
        pending: deque[tuple[Mark, np.ndarray, np.ndarray]] = deque()
        try:
            for start in range(0, flat.size, PIECE):
                part = flat[start:start + PIECE]
                block = self._take()
                if block is None:
                    self._as_it_is(stream, address + start, part, name, reads=True)
                    continue
                with self._order.work(stream, (name,)) as mark:
                    self._device.read(stream, address + start, block[:part.size])
                pending.append((mark, block, part))
                if len(pending) == BLOCKS // 2:
                    self._finish(pending)
            while pending:
                self._finish(pending)
        finally:
            self._busy.extend((mark, block) for mark, block, _ in pending)

    def _finish(self, pending: deque[tuple[Mark, np.ndarray, np.ndarray]]) -> None:
        """Take the first piece out of its block, which is free then."""
        mark, block, part = pending[0]
        self._order.wait(mark)
        part[:] = block[:part.size]
        del pending[0]
        self._free.append(block)

    def _as_it_is(self, stream: Stream, address: int, flat: np.ndarray, name: str, reads: bool = False) -> Mark:
        """Copy without a block, and wait."""
        with self._order.work(stream, (name,)) as mark:
            (self._device.read if reads else self._device.write)(stream, address, flat)
        self._order.wait(mark)
        return mark

    def _take(self) -> np.ndarray | None:
        """A block that nobody uses, or the first that nobody will use any more, which this waits for. None where there
        are none."""
        with self._lock:
            for _ in range(len(self._busy)):
                mark, block = self._busy.popleft()
                if self._order.is_over(mark):
                    self._free.append(block)
                else:
                    self._busy.append((mark, block))
            if self._free:
                return self._free.pop()
            if self._is_closed:
                return None
            if self._made < BLOCKS and not self._is_refused:
                made = self._device.staging(PIECE)
                if made is not None:
                    self._made += 1
                    return made
                self._refused()
            if not self._busy:
                return None
            mark, block = self._busy.popleft()
        try:
            self._order.wait(mark)
        except BaseException:  # an interrupt, or what failed on the device
            self._busy.append((mark, block))
            raise
        return block

    def _refused(self) -> None:
        self._is_refused = True
        if not self._made:
            warnings.warn(f"gpu({self._device.number}): the system locks no pages of memory for copies ({PIECE:,} "
                          "bytes), so they take longer, and computing waits for them; `ulimit -l` tells its limit",
                          RuntimeWarning, stacklevel=2)

    def release(self, closes: bool = False) -> None:
        """Give the blocks back that no thread is about to use, when their copies are done; others are made when they
        are needed. closes: no more are made."""
        with self._lock:
            self._is_closed, self._is_refused = closes, False
            if self._small is not None:
                self._busy.append(self._small)
                self._small = None
            while self._busy:
                mark, block = self._busy.popleft()
                with contextlib.suppress(MXNetError):  # a device that failed copies no more
                    self._order.wait(mark)
                self._free.append(block)
            while self._free:
                self._device.release_staging(self._free.pop())
                self._made -= 1


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
