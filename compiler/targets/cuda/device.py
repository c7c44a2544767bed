"""What a GPU is asked to do: of the machine (driver.py), or simulated (simulator.py)."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

T = TypeVar("T")


class LibraryLacks(Exception):
    """A library has no call for what is asked of it."""


class LibraryCall(ABC):
    """What a library of NVIDIA's does in the place of a kernel: `Launch.function` of its launch."""

    @abstractmethod
    def begin(self, stream: int, addresses: Sequence[int]) -> None:
        """Begin it on a stream of the device, of which calls of this thread are. Raises MXNetError."""

    @abstractmethod
    def offsets(self) -> list[tuple[int, int]]:
        """Where its arrays begin: the positions of buffers, and bytes from there on."""

    def takes(self, addresses: Sequence[int], alignment: int) -> bool:
        """Whether its arrays begin at multiples of `alignment`."""
        return not any((addresses[position] + offset) % alignment for position, offset in self.offsets())


class Stream(IntEnum):
    """The orders in which a device does what it was asked: what is in one is done in turn, several at the same time.
    COMPUTE: kernels, and what has to be in their order. SEND, FETCH: copies to the device and back."""

    COMPUTE = 0
    SEND = 1
    FETCH = 2


class Launch(NamedTuple):
    """A kernel's launch. function: what a device's `launch` takes, or a LibraryCall. pointers: addresses, and what is
    there: dtypes. name: the kernel's, for errors."""

    function: Any
    blocks: int
    threads: int
    pointers: Sequence[tuple[int, str]]
    name: str = ""


class Device(Protocol):
    """A GPU. arch: its architecture, such as sm_90. What it is asked to begin is done in the order of its stream, which
    is COMPUTE where no other is named; order.py keeps streams behind each other. Its methods raise MXNetError where the
    device or its driver fails; what fails later is raised by one of those that wait."""

    number: int
    arch: str
    name: str

    def memory_info(self) -> tuple[int, int]:
        """(free, total) bytes."""
        ...

    def allocate(self, nbytes: int) -> int:
        """An address; 0 where there is not so much memory left."""
        ...

    def release(self, address: int) -> None:
        """Give memory back that no stream uses any more."""
        ...

    def staging(self, nbytes: int) -> np.ndarray | None:
        """Page-locked memory of the host, as bytes; None where the system gives none."""
        ...

    def release_staging(self, memory: np.ndarray) -> None:
        """Give that memory back, which no stream uses any more."""
        ...

    def pin(self, address: int, nbytes: int) -> bool:
        """Lock pages of the host's memory, for all GPUs. False where the system does not."""
        ...

    def unpin(self, address: int) -> None:
        """Undo `pin`, where no stream uses the memory any more."""
        ...

    def write(self, stream: Stream, address: int, values: np.ndarray) -> None:
        """Begin to copy from the host, out of an array that is in one piece and stays as it is until that is done."""
        ...

    def read(self, stream: Stream, address: int, values: np.ndarray) -> None:
        """Begin to copy to the host, into an array that is in one piece and stays until that is done."""
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Begin to copy within the device."""
        ...

    def clear(self, address: int, nbytes: int) -> None:
        """Begin to fill with zeros."""
        ...

    def launch(self, launch: Launch) -> None:
        """Begin to run a kernel."""
        ...

    def graph(self, launches: Sequence[Launch]) -> Any:
        """Launches, one behind the other, that the device takes as one piece of work."""
        ...

    def change(self, graph: Any, number: int, launch: Launch) -> None:
        """Put a launch of the same kernel in the place of that of this number, for runs that begin from now on."""
        ...

    def begin(self, graph: Any) -> None:
        """Begin to run a graph."""
        ...

    def stream(self, stream: Stream) -> int:
        """The driver's stream, for libraries that are given one."""
        ...

    def record(self, stream: Stream) -> Any:
        """An event: it is over when all is done that was begun in the stream until now."""
        ...

    def follow(self, stream: Stream, event: Any) -> None:
        """What is begun in the stream from now on is done when the event, which may be another device's, is over."""
        ...

    def wait_for(self, event: Any) -> None:
        """Return when an event is over. Raises MXNetError for what failed meanwhile."""
        ...

    def is_over(self, event: Any) -> bool:
        """Whether an event is over. Raises MXNetError for what failed meanwhile."""
        ...

    def library(self, name: str) -> Any:
        """The module of that name, for a library of NVIDIA's that works with the device. Raises ImportError."""
        ...

    def call(self, what: Callable[[int], T]) -> T:
        """What a function of NVIDIA's libraries gives; it gets the stream, and its calls are about this device."""
        ...

    def wait(self) -> None:
        """Return when all is done that was begun in any stream. Raises MXNetError for what failed meanwhile."""
        ...
