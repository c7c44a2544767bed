"""The calls of NVIDIA's driver, to a stand-in that notes them and holds them against the signatures of the bindings. On
a GPU they are unseen."""
from __future__ import annotations

import ctypes
import gc
import inspect
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cuda import driver, pinned, staging
from mxc.compiler.targets.cuda.allocator import Allocator
from mxc.compiler.targets.cuda.device import Launch, LibraryCall, Stream

bindings = pytest.importorskip("cuda.bindings.driver", reason="the extra cuda is not installed")


def addresses(parameters: Any, count: int) -> list[int]:
    """The arguments of a launch, read as the driver reads them."""
    places = ctypes.cast(int(parameters), ctypes.POINTER(ctypes.c_void_p))
    return [ctypes.cast(places[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in range(count)]


# Calls that give something beside their code, None where they fail.
GIVING = {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute", "cuDeviceGetName", "cuGetErrorString",
          "cuStreamCreate", "cuEventCreate", "cuMemAlloc", "cuMemHostAlloc", "cuGraphCreate", "cuGraphAddKernelNode",
          "cuGraphAddChildGraphNode", "cuStreamEndCapture", "cuGraphInstantiate"}


class Handle(str):
    """Of a stream or event, which libraries are given as a number."""

    def __int__(self) -> int:
        return int(self.split()[1])


class Driver:
    """In place of the bindings. calls: names and arguments. nodes: blocks and addresses of each. refused: a call that
    fails; pending: events that are not over."""

    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9,
                                         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0)
    CUstream_flags, CUstreamCaptureMode = bindings.CUstream_flags, bindings.CUstreamCaptureMode

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.nodes: list[Any] = []
        self.refused = ""
        self.pending: set[Any] = set()
        self.made = 0
        self.host: dict[int, Any] = {}  # memory by address

    @property
    def calls(self) -> list[str]:
        return [name for name, *_ in self.said]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("CU"):
            return getattr(bindings, name)
        return lambda *rest: self._called(name, rest)

    def _called(self, name: str, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        inspect.signature(getattr(bindings, name)).bind(*rest)
        self.said.append((name, *rest))
        if name == self.refused:
            return bindings.CUresult.CUDA_ERROR_INVALID_VALUE, *([None] if name in GIVING else [])
        if name == "cuGraphCreate":
            self.nodes = []
        if name == "cuGraphAddKernelNode":
            assert rest[1] == ([len(self.nodes)] if self.nodes else []) and rest[2] == len(rest[1])
            self.nodes.append(self._read(rest[3]))
            return 0, len(self.nodes)
        if name == "cuGraphExecKernelNodeSetParams":
            self.nodes[rest[1] - 1] = self._read(rest[2])
        if name == "cuEventQuery" and rest[0] in self.pending:
            return (bindings.CUresult.CUDA_ERROR_NOT_READY,)
        if name in ("cuStreamCreate", "cuEventCreate"):
            self.made += 1
            return 0, Handle(f"{name[2:-6].lower()} {self.made}")
        if name == "cuMemHostAlloc":
            memory = np.zeros(rest[0], np.uint8)
            self.host[memory.ctypes.data] = memory
            return 0, memory.ctypes.data
        if name == "cuMemAlloc":
            self.made += 1
            return 0, self.made << 40
        if name == "cuGraphAddChildGraphNode":
            assert rest[1] == ([len(self.nodes)] if self.nodes else []) and rest[2] == len(rest[1])
            self.nodes.append(rest[3])
            return 0, len(self.nodes)
        if name == "cuGraphExecChildGraphNodeSetParams":
            self.nodes[rest[1] - 1] = rest[2]
        if name == "cuStreamBeginCapture":
            assert rest[1] == bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        if name not in GIVING:
            return (0,)
        given = {"cuDeviceGetAttribute": rest and rest[0], "cuDeviceGetName": b"a stand-in\0",
                 "cuGetErrorString": b"invalid argument", "cuGraphInstantiate": "executable"}
        return 0, given.get(name, name)

    @staticmethod
    def _read(node: Any) -> tuple[int, int, int, list[int]]:
        return int(node.func), node.gridDimX, node.blockDimX, addresses(node.kernelParams, 2)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> driver.Gpu:
    stand_in = Driver()
    monkeypatch.setattr(driver, "bindings", lambda: stand_in)
    return driver.Gpu(0)


def launches() -> list[Launch]:
    return [Launch(bindings.CUfunction(77 + i), 5 + i, 128, [(0x1000 + i, "float32"), (1 << 40, "int64")])
            for i in range(2)]


def test_a_graph_is_made_changed_launched_and_dropped(gpu: driver.Gpu) -> None:
    said: Any = gpu._driver
    graph = gpu.graph(launches())
    assert said.nodes == [(77, 5, 128, [0x1000, 1 << 40]), (78, 6, 128, [0x1001, 1 << 40])]
    assert graph.executable == "executable"
    gpu.change(graph, 1, launches()[1]._replace(pointers=[(0x2000, "float32"), (8, "int64")]))
    assert said.nodes[1] == (78, 6, 128, [0x2000, 8])
    said.said.clear()
    gpu.begin(graph)
    assert said.said[1:] == [("cuGraphLaunch", "executable", "stream 1")]
    said.said.clear()
    del graph
    assert not said.said, "it may still run"
    gpu.wait()
    assert said.calls == ["cuCtxSetCurrent", *["cuStreamSynchronize"] * 3, "cuGraphExecDestroy", "cuGraphDestroy"]
    dropped = [gpu.graph(launches()) for _ in range(driver.DROPPED + 1)]
    del dropped[:]
    said.said.clear()
    gpu.graph(launches())
    assert said.calls.count("cuGraphExecDestroy") == driver.DROPPED + 1


class Call(LibraryCall):
    """What a library would do. seen: streams and addresses."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[int]]] = []

    def begin(self, stream: int, addresses: Any) -> None:
        if 666 in addresses:
            raise MXNetError("not these addresses")
        self.seen.append((stream, list(addresses)))

    def offsets(self) -> list[tuple[int, int]]:
        return [(0, 4)]


def test_calls_of_libraries(gpu: driver.Gpu) -> None:
    """They run on the device's stream, and are recorded for graphs on one of their own."""
    said: Any = gpu._driver
    call = Call()
    launch = Launch(call, 1, 1, [(0x1000, "float32"), (8, "int64")])
    gpu.launch(launch)
    assert call.seen == [(1, [0x1000, 8])] and gpu.call(lambda stream: stream) == 1
    graph = gpu.graph([launches()[0], launch])
    assert call.seen[1:] == [(4, [0x1000, 8])] and said.nodes[1] == "cuStreamEndCapture"
    assert said.calls[-2:] == ["cuGraphDestroy", "cuGraphInstantiate"]  # the graph has a copy of what was recorded
    gpu.change(graph, 1, launch._replace(pointers=[(0x2000, "float32"), (8, "int64")]))
    assert call.seen[2:] == [(4, [0x2000, 8])] and said.calls.count("cuStreamCreate") == 4
    with pytest.raises(MXNetError, match="not these addresses"):
        gpu.change(graph, 1, launch._replace(pointers=[(666, "float32")]))
    assert said.calls[-2:] == ["cuStreamEndCapture", "cuGraphDestroy"]
    assert not call.takes([0x1000], 16) and call.takes([0x100C], 16)


@pytest.mark.parametrize("call", ["cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiate"])
def test_what_the_driver_refuses_is_told(call: str, gpu: driver.Gpu) -> None:
    said: Any = gpu._driver
    said.refused = call
    with pytest.raises(MXNetError, match=r"gpu\(0\) cannot .* a graph: invalid argument \(1\)"):
        gpu.graph(launches())


COMPUTE, SEND, FETCH = "stream 1", "stream 2", "stream 3"


@pytest.fixture
def memory(gpu: driver.Gpu, monkeypatch: pytest.MonkeyPatch) -> Allocator:
    monkeypatch.setattr(staging, "PIECE", 1 << 16)
    return Allocator(gpu)


def told(memory: Allocator) -> list[tuple[Any, ...]]:
    """The calls since, but for those that make the context current and events."""
    said: Any = memory.device
    found = [call for call in said._driver.said if call[0] not in ("cuCtxSetCurrent", "cuEventCreate")]
    said._driver.said.clear()
    return found


def test_streams_keep_to_the_legacy_default_stream(gpu: driver.Gpu) -> None:
    """Libraries that use that stream share memory with arrays."""
    said: Any = gpu._driver
    assert [call for call in said.said if call[0] == "cuStreamCreate"] == [("cuStreamCreate", 0)] * 3


def test_a_copy_to_the_device_beside_computing(memory: Allocator) -> None:
    """In pieces through page-locked blocks, each with an event; computing then follows the last one, once."""
    values = np.arange(150_000, dtype=np.uint8)
    said: Any = memory.device
    address = memory.allocate(values.nbytes)
    said._driver.pending = {f"event {number}" for number in range(99)}
    told(memory)
    mark = memory.send(address, values, None)
    calls = told(memory)
    copies = [call for call in calls if call[0] == "cuMemcpyHtoDAsync"]
    assert len(said._driver.host) == 3, "none of the copies was over"
    assert [(call[1], call[3], call[4]) for call in copies] == [
        (address + start, size, SEND) for start, size in ((0, 1 << 16), (1 << 16, 1 << 16), (2 << 16, 18928))]
    assert [call[2] for call in copies] == [block.ctypes.data for block in said._driver.host.values()]
    assert np.array_equal(np.concatenate([*said._driver.host.values()])[:150_000], values)
    events = [call for call in calls if call[0] == "cuEventRecord"]
    assert [call[2] for call in events] == [SEND] * 3 and mark.event.handle == events[-1][1]
    memory.follow(mark)
    memory.follow(mark)
    assert told(memory) == [("cuStreamWaitEvent", COMPUTE, mark.event.handle, 0)]
    memory.wait(mark)
    memory.wait(mark)
    assert told(memory) == [("cuEventSynchronize", mark.event.handle)]
    memory.follow(mark)
    assert not told(memory), "what is known to be done needs no following"


def test_blocks_are_used_again_when_their_copy_is_over(memory: Allocator) -> None:
    said: Any = memory.device
    address = memory.allocate(1 << 20)
    for _ in range(3):
        memory.send(address, np.zeros(1 << 17, np.uint8), None)
    assert len(said._driver.host) == 1, "each copy was over at once"
    said._driver.pending = {f"event {number}" for number in range(99)}
    told(memory)
    memory.send(address, np.zeros(5 << 16, np.uint8), None)
    calls = told(memory)
    assert len(said._driver.host) == staging.BLOCKS
    waits = [place for place, call in enumerate(calls) if call[0] == "cuEventSynchronize"]
    copies = [place for place, call in enumerate(calls) if call[0] == "cuMemcpyHtoDAsync"]
    assert copies[2] < waits[0] < copies[3] < waits[1] < copies[4], "one block was used before"
    assert calls[copies[4]][2] == calls[copies[0]][2]
    memory.release_free()
    assert [call[0] for call in told(memory)].count("cuMemFreeHost") == staging.BLOCKS


def test_small_copies_are_in_the_order_of_computing(memory: Allocator) -> None:
    address = memory.allocate(1000)
    told(memory)
    memory.send(address, np.arange(10), None)
    memory.write(address, np.arange(10))
    copies = [call for call in told(memory) if call[0] == "cuMemcpyHtoDAsync"]
    assert [call[4] for call in copies] == [COMPUTE] * 2 and copies[1][2] == copies[0][2] + staging.ALIGNMENT


def test_a_copy_back_follows_what_was_computed(memory: Allocator) -> None:
    said: Any = memory.device
    address, values = memory.allocate(100_000), np.empty(100_000, np.uint8)
    memory.clear(address, 100_000)
    mark = memory.computed()
    told(memory)
    memory.fetch(address, values, mark)
    calls = told(memory)
    assert calls[0] == ("cuStreamWaitEvent", FETCH, mark.event.handle, 0)
    names = [call[0] for call in calls]
    assert [call[4] for call in calls if call[0] == "cuMemcpyDtoHAsync"] == [FETCH] * 2
    first, second = (place for place, name in enumerate(names) if name == "cuMemcpyDtoHAsync")
    assert first < second < names.index("cuEventSynchronize"), "both are on their way before the first is taken"
    assert not values.any() and said._driver.host


def test_a_copy_to_memory_that_is_used(memory: Allocator) -> None:
    """It goes beside, and the device puts it in place; without memory for that it waits for what uses it."""
    said: Any = memory.device
    address, values = memory.allocate(60_000), np.zeros(1 << 16 | 1, np.uint8)
    memory.clear(address, values.nbytes)
    mark = memory.computed()
    assert mark is not None
    said._driver.pending = {mark.event.handle}
    told(memory)
    sent = memory.send(address, values, mark)
    calls = [call for call in told(memory) if call[0] not in ("cuMemHostAlloc", "cuEventQuery")]
    beside = calls[0]
    assert beside[0] == "cuMemAlloc", calls
    copies = [call for call in calls if call[0] == "cuMemcpyHtoDAsync"]
    assert len(copies) == 2 and copies[0][1] != address and all(call[4] == SEND for call in copies)
    follow, copy, event = calls[-3:]
    assert follow[:2] == ("cuStreamWaitEvent", COMPUTE) and event[2] == COMPUTE and sent is memory.computed()
    assert copy == ("cuMemcpyDtoDAsync", address, copies[0][1], values.nbytes, COMPUTE)
    assert memory.allocate(values.nbytes) == copies[0][1], "it is kept for the next such copy"
    said._driver.pending |= {sent.event.handle}
    memory.device.allocate = lambda nbytes: 0  # type: ignore[method-assign]
    memory.send(address, values, mark)
    calls = told(memory)
    assert ("cuStreamWaitEvent", SEND, mark.event.handle, 0) in calls
    assert {call[1] for call in calls if call[0] == "cuMemcpyHtoDAsync"} == {address, address + (1 << 16)}


def test_memory_that_is_given_back_while_it_is_used(memory: Allocator) -> None:
    """A copy into it follows what had begun by then; computing follows a copy to it that nobody used; the driver gets
    it back when all streams are done."""
    address = memory.allocate(1 << 17)
    memory.clear(address, 1 << 17)
    mark = memory.computed()
    sent = memory.send(address, np.zeros(1 << 17, np.uint8), mark)
    memory.release(address, sent)
    told(memory)
    again = memory.allocate(1 << 17)
    assert again == address and memory.last_use(again) is mark
    assert told(memory) == [("cuStreamWaitEvent", COMPUTE, sent.event.handle, 0)]
    memory.release(again)
    memory.release_free()
    names = [call[0] for call in told(memory)]
    assert names[:3] == ["cuStreamSynchronize"] * 3 and "cuMemFree" in names[3:]


def test_events_are_used_again(memory: Allocator) -> None:
    said: Any = memory.device
    for _ in range(200):
        memory.clear(memory.allocate(256), 256)
    gc.collect()
    made = [name for name in said._driver.calls if name == "cuEventCreate"]
    assert len(made) < 200, "those of work that nobody asks about any more"


def test_where_no_pages_are_locked(memory: Allocator) -> None:
    """It is told once; copies are waited for, out of the array itself."""
    said: Any = memory.device
    said._driver.refused = "cuMemHostAlloc"
    values, address = np.zeros(1 << 17, np.uint8), memory.allocate(1 << 17)
    with pytest.warns(RuntimeWarning, match=r"gpu\(0\): the system locks no pages"):
        memory.send(address, values, None)
    told(memory)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.send(address, values, None)
        memory.write(address, values[:9])
        memory.fetch(address, values, None)
    calls = [call for call in told(memory) if call[0] != "cuEventRecord"]
    assert [call[0] for call in calls] == [*["cuMemcpyHtoDAsync", "cuEventSynchronize"] * 3,
                                           *["cuMemcpyDtoHAsync", "cuEventSynchronize"] * 2]
    assert calls[0][2] == values.ctypes.data


def test_arrays_that_are_page_locked_go_directly(memory: Allocator) -> None:
    said: Any = memory.device
    raw = np.zeros(1 << 18, np.uint8)
    address = memory.allocate(1 << 18)
    assert pinned.pin(raw, raw.ctypes.data, raw.nbytes, memory.device)
    told(memory)
    memory.send(address, raw[4096:4096 + (1 << 17)], None)
    calls = told(memory)
    assert [call[0] for call in calls] == ["cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize"]
    assert calls[0][2] == raw.ctypes.data + 4096 and not said._driver.host
    memory.fetch(address, raw, None)
    assert [call[0] for call in told(memory)] == ["cuMemcpyDtoHAsync", "cuEventRecord", "cuEventSynchronize"]
    pinned.release_all()  # before a fork
    assert told(memory) == [("cuMemHostUnregister", raw.ctypes.data)]
    memory.send(address, raw, None)
    assert said._driver.host, "by way of blocks"
    assert pinned.pin(raw, raw.ctypes.data, raw.nbytes, memory.device)
    told(memory)
    place = raw.ctypes.data
    del raw
    assert told(memory) == [("cuMemHostUnregister", place)]
    said._driver.refused = "cuMemHostRegister"
    other = np.zeros(9, np.uint8)
    assert not pinned.pin(other, other.ctypes.data, 9, memory.device)


def test_what_failed_is_told_where_it_is_waited_for(memory: Allocator) -> None:
    said: Any = memory.device
    with memory.order.work(Stream.COMPUTE, ("kernel first", "kernel second")):
        pass
    memory.send(memory.allocate(1 << 17), np.zeros(1 << 17, np.uint8), None)
    said._driver.refused = "cuEventSynchronize"
    for _ in range(2):
        with pytest.raises(MXNetError, match=r"gpu\(0\) cannot finish: invalid argument \(1\); what had begun .* "
                           "kernel first, kernel second, a copy to the device"):
            memory.wait(memory.computed())
    said._driver.refused = ""
    memory.wait(memory.computed())
    with pytest.raises(MXNetError, match=r"cannot launch: invalid argument \(1\)"):
        said._driver.refused = "cuLaunchKernel"
        memory.device.launch(launches()[0])
