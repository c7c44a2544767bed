"""What this machine can do at most, measured: float32 multiply-adds and copying, on all threads that run plans."""
from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from mxc.compiler.targets import host
from mxc.runtime import runner
from mxc.runtime.step_table import StepTable

ROUNDS = 1 << 15  # rounds of multiply-adds in a unit, which then takes a fraction of a millisecond
COPIED = 64 << 20  # bytes that are copied: more than caches hold
UNITS = 32  # units of each kernel: many, so that a thread which is held up does fewer of them
SECONDS = 0.2  # seconds for which each kernel is measured: some turns then have the machine for themselves


@dataclass(frozen=True)
class Limits:
    """gflops: 10^9 float32 multiplications and additions a second, in registers. gbytes: 10^9 bytes a second that a
    copy from memory to memory reads and writes. threads: how many did both."""

    gflops: float
    gbytes: float
    threads: int

    def best(self, other: Limits) -> Limits:
        """The better of two measurements of each."""
        return Limits(max(self.gflops, other.gflops), max(self.gbytes, other.gbytes), self.threads)


def measure() -> Limits:
    """Measure both, the best of many short turns: in all about half a second. Raises MXNetError as compiling does."""
    kernels = host().target().limits()
    threads, stride = runner.num_threads(), kernels.scratch_bytes
    scratch = np.zeros(threads * stride + 64, np.uint8)
    start = scratch.ctypes.data + -scratch.ctypes.data % 64
    values = np.full(2 * kernels.lanes, 0.5, np.float32)
    multiply = StepTable([(kernels.multiply, [values.ctypes.data, ROUNDS], UNITS)], start, stride)
    source, target = np.ones(COPIED // 4, np.float32), np.zeros(COPIED // 4, np.float32)
    copy = StepTable([(kernels.copy, [source.ctypes.data, target.ctypes.data, source.size // UNITS], UNITS)], start,
                     stride)
    flops = UNITS * ROUNDS * kernels.flops
    seconds = [_least(table) for table in (multiply, copy)]
    return Limits(flops / seconds[0] / 1e9, 2 * COPIED / seconds[1] / 1e9, threads)


def _least(table: StepTable) -> float:
    """Seconds of the fastest turn."""
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < SECONDS:
        before = time.perf_counter()
        runner.run(table)
        times.append(time.perf_counter() - before)
    return min(times)
