"""In place of nccl4py's `nccl.bindings.nccl`, for simulated GPUs: a sum is made when all of a group have come to it.

The functions' parameters have the names and the order of nccl4py 0.6.0, which their signatures tell; there too, handles
are objects of its own, and addresses, streams and kinds integers.
"""
from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np

from mxc.compiler.targets.cuda import devices
from mxc.compiler.targets.cuda.device import Stream
from mxc.compiler.targets.cuda.simulator import SimulatedGpu

calls: list[str] = []  # what was called, with how many parts for group_end
failing = ""  # a function that fails


class DataType(IntEnum):
    Int8, Uint8, Int32, Uint32, Int64, Uint64, Float16, Float32, Float64, Bfloat16 = range(10)


class RedOp(IntEnum):
    Sum = 0


class NCCLError(Exception):
    pass


class Comm:
    def __init__(self, gpu: Any, of: list[Comm]):
        self.gpu, self.of, self.error = gpu, of, 0


_asked: dict[int, list[tuple[Comm, str, tuple[int, ...]]]] = {}  # by device
_groups = 0


def _called(name: str) -> None:
    calls.append(name)
    if name == failing:
        raise NCCLError("UnhandledCudaError (1): unhandled cuda error (run with NCCL_DEBUG=INFO for details)")


def get_version() -> int:
    return 23203


def get_error_string(result: int) -> str:
    return f"error {result}"


def comm_get_async_error(comm: Comm) -> int:
    return comm.error


def comm_init_all(ndev: int, devlist: list[int]) -> list[Comm]:
    _called("comm_init_all")
    assert ndev == len(devlist) == len(set(devlist)) > 1
    made: list[Comm] = []
    made += [Comm(devices.memory(number).device, made) for number in devlist]
    return made


def all_reduce(sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, comm: Comm, stream: int) -> None:
    assert op == RedOp.Sum
    _ask("all_reduce", comm, stream, (sendbuff, recvbuff, count, int(datatype), 0))


def reduce(sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, root: int, comm: Comm,
           stream: int) -> None:
    assert op == RedOp.Sum
    _ask("reduce", comm, stream, (sendbuff, recvbuff, count, int(datatype), root))


def broadcast(sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, comm: Comm, stream: int) -> None:
    _ask("broadcast", comm, stream, (sendbuff, recvbuff, count, int(datatype), root))


def _ask(kind: str, comm: Comm, stream: int, what: tuple[int, ...]) -> None:
    assert stream == comm.gpu.stream(Stream.COMPUTE) and _groups, "one thread asks for all parts in a group"
    _called(kind)
    _asked.setdefault(comm.gpu.number, []).append((comm, kind, what))


def group_start() -> None:
    global _groups
    _groups += 1
    calls.append("group_start")


def group_end() -> None:
    global _groups
    _groups -= 1
    asked = [*_asked.values()]
    _asked.clear()
    calls.append(f"group_end {sum(map(len, asked))}")
    for parts in zip(*asked, strict=True):
        comms, kinds, whats = zip(*parts, strict=True)
        assert len({*kinds}) == 1 and {*comms} == {*comms[0].of}, "all GPUs come to the same sum"
        ranks = sorted(zip(comms, whats, strict=True), key=lambda part: part[0].of.index(part[0]))
        _begin(kinds[0], [(comm.gpu, what) for comm, what in ranks])


def _begin(kind: str, ranks: list[tuple[SimulatedGpu, tuple[int, ...]]]) -> None:
    here = [(gpu, gpu.record(Stream.COMPUTE)) for gpu, _ in ranks]
    done: list[bool] = []

    def compute() -> None:
        if done:
            return
        done.append(True)
        count, kind_of, root = ranks[0][1][2:]
        dtype = DataType(kind_of).name.lower()
        views = [[gpu.view(address, dtype)[:count] if address else None for address in what[:2]]
                 for gpu, what in ranks]
        values: Any = views[root][0] if kind == "broadcast" else np.sum([sent for sent, _ in views], 0, dtype)
        for rank, (_, received) in enumerate(views):
            if received is not None and (kind != "reduce" or rank == root):
                received[:] = values.copy()

    for gpu, _ in ranks:
        for other, event in here:
            if other is not gpu:
                gpu.follow(Stream.COMPUTE, event)
        work: Callable[[], None] = compute
        gpu._add(Stream.COMPUTE, work)
