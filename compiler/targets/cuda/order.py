"""The order of work in the streams of a GPU: marks in a stream, and what has to come behind them in another one.

A stream does its own work in turn. What uses in one stream what another one has written, or writes what another one
uses, follows the mark of that work: the device then waits by itself, and the process goes on. Only who needs values on
the host waits here; errors of the device come out there.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import MXNetError
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Stream

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.device import Device

NAMED = 32  # pieces of work of a stream, the last ones, whose names an error may tell
TOLD = 8  # names that it tells


class Mark:
    """The end of a piece of work in a stream. names: what that work is. number: of the marks of its stream, in their
    order. is_over: whether it is known to be done; until then event tells."""

    __slots__ = ("event", "is_over", "names", "number", "stream")

    def __init__(self, stream: Stream, names: Sequence[str]):
        self.stream, self.names = stream, names
        self.event: Any = None
        self.number, self.is_over = 0, False


class Order:
    """The streams of a device. Any thread may begin work; what one thread begins inside of `work` is not mixed with the
    work of others in that stream."""

    def __init__(self, device: Device):
        self.device = device
        self._locks = {stream: Lock() for stream in Stream}
        self._latest: dict[Stream, Mark | None] = dict.fromkeys(Stream)
        self._begun = {stream: deque[Mark](maxlen=NAMED) for stream in Stream}  # and not known to be done
        self._followed: dict[tuple[Stream, Stream], int] = {}  # of a stream and another one: its last mark's number

    @contextmanager
    def work(self, stream: Stream, names: Sequence[str]) -> Iterator[Mark]:
        """Begin work in a stream inside of this; the mark is of use behind it. names: what it is, for errors."""
        mark = Mark(stream, names)
        with self._locks[stream]:
            try:
                yield mark
            finally:  # a part may have begun where it failed
                mark.event = self.device.record(stream)
                latest = self._latest[stream]
                mark.number = 1 + (latest.number if latest is not None else 0)
                self._latest[stream] = mark
                self._begun[stream].append(mark)

    def latest(self, stream: Stream) -> Mark | None:
        """The mark behind all work in a stream whose `work` is over."""
        return self._latest[stream]

    def follow(self, stream: Stream, mark: Mark | None) -> None:
        """What begins in the stream from now on comes behind that mark of this device."""
        if mark is None or mark.is_over or mark.stream == stream:
            return
        with self._locks[stream]:
            key = stream, mark.stream
            if mark.number > self._followed.get(key, 0):
                self.device.follow(stream, mark.event)
                self._followed[key] = mark.number

    def is_over(self, mark: Mark) -> bool:
        """Whether all until a mark is done. Raises as `wait`."""
        if not mark.is_over and self._told(lambda: self.device.is_over(mark.event)):
            self._note(mark)
        return mark.is_over

    def wait(self, mark: Mark | None) -> None:
        """Return when all until a mark is done. Raises MXNetError for what failed on the device, which names the work
        that was not known to be done."""
        if mark is not None and not mark.is_over:
            self._told(lambda: self.device.wait_for(mark.event))
            self._note(mark)

    def wait_for_all(self) -> None:
        """Return when all is done that has begun. Raises as `wait`."""
        last = [mark for mark in self._latest.values() if mark is not None]
        self._told(self.device.wait)
        for mark in last:
            self._note(mark)

    def _note(self, mark: Mark) -> None:
        """Note that all until a mark is done."""
        mark.is_over = True
        begun = self._begun[mark.stream]
        with self._locks[mark.stream]:
            while begun and begun[0].number <= mark.number:
                begun.popleft().is_over = True

    def _told(self, call: Any) -> Any:
        try:
            return call()
        except MXNetError as error:
            names = [name for begun in self._begun.values() for mark in list(begun) for name in mark.names]
            if not names:
                raise
            more = f", and {len(names) - TOLD} more" if len(names) > TOLD else ""
            raise MXNetError(f"{error}; what had begun and was not known to be done: {', '.join(names[:TOLD])}{more}. "
                             "MXC_DEBUG=2 runs kernels one by one") from None
