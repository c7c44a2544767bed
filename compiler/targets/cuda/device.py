"""What a GPU is asked to do: of the machine (driver.py), or simulated (simulator.py)."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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


class Launch(NamedTuple):
    """A kernel's launch. function: what a device's `launch` takes, or a LibraryCall. pointers: addresses, and what is
    there: dtypes."""

    function: Any
    blocks: int
    threads: int
    pointers: Sequence[tuple[int, str]]


class LaunchFailed(Exception):
    """The launch of this number in a graph failed, for the reason that is its cause."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


class Device(Protocol):
    """A GPU. arch: its architecture, such as sm_90. Whatever it is asked to do it does in this order; what is read was
    done by then. Its methods raise MXNetError where the device or its driver fails."""

    number: int
    arch: str
    name: str

    def memory_info(self) -> tuple[int, int]:
        """(free, total) bytes."""
        ...

    def allocate(self, nbytes: int) -> int:
        """An address; 0 where there is not so much memory left."""
        ...

    def release(self, address: int) -> None: ...

    def write(self, address: int, values: np.ndarray) -> None:
        """Copy from the host, whose array may change afterwards."""
        ...

    def read(self, address: int, values: np.ndarray) -> None:
        """Copy to the host, into an array that is in one piece."""
        ...

    def copy(self, target: int, source: int, nbytes: int) -> None: ...

    def clear(self, address: int, nbytes: int) -> None: ...

    def launch(self, launch: Launch) -> None:
        """Begin to run a kernel."""
        ...

    def graph(self, launches: Sequence[Launch]) -> Any:
        """Launches, one behind the other, that the device takes as one piece of work."""
        ...

    def change(self, graph: Any, number: int, launch: Launch) -> None:
        """Put a launch of the same kernel in the place of that of this number, while the graph does not run."""
        ...

    def begin(self, graph: Any) -> None:
        """Begin to run a graph. Raises LaunchFailed where it is known at once which launch fails."""
        ...

    def library(self, name: str) -> Any:
        """The module of that name, for a library of NVIDIA's that works with the device. Raises ImportError."""
        ...

    def call(self, what: Callable[[int], T]) -> T:
        """What a function of NVIDIA's libraries gives; it gets the stream, and its calls are about this device."""
        ...

    def wait(self) -> None:
        """Return when all is done that was begun. Raises MXNetError for what failed meanwhile."""
        ...
