"""Runs tables of steps: natively, with a pool of threads that costs a fraction of a microsecond a step.

Tables are those of `step_table.py`. The runner's own code is in `compiler/targets/cpu/runner_ir.py`; elsewhere than on
Linux, and with MXC_RUNNER=portable, `portable_runner` does the same with `threading`.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler import targets
from mxc.compiler.error import SettingError, nearest
from mxc.compiler.system import env
from mxc.runtime.step_table import StepTable

if TYPE_CHECKING:
    from mxc.compiler.plan import Step
    from mxc.compiler.targets.protocol import Memory

# What an observer is told of each kernel and host step that plans run: the step, the names of the model's nodes that it
# came from, the bytes that it read and wrote, and when it began and ended, in nanoseconds of time.perf_counter_ns. The
# profiler sets it; with one, kernels run one by one.
Observer = Callable[["Step", list[str], int, int, int], None]
observer: Observer | None = None

RUNNERS = ("native", "portable")
SPINS = 20_000  # rounds in which an idle worker looks for work before it sleeps: less than a millisecond


class _Native:
    """The compiled runner and its memory. Workers start with the first run that has use for them."""

    def __init__(self, threads: int):
        self.threads = threads
        self.lock = threading.Lock()
        self.workers: list[threading.Thread] = []
        self.closed = False
        self.code = _load()
        self.words = words = targets.host().runner()
        raw = np.zeros(words.POOL_BYTES + 64, np.uint8)
        start = -raw.ctypes.data % 64
        self.memory = raw[start : start + words.POOL_BYTES]
        self.address = self.memory.ctypes.data
        self.syscall = ctypes.CDLL(None).syscall
        futex, give_way = words.system_calls(platform.machine())
        constants = {
            words.SYSCALL: ctypes.cast(self.syscall, ctypes.c_void_p).value or 0,
            words.FUTEX: futex, words.YIELD: give_way, words.SPINS: SPINS,
        }
        for offset, number in constants.items():
            self.memory[offset : offset + 8].view(np.int64)[0] = number

    def run(self, table: StepTable) -> None:
        # whoever finds the pool busy (another thread runs a plan) works alone instead of waiting
        if table.shared and self.threads > 1 and not self.closed and self.lock.acquire(blocking=False):
            try:
                if not self.workers:
                    self._start()
                self.code["mxc_run"](self.address, table.address)
            finally:
                self.lock.release()
        else:
            self.code["mxc_run_serial"](table.address)

    def alone(self, table: StepTable, quick: bool) -> Callable[[], None] | None:
        """What runs the table in the caller's thread, or None where other threads take part."""
        if table.shared and self.threads > 1:
            return None
        return partial(self.code["quick" if quick else "mxc_run_serial"], table.address)

    def _start(self) -> None:
        worker = self.code["mxc_worker"]
        for number in range(1, self.threads):
            thread = threading.Thread(target=worker, args=(self.address, number), name=f"mxc-{number}", daemon=True)
            thread.start()
            self.workers.append(thread)

    def close(self) -> None:
        """Ends the workers; they must not run while the interpreter takes their code and memory away."""
        self.closed = True  # before the lock: a thread that runs one plan after the other might keep it
        with self.lock:
            words = self.words
            self.memory[words.QUIT : words.QUIT + 4].view(np.int32)[0] = 1
            self.memory[words.WORD : words.WORD + 4].view(np.int32)[0] += 1
            futex = words.system_calls(platform.machine())[0]
            wake = [ctypes.c_long(futex), ctypes.c_void_p(self.address + words.WORD), ctypes.c_long(129)]
            self.syscall(*wake, ctypes.c_long(2**31 - 1))
            for thread in self.workers:
                thread.join()


def _load() -> dict[str, Any]:
    """The runner's functions by name, their code as offered or from the kernel cache. They release Python's lock;
    `quick` is mxc_run_serial which does not."""
    addresses = _offered or targets.host().target().runner_functions()
    # addresses go as c_void_p, which ctypes converts in half the time that it takes for integers
    words = targets.host().runner().FUNCTIONS
    made = {name: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n)(addresses[name]) for name, n in words.items()}
    return {**made, "quick": ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(addresses["mxc_run_serial"])}


def offer(addresses: Mapping[str, int]) -> None:
    """Where this process has the runner's functions already, for a native runner that is made from now on."""
    _offered.update(addresses)


_offered: dict[str, int] = {}
_current: Any = None
_guard = threading.Lock()


def is_native() -> bool:
    """Whether this machine has a native runner."""
    return sys.platform == "linux" and platform.machine() in targets.host().runner().machines()


def chosen() -> str:
    """The runner that MXC_RUNNER names, whether this machine has it or not. Raises SettingError when it names none."""
    wanted = env.text("MXC_RUNNER") or "native"
    if wanted not in RUNNERS:
        raise SettingError(f"MXC_RUNNER: there is no runner {wanted!r}; expected one of {', '.join(RUNNERS)}"
                           f"{nearest(wanted, RUNNERS)}")
    return wanted


def _runner() -> Any:
    """This process's runner, made on first use. Raises SettingError when MXC_RUNNER names none."""
    global _current
    if _current is None:
        with _guard:
            if _current is None:
                if chosen() == "native" and is_native():
                    _current = _Native(env.num_threads())
                else:
                    from mxc.runtime.portable_runner import Portable

                    _current = Portable(env.num_threads())
    return _current


memory: Memory | None = None  # this module is the `Launcher` of code that works on the host's memory
table, put = StepTable, StepTable.put


def num_threads() -> int:
    """Threads that run plans in this process, the caller's included; fixed by the first use."""
    return _runner().threads


def run(table: StepTable) -> None:
    """Runs the steps in order; returns when all are done."""
    _runner().run(table)


def bound(table: StepTable, quick: bool = False) -> Callable[[], None]:
    """`run` of this table, for one that runs often. quick: the table takes so little time that other threads of
    Python's can wait for it."""
    alone: Callable[[], None] | None = _runner().alone(table, quick)
    return alone or partial(run, table)  # in a forked child `run` uses the child's own runner


def _forget() -> None:
    """After a fork the child has none of the workers: it makes a runner of its own when it needs one."""
    global _current, _guard
    _current, _guard = None, threading.Lock()


def _close() -> None:
    if _current is not None:
        _current.close()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
