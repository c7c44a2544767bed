"""GPUs that Numba simulates in this process (NUMBA_ENABLE_CUDASIM=1): a Python thread for each of the GPU's.

Their memory is made of numba.cuda's device arrays. What nobody has written there is NaN as a number, and a kernel that
reads or writes beyond the allocation that an address lies in fails.
"""
from __future__ import annotations

import bisect
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cuda.device import Launch, LaunchFailed, LibraryCall, T

TOTAL = 4 << 30  # bytes that a simulated GPU has
SWITCH = 5e-6  # seconds: the simulator polls its threads, and must not keep Python's lock while it does
_running = threading.Lock()  # the simulator runs one kernel at a time


class SimulatedGpu:
    """See `Device` of device.py. libraries: what stands in for NVIDIA's, by the names of their modules."""

    arch = "simulated"
    name = "Numba's simulator"
    libraries: ClassVar[dict[str, Any]] = {}

    def __init__(self, number: int, total: int = TOTAL):
        self.number, self.total, self.used = number, total, 0
        self._starts: list[int] = []  # addresses, in order
        self._arrays: list[Any] = []  # what lies there

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

    def write(self, address: int, values: np.ndarray) -> None:
        self.view(address, "uint8")[:values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)

    def read(self, address: int, values: np.ndarray) -> None:
        values.reshape(-1).view(np.uint8)[:] = self.view(address, "uint8")[:values.nbytes]

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self.view(target, "uint8")[:nbytes] = self.view(source, "uint8")[:nbytes]

    def clear(self, address: int, nbytes: int) -> None:
        self.view(address, "uint8")[:nbytes] = 0

    def launch(self, launch: Launch) -> None:
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        function, blocks, threads, pointers = launch
        if isinstance(function, LibraryCall):
            return function.begin(0, [address for address, _ in pointers])
        arrays = [FakeCUDAArray(self.view(address, dtype)) for address, dtype in pointers]
        with _running:
            interval = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH)
            try:
                function[blocks, threads](*arrays)
            finally:
                sys.setswitchinterval(interval)

    def graph(self, launches: Sequence[Launch]) -> list[Launch]:
        return list(launches)

    def change(self, graph: list[Launch], number: int, launch: Launch) -> None:
        assert graph[number].function is launch.function, "a graph keeps its kernels"
        graph[number] = launch

    def begin(self, graph: list[Launch]) -> None:
        for number, launch in enumerate(graph):
            try:
                self.launch(launch)
            except Exception as error:
                raise LaunchFailed(number) from error

    def library(self, name: str) -> Any:
        if name not in self.libraries:
            raise ImportError(f"nothing stands in for {name}")
        return self.libraries[name]

    def call(self, what: Callable[[int], T]) -> T:
        return what(0)

    def wait(self) -> None:
        """Launches return when all is done."""


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
