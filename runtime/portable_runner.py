"""The runner on Python's `threading`: for systems without a native one, and to compare with."""
from __future__ import annotations

import ctypes
import threading
from queue import SimpleQueue
from typing import Any

from mxc.runtime.step_table import StepTable

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Portable:
    """Splits each step's units evenly among the threads. One plan at a time uses them; others run alone."""

    def __init__(self, threads: int):
        self.threads = threads
        self.lock = threading.Lock()
        self.workers: list[threading.Thread] = []
        # A kernel and its arguments; None for a worker that is to end. Executors of concurrent.futures would not do: a
        # thread that is about to fork holds a lock of theirs, and finishes pending work meanwhile.
        self.parts: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        self.done = threading.Semaphore(0)

    def _work(self) -> None:
        while (part := self.parts.get()) is not None:
            kernel, *arguments = part
            kernel(*arguments)
            self.done.release()

    def run(self, table: StepTable) -> None:
        scratch, stride = table.scratch, table.stride
        shared = self.threads > 1 and self.lock.acquire(blocking=False)
        try:
            while shared and len(self.workers) < self.threads - 1:
                worker = threading.Thread(target=self._work, name=f"mxc-{len(self.workers) + 1}", daemon=True)
                worker.start()
                self.workers.append(worker)
            rows, step = table.rows(), 0
            while step < len(rows):
                address, arguments, units, _ = rows[step]
                step = step + 1 if address else table.turned(step)
                if address == 0 or units == 0:
                    continue
                kernel = KERNEL(address)
                parts = min(self.threads, units) if shared else 1
                cuts = [units * i // parts for i in range(parts + 1)]
                for i in range(1, parts):
                    self.parts.put((kernel, arguments, cuts[i], cuts[i + 1], scratch + i * stride))
                kernel(arguments, 0, cuts[1], scratch)
                for _ in range(1, parts):
                    self.done.acquire()
        finally:
            if shared:
                self.lock.release()

    def alone(self, table: StepTable, quick: bool) -> None:
        """None: it has no quicker way than `run`."""

    def close(self) -> None:
        with self.lock:
            for _ in self.workers:
                self.parts.put(None)
            for worker in self.workers:
                worker.join()
            self.threads = 1
