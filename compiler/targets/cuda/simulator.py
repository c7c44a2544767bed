"""GPUs that Numba simulates in this process (NUMBA_ENABLE_CUDASIM=1): a Python thread for each of the GPU's.

Their memory is made of numba.cuda's device arrays. What nobody has written there is NaN as a number, and a kernel that
reads or writes beyond the allocation that an address lies in fails.

What a stream has to do is done as late as it can be, when somebody waits for it, and then nothing else is: what should
have been waited for and was not has not happened by then. Streams that are PROMPT do their work as soon as they can:
what should have waited has happened too early. So a missing order shows in the values, one way or the other.
"""
from __future__ import annotations

import bisect
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cuda.device import Launch, LibraryCall, Stream, T

TOTAL = 4 << 30  # bytes that a simulated GPU has
SWITCH = 5e-6  # seconds: the simulator polls its threads, and must not keep Python's lock while it does
PROMPT = {Stream.SEND}
MOST = 1024  # pieces of work that a stream has to do; then a caller does the first of them
# Reentrant: held by who adds to streams or does their work, of all devices, of which one may wait for another one.
# Numba's simulator runs one kernel at a time.
_running = threading.RLock()


class Event:
    """is_over, and the stream that it is in."""

    def __init__(self, gpu: SimulatedGpu, stream: Stream):
        self.gpu, self.stream, self.is_over = gpu, stream, False


