"""A GPU of this machine, through NVIDIA's driver (the extra `cuda`: cuda-bindings).

The streams are ones that wait for the legacy default stream, and it for them: so what other libraries begin there, as
torch does, stays in order with the work on memory that they share. Nothing here uses that stream. A thread's current
context is whatever its last call, here or in another library, has made it, so every call makes it the device's first.
Nothing of this file has run on a GPU yet (docs/cuda.md).
"""
from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError, TargetError
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda.device import Launch, LibraryCall, Stream, T

DROPPED = 16  # graphs that are kept at most until they are known not to run any more


def bindings() -> Any:
    """cuda.bindings.driver. Raises ImportError without the extra."""
    from cuda.bindings import driver

    return driver


def _packed(launch: Launch) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The arguments of a launch, which are addresses, and their types."""
    values = tuple(address for address, _ in launch.pointers)
    return values, (ctypes.c_void_p,) * len(values)


class Graph:
    """A graph of launches, each behind the one before. handle: its description; nodes: the launches in that;
    executable: what is launched."""

    def __init__(self, gpu: Gpu, handle: Any):
        self.gpu, self.handle, self.nodes, self.executable = gpu, handle, list[Any](), None
        self._process = os.getpid()

    def __del__(self) -> None:
        # At the end the driver may be gone, and what it holds goes with the process; a forked process has no driver.
        if sys is not None and not sys.is_finalizing() and os.getpid() == self._process:
            self.gpu.drop(self.handle, self.executable)


class Event:
    """An event of the driver's, which is used again when nobody has it any more: what follows it by then follows what
    it stood for."""

    __slots__ = ("_pool", "handle")

    def __init__(self, handle: Any, pool: list[Any]):
        self.handle, self._pool = handle, pool

    def __del__(self) -> None:
        self._pool.append(self.handle)


class Gpu:
    """See `Device` of device.py. Raises TargetError where the driver does not give the device."""

    def __init__(self, number: int):
        self.number, self._driver = number, bindings()
        try:
            self._device = self._done("be found", self._driver.cuDeviceGet(number))
            self._context = self._done("be used", self._driver.cuDevicePrimaryCtxRetain(self._device))
            self._enter()
            kinds = self._driver.CUdevice_attribute
            version = (kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                       kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
            major, minor = (self._done("tell what it is", self._driver.cuDeviceGetAttribute(kind, self._device))
                            for kind in version)
            text = self._done("tell its name", self._driver.cuDeviceGetName(100, self._device))
            kind = self._driver.CUstream_flags.CU_STREAM_DEFAULT  # keeps to the order of the legacy default stream
            self._streams = [self._done("make a stream", self._driver.cuStreamCreate(kind)) for _ in Stream]
        except MXNetError as error:
            raise TargetError(str(error)) from None
        self.arch, self.name = f"sm_{major}{minor}", bytes(text).split(b"\0")[0].decode()
        self._events: list[Any] = []  # that nobody uses
        self._dropped: deque[tuple[Any, Any]] = deque()  # graphs that may still run
        self._recorder: Any = None  # the stream of `_captured`
        self._destroying, self._recording = Lock(), Lock()

    def _done(self, what: str, made: tuple[Any, ...]) -> Any:
        """What a call gave. Raises MXNetError: the device cannot do `what`."""
        code, *values = made
        if int(code) != 0:
            _, text = self._driver.cuGetErrorString(code)
            raise MXNetError(f"gpu({self.number}) cannot {what}: {(text or b'unknown error').decode()} ({int(code)})")
        return values[0] if values else None

    def _enter(self) -> None:
        """Calls of this thread are about this device."""
        self._done("be entered", self._driver.cuCtxSetCurrent(self._context))

    def memory_info(self) -> tuple[int, int]:
        self._enter()
        code, free, total = self._driver.cuMemGetInfo()
        self._done("tell its memory", (code,))
        return free, total

    def allocate(self, nbytes: int) -> int:
        self._enter()
        code, address = self._driver.cuMemAlloc(nbytes)
        if code == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return 0
        return int(self._done("allocate memory", (code, address)))

    def release(self, address: int) -> None:
        self._enter()
        self._done("release memory", self._driver.cuMemFree(address))

    def staging(self, nbytes: int) -> np.ndarray | None:
        self._enter()
        code, address = self._driver.cuMemHostAlloc(nbytes, self._driver.CU_MEMHOSTALLOC_PORTABLE)
        if int(code) != 0:
            return None
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(int(address)))

    def release_staging(self, memory: np.ndarray) -> None:
        self._enter()
        self._done("release memory of the host", self._driver.cuMemFreeHost(memory.ctypes.data))

    def pin(self, address: int, nbytes: int) -> bool:
        self._enter()
        flags = self._driver.CU_MEMHOSTREGISTER_PORTABLE
        return int(self._driver.cuMemHostRegister(address, nbytes, flags)[0]) == 0

    def unpin(self, address: int) -> None:
        self._enter()
        self._done("unlock memory of the host", self._driver.cuMemHostUnregister(address))

    def write(self, stream: Stream, address: int, values: np.ndarray) -> None:
        self._enter()
        self._done("copy from the host", self._driver.cuMemcpyHtoDAsync(address, values.ctypes.data, values.nbytes,
                                                                        self._streams[stream]))

    def read(self, stream: Stream, address: int, values: np.ndarray) -> None:
        self._enter()
        self._done("copy to the host", self._driver.cuMemcpyDtoHAsync(values.ctypes.data, address, values.nbytes,
                                                                      self._streams[stream]))

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._enter()
        self._done("copy", self._driver.cuMemcpyDtoDAsync(target, source, nbytes, self._streams[Stream.COMPUTE]))

    def clear(self, address: int, nbytes: int) -> None:
        self._enter()
        self._done("clear memory", self._driver.cuMemsetD8Async(address, 0, nbytes, self._streams[Stream.COMPUTE]))

    def function(self, cubin: bytes, symbol: str) -> Any:
        """The function of that name in machine code of this device's architecture, and the module that it is in."""
        self._enter()
        module = self._done("load code", self._driver.cuModuleLoadData(cubin))
        return self._done(f"find {symbol}", self._driver.cuModuleGetFunction(module, symbol.encode()))

    def library(self, name: str) -> Any:
        return importlib.import_module(name)

    def call(self, what: Callable[[int], T]) -> T:
        self._enter()
        return what(self.stream(Stream.COMPUTE))

    def launch(self, launch: Launch) -> None:
        self._enter()
        if isinstance(launch.function, LibraryCall):
            return launch.function.begin(self.stream(Stream.COMPUTE), [address for address, _ in launch.pointers])
        self._done("launch", self._driver.cuLaunchKernel(launch.function, launch.blocks, 1, 1, launch.threads, 1, 1, 0,
                                                         self._streams[Stream.COMPUTE], _packed(launch), 0))

    def graph(self, launches: Sequence[Launch]) -> Graph:
        self._enter()
        if len(self._dropped) > DROPPED:
            self.wait()
        made = Graph(self, self._done("make a graph", self._driver.cuGraphCreate(0)))
        for launch in launches:
            before = made.nodes[-1:]
            made.nodes.append(self._added(made.handle, before, launch))
        made.executable = self._done("prepare a graph", self._driver.cuGraphInstantiate(made.handle, 0))
        return made

    def _added(self, graph: Any, before: Any, launch: Launch) -> Any:
        """The node of a launch, behind another one."""
        if not isinstance(launch.function, LibraryCall):
            return self._done("add a launch to a graph", self._driver.cuGraphAddKernelNode(
                graph, before, len(before), self._node(launch)))
        inner = self._captured(launch)
        try:  # the graph gets a copy
            return self._done("add a library's call to a graph", self._driver.cuGraphAddChildGraphNode(
                graph, before, len(before), inner))
        finally:
            self._driver.cuGraphDestroy(inner)

    def change(self, graph: Graph, number: int, launch: Launch) -> None:
        self._enter()
        if not isinstance(launch.function, LibraryCall):
            self._done("change a graph", self._driver.cuGraphExecKernelNodeSetParams(
                graph.executable, graph.nodes[number], self._node(launch)))
            return
        inner = self._captured(launch)
        try:
            self._done("change a library's call in a graph", self._driver.cuGraphExecChildGraphNodeSetParams(
                graph.executable, graph.nodes[number], inner))
        finally:
            self._driver.cuGraphDestroy(inner)

    def _captured(self, launch: Launch) -> Any:
        """A graph of what a library's call launches. It is recorded on a stream of its own, since other threads may use
        the device's meanwhile, which is not allowed to one that is recorded."""
        assert isinstance(launch.function, LibraryCall)
        with self._recording:
            if self._recorder is None:
                self._recorder = self._done("make a stream", self._driver.cuStreamCreate(
                    int(self._driver.CUstream_flags.CU_STREAM_NON_BLOCKING)))
            self._done("record a library's call", self._driver.cuStreamBeginCapture(
                self._recorder, self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
            try:
                launch.function.begin(int(self._recorder), [address for address, _ in launch.pointers])
            except BaseException:  # what was recorded before it is dropped, if the driver gives it at all
                code, *made = self._driver.cuStreamEndCapture(self._recorder)
                if int(code) == 0:
                    self._driver.cuGraphDestroy(*made)
                raise
            return self._done("record a library's call", self._driver.cuStreamEndCapture(self._recorder))

    def begin(self, graph: Graph) -> None:
        self._enter()
        self._done("launch a graph", self._driver.cuGraphLaunch(graph.executable, self._streams[Stream.COMPUTE]))

    def drop(self, handle: Any, executable: Any) -> None:
        """Give back what a graph holds, once it does not run any more: its object goes while it may still run."""
        self._dropped.append((handle, executable))

    def _node(self, launch: Launch) -> Any:
        """What a graph knows of a launch."""
        made = self._driver.CUDA_KERNEL_NODE_PARAMS()
        made.func = launch.function
        made.gridDimX, made.gridDimY, made.gridDimZ = launch.blocks, 1, 1
        made.blockDimX, made.blockDimY, made.blockDimZ = launch.threads, 1, 1
        made.kernelParams = _packed(launch)
        return made

    def record(self, stream: Stream) -> Event:
        self._enter()
        try:
            handle = self._events.pop()
        except IndexError:
            kind = self._driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
            handle = self._done("make an event", self._driver.cuEventCreate(kind))
        event = Event(handle, self._events)
        self._done("note an event", self._driver.cuEventRecord(handle, self._streams[stream]))
        return event

    def follow(self, stream: Stream, event: Event) -> None:
        self._enter()
        self._done("wait for an event", self._driver.cuStreamWaitEvent(self._streams[stream], event.handle, 0))

    def wait_for(self, event: Event) -> None:
        self._enter()
        self._done("finish", self._driver.cuEventSynchronize(event.handle))

    def is_over(self, event: Event) -> bool:
        self._enter()
        code, = self._driver.cuEventQuery(event.handle)
        if code == self._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._done("finish", (code,))
        return True

    def wait(self) -> None:
        self._enter()
        with self._destroying:
            dropped = len(self._dropped)
            for stream in self._streams:
                self._done("finish", self._driver.cuStreamSynchronize(stream))
            for handle, executable in [self._dropped.popleft() for _ in range(dropped)]:
                if executable is not None:
                    self._driver.cuGraphExecDestroy(executable)
                self._driver.cuGraphDestroy(handle)

    def stream(self, stream: Stream) -> int:
        """The driver's stream, for libraries that are given one."""
        return int(self._streams[stream])
