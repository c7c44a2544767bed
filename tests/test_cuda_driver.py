"""The calls of NVIDIA's driver for a graph of launches, to a stand-in that notes them. On a GPU they are unseen."""
from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cuda import driver
from mxc.compiler.targets.cuda.device import Launch, LibraryCall

bindings = pytest.importorskip("cuda.bindings.driver", reason="the extra cuda is not installed")


def addresses(parameters: Any, count: int) -> list[int]:
    """The arguments of a launch, read as the driver reads them."""
    places = ctypes.cast(int(parameters), ctypes.POINTER(ctypes.c_void_p))
    return [ctypes.cast(places[i], ctypes.POINTER(ctypes.c_uint64))[0] for i in range(count)]


class Driver:
    """In place of the bindings. nodes: blocks and addresses of each. refused: a call that fails."""

    CUDA_KERNEL_NODE_PARAMS = bindings.CUDA_KERNEL_NODE_PARAMS
    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9,
                                         CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0)
    CUstream_flags, CUstreamCaptureMode = bindings.CUstream_flags, bindings.CUstreamCaptureMode

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.nodes: list[Any] = []
        self.refused = ""

    def __getattr__(self, name: str) -> Any:
        return lambda *rest: self._called(name, rest)

    def _called(self, name: str, rest: tuple[Any, ...]) -> tuple[Any, ...]:
        self.calls.append(name)
        if name == self.refused:
            return (1,)
        if name == "cuGraphAddKernelNode":
            assert rest[1] == ([len(self.nodes)] if self.nodes else []) and rest[2] == len(rest[1])
            self.nodes.append(self._read(rest[3]))
            return 0, len(self.nodes)
        if name == "cuGraphExecKernelNodeSetParams":
            self.nodes[rest[1] - 1] = self._read(rest[2])
        if name == "cuGraphAddChildGraphNode":
            assert rest[1] == ([len(self.nodes)] if self.nodes else []) and rest[2] == len(rest[1])
            self.nodes.append(rest[3])
            return 0, len(self.nodes)
        if name == "cuGraphExecChildGraphNodeSetParams":
            self.nodes[rest[1] - 1] = rest[2]
        if name == "cuStreamBeginCapture":
            assert rest[0] == 12 and rest[1] == bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        given = {"cuStreamCreate": 12 if self.calls.count("cuStreamCreate") == 2 else 11,  # the second one records
                 "cuDeviceGetAttribute": rest[0], "cuDeviceGetName": b"a stand-in\0",
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
    said.calls.clear()
    gpu.begin(graph)
    assert said.calls == ["cuCtxSetCurrent", "cuGraphLaunch"]
    said.calls.clear()
    del graph
    assert said.calls == ["cuCtxSetCurrent", "cuGraphExecDestroy", "cuGraphDestroy"]


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
    assert call.seen == [(11, [0x1000, 8])] and gpu.call(lambda stream: stream) == 11
    graph = gpu.graph([launches()[0], launch])
    assert call.seen[1:] == [(12, [0x1000, 8])] and said.nodes[1] == "cuStreamEndCapture"
    assert said.calls[-2:] == ["cuGraphDestroy", "cuGraphInstantiate"]  # the graph has a copy of what was recorded
    gpu.change(graph, 1, launch._replace(pointers=[(0x2000, "float32"), (8, "int64")]))
    assert call.seen[2:] == [(12, [0x2000, 8])] and said.calls.count("cuStreamCreate") == 2
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