class SimulatedGpu:
    """See `Device` of device.py. libraries: what stands in for NVIDIA's, by the names of their modules."""

    arch = "simulated"
    name = "Numba's simulator"
    libraries: ClassVar[dict[str, Any]] = {}

    def __init__(self, number: int, total: int = TOTAL):
        self.number, self.total, self.used = number, total, 0
        self._starts: list[int] = []  # addresses, in order
        self._arrays: list[Any] = []  # what lies there
        self._streams = {stream: deque[Callable[[], None] | Event | tuple[Event]]() for stream in Stream}  # (event,):
        # wait for it
        self.locked: dict[int, int] = {}  # bytes of the host's pages, by address

    def memory_info(self) -> tuple[int, int]:
        return self.total - self.used, self.total

    def allocate(self, nbytes: int) -> int:
        if self.used + nbytes > self.total:
            return 0
        from numba import cuda

        array = cuda.to_device(np.full(nbytes, 0xFF, np.uint8))
        address: int = array.__array_interface__["data"][0]
        place = bisect.bisect(self._starts, address)
        self._starts.insert(place, address)
        self._arrays.insert(place, array)
        self.used += nbytes
        return address

    def release(self, address: int) -> None:
        place = bisect.bisect_left(self._starts, address)
        self.used -= self._arrays[place].nbytes
        del self._starts[place], self._arrays[place]

    def view(self, address: int, dtype: str) -> np.ndarray:
        """What lies from an address on, up to the end of its allocation."""
        place = bisect.bisect(self._starts, address) - 1
        array = self._arrays[place] if place >= 0 else None
        if array is None or address > self._starts[place] + array.nbytes:
            raise MXNetError(f"gpu({self.number}): nothing is allocated at the address {address:#x}")
        rest = array[address - self._starts[place]:]._ary
        size = np.dtype(dtype).itemsize
        return rest[:len(rest) // size * size].view(dtype)

    # -- streams

    def _add(self, stream: Stream, work: Callable[[], None] | Event | tuple[Event]) -> None:
        with _running:
            self._streams[stream].append(work)
            if len(self._streams[stream]) > MOST:
                self._do_one(stream)
            for prompt in PROMPT:
                self._do_what_can_be_done(prompt)

    def _do_what_can_be_done(self, stream: Stream) -> None:
        work = self._streams[stream]
        while work and not (isinstance(work[0], tuple) and not work[0][0].is_over):
            self._do_one(stream)

    def _do_one(self, stream: Stream) -> None:
        """Do the first piece of work of a stream."""
        work = self._streams[stream].popleft()
        if isinstance(work, tuple):
            work[0].gpu.wait_for(work[0])
        elif isinstance(work, Event):
            work.is_over = True
        else:
            work()

    def record(self, stream: Stream) -> Event:
        event = Event(self, stream)
        self._add(stream, event)
        return event

    def follow(self, stream: Stream, event: Event) -> None:
        self._add(stream, (event,))

    def wait_for(self, event: Event) -> None:
        with _running:
            while not event.is_over:
                event.gpu._do_one(event.stream)

    def is_over(self, event: Event) -> bool:
        return event.is_over

    def wait(self) -> None:
        with _running:
            for stream, work in self._streams.items():
                while work:
                    self._do_one(stream)

    def stream(self, stream: Stream) -> int:
        """A stream's number, for libraries that are given one."""
        return 100 * (self.number + 1) + stream

    # -- work

    def staging(self, nbytes: int) -> np.ndarray | None:
        return np.full(nbytes, 0xFF, np.uint8)

    def release_staging(self, memory: np.ndarray) -> None:
        memory.fill(0xFF)  # nothing is copied from there any more

    def pin(self, address: int, nbytes: int) -> bool:
        self.locked[address] = nbytes
        return True

    def unpin(self, address: int) -> None:
        del self.locked[address]

    def write(self, stream: Stream, address: int, values: np.ndarray) -> None:
        self._add(stream, partial(self._write, address, values))

    def _write(self, address: int, values: np.ndarray) -> None:
        self.view(address, "uint8")[:values.nbytes] = values

    def read(self, stream: Stream, address: int, values: np.ndarray) -> None:
        self._add(stream, partial(self._read, address, values))

    def _read(self, address: int, values: np.ndarray) -> None:
        values[:] = self.view(address, "uint8")[:values.nbytes]

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._add(Stream.COMPUTE, partial(self._copy, target, source, nbytes))

    def _copy(self, target: int, source: int, nbytes: int) -> None:
        self.view(target, "uint8")[:nbytes] = self.view(source, "uint8")[:nbytes]

    def clear(self, address: int, nbytes: int) -> None:
        self._add(Stream.COMPUTE, partial(self._clear, address, nbytes))

    def _clear(self, address: int, nbytes: int) -> None:
        self.view(address, "uint8")[:nbytes] = 0

    def launch(self, launch: Launch) -> None:
        self._add(Stream.COMPUTE, partial(self._launch, launch))

    def _launch(self, launch: Launch) -> None:
        try:
            self.compute(launch)
        except MXNetError:  # of a library's call, which names it
            raise
        except Exception as error:
            raise MXNetError(f"gpu({self.number}): kernel {launch.name} failed: {type(error).__name__}: "
                             f"{error}") from error

    def compute(self, launch: Launch) -> None:
        """Run a kernel."""
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        if isinstance(launch.function, LibraryCall):
            return launch.function.begin(0, [address for address, _ in launch.pointers])
        arrays = [FakeCUDAArray(self.view(address, dtype)) for address, dtype in launch.pointers]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        try:
            launch.function[launch.blocks, launch.threads](*arrays)
        finally:
            sys.setswitchinterval(interval)

    def graph(self, launches: Sequence[Launch]) -> list[Launch]:
        return list(launches)

    def change(self, graph: list[Launch], number: int, launch: Launch) -> None:
        assert graph[number].function is launch.function, "a graph keeps its kernels"
        graph[number] = launch

    def begin(self, graph: list[Launch]) -> None:
        for launch in graph:
            self.launch(launch)

    def library(self, name: str) -> Any:
        if name not in self.libraries:
            raise ImportError(f"nothing stands in for {name}")
        return self.libraries[name]

    def call(self, what: Callable[[int], T]) -> T:
        return what(0)


class SharedArrays:
    """The arrays of a kernel's shared memory. Numba's own are made twice where two threads ask at once."""

    def __init__(self) -> None:
        self._made: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()

    def __call__(self, number: int, size: int, kind: Any, alignment: int = 1) -> np.ndarray:
        with self._lock:
            if number not in self._made:
                name = "bool" if str(kind) in ("bool", "boolean") else str(kind)
                self._made[number] = np.empty(size, name)
            return self._made[number]


def function(entry: Callable[..., None]) -> Any:
    """What `launch` takes, of a kernel's function. Its threads do not warn of numbers that overflow."""
    from numba import cuda

    space = entry.__globals__
    space["__warningregistry__"] = {}  # nothing is added to the globals while threads iterate over them
    space |= {"quiet": lambda: np.seterr(all="ignore"), "entry": entry}
    exec("def run(*buffers):\n    quiet()\n    entry(*buffers)\n", space)
    return cuda.jit(space["run"])
