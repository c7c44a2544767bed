"""The runner on Python's `threading`: for systems without a native one, and to compare with."""
from __future__ import annotations

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor

from mxc.runtime.step_table import StepTable

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Portable:
    """Splits each step's units evenly among the threads. One plan at a time uses them; others run alone."""

    def __init__(self, threads: int):
        self.threads = threads
        self.lock = threading.Lock()
        self.pool = ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="mxc")

    def run(self, table: StepTable) -> None:
        scratch, stride = table.scratch, table.stride
        shared = self.threads > 1 and self.lock.acquire(blocking=False)
        try:
            rows, step = table.rows(), 0
            while step < len(rows):
                address, arguments, units, _ = rows[step]
                step = step + 1 if address else table.turned(step)
                if address == 0 or units == 0:
                    continue
                kernel = KERNEL(address)
                parts = min(self.threads, units) if shared else 1
                cuts = [units * i // parts for i in range(parts + 1)]
                others = [
                    self.pool.submit(kernel, arguments, cuts[i], cuts[i + 1], scratch + i * stride)
                    for i in range(1, parts)
                ]
                kernel(arguments, 0, cuts[1], scratch)
                for other in others:
                    other.result()
        finally:
            if shared:
                self.lock.release()

    def alone(self, table: StepTable, quick: bool) -> None:
        """None: it has no quicker way than `run`."""

    def close(self) -> None:
        self.pool.shutdown()
