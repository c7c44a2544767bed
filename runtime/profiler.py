"""The recorder behind `mx.profiler`: while it runs, what the engine and plans do becomes events of a Chrome trace.

The engine tells `observe` of every operation, a plan `runner.observer` of every kernel and host step; each looks at one
module variable first, so that a profiler that does not run costs nothing. Meanwhile kernels run one by one, as with
MXC_DEBUG=2.
"""
from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mxc.compiler.error import FileAccessError
from mxc.compiler.plan import Step
from mxc.compiler.system.forks import Lock
from mxc.runtime import engine, runner, storage

OPERATOR, KERNEL, COMPILE, MEMORY = "operator", "kernel", "compile", "Device Storage"
_TAIL = b"\n]}\n"  # the file's end, behind the last event
_EPOCH = time.time_ns() - time.perf_counter_ns()  # nanoseconds to add to the clock's for a time since 1970


@dataclass
class Settings:
    """What `set_config` says. profile_all: every kind. profile_symbolic: kernels of plans. profile_imperative: the
    engine's operations. profile_memory: bytes in use. aggregate_stats: keep the table that `table` prints.
    continuous_dump: write the file every `dump_period` seconds while running."""

    filename: str = "profile.json"
    profile_all: bool = False
    profile_symbolic: bool = True
    profile_imperative: bool = True
    profile_memory: bool = True
    profile_api: bool = True
    continuous_dump: bool = True
    dump_period: float = 1.0
    aggregate_stats: bool = False
    profile_process: str = "worker"


@dataclass
class Statistic:
    """How often something happened, and the sum and extremes of what it took: milliseconds, or a value (is_value)."""

    is_value: bool
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, amount: float) -> None:
        self.count += 1
        self.total += amount
        self.least, self.most = min(self.least, amount), max(self.most, amount)


    @property
    def average(self) -> float:
        return self.total / self.count


@dataclass
class _State:
    """events: those that are not in the file yet. threads: the threads whose names are among the events or in the file.
    statistics: by category and name. used_before: bytes in use at the last event of memory. end: the byte of the file
    where its events end; 0 where there is no file. written: when the file was written, in seconds of time.monotonic."""

    settings: Settings = field(default_factory=Settings)
    is_running: bool = False
    is_paused: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    statistics: dict[tuple[str, str], Statistic] = field(default_factory=dict)
    used_before: int = -1
    end: int = 0
    written: float = 0.0
    lock: Any = field(default_factory=Lock)


_state = _State()


def settings() -> Settings:
    """What `configure` set."""
    return _state.settings


def configure(chosen: Settings) -> None:
    """Record as `chosen` says from now on. With another file name, events that are in no file yet go to the new one."""
    engine.waitall()
    with _state.lock:
        if chosen.filename != _state.settings.filename:
            _state.end = 0
        _state.settings = chosen
    _install()


def is_active() -> bool:
    """Whether events are recorded now."""
    return _state.is_running and not _state.is_paused


def set_running(running: bool) -> None:
    """Start or stop recording; what was pushed before is done, and recorded, first.

    Raises FileAccessError when the file that is to be written while running cannot be.
    """
    engine.waitall()
    with _state.lock:
        if running and not _state.is_running and _state.settings.continuous_dump:
            _write()
        _state.is_running = running
    _install()


def set_paused(paused: bool) -> None:
    """Interrupt recording, or go on with it."""
    engine.waitall()
    _state.is_paused = paused
    _install()


def _install() -> None:
    """Set the variables that the engine and plans look at."""
    chosen = _state.settings
    active = is_active()
    engine.observer = observe if active and (chosen.profile_all or chosen.profile_imperative or
                                             chosen.profile_memory) else None
    runner.observer = _record_kernel if active and (chosen.profile_all or chosen.profile_symbolic) else None


@contextlib.contextmanager
def watching_kernels(watch: runner.Observer) -> Iterator[None]:
    """While the block runs, `watch` is told of each kernel and host step too; see `runner.observer`."""
    before = runner.observer

    def both(step: Step, layers: list[str], moved: int, start: int, end: int) -> None:
        watch(step, layers, moved, start, end)
        if before is not None:
            before(step, layers, moved, start, end)

    engine.waitall()
    runner.observer = both
    try:
        yield
    finally:
        engine.waitall()
        runner.observer = before


def observe(name: str, start: int, end: int) -> None:
    """Record an operation of the engine. start, end: nanoseconds of time.perf_counter_ns."""
    chosen = _state.settings
    if chosen.profile_all or chosen.profile_imperative:
        span(OPERATOR, name, start, end)
    if chosen.profile_all or chosen.profile_memory:
        used = storage.statistics.used
        if used != _state.used_before:
            _state.used_before = used
            value(MEMORY, "Memory: cpu", used, end)


def _record_kernel(step: Step, layers: list[str], moved: int, start: int, end: int) -> None:
    """Record a kernel or host step of a plan, which read and wrote `moved` bytes. layers: that it came from."""
    facts: dict[str, Any] = {"layers": layers, "phase": step.phase, "bytes": moved, "units": step.units}
    if step.flops:
        facts["flops"] = step.flops
    span(KERNEL, step.label, start, end, facts)


def span(category: str, name: str, start: int, end: int, facts: dict[str, Any] | None = None) -> None:
    """Record something that took from `start` to `end`, nanoseconds of time.perf_counter_ns."""
    event = {"name": name, "cat": category, "ph": "X", "ts": _time(start), "dur": (end - start) / 1e3}
    _add(event if facts is None else event | {"args": facts}, (end - start) / 1e6, False)


def value(category: str, name: str, number: float, now: int | None = None) -> None:
    """Record that a counter has the value `number`; now: nanoseconds of time.perf_counter_ns."""
    when = time.perf_counter_ns() if now is None else now
    _add({"name": name, "cat": category, "ph": "C", "ts": _time(when), "args": {name: number}}, number, True)


def instant(category: str, name: str, scope: str) -> None:
    """Record a moment. scope: "g", "p" or "t": all, the process's or the thread's row."""
    _add({"name": name, "cat": category, "ph": "i", "ts": _time(time.perf_counter_ns()), "s": scope}, 0, False)


def _time(nanoseconds: int) -> float:
    """Microseconds since 1970."""
    return (nanoseconds + _EPOCH) / 1e3


def _add(event: dict[str, Any], amount: float, is_value: bool) -> None:
    thread, process = threading.get_ident(), os.getpid()
    with _state.lock:
        if thread not in _state.threads:
            _state.threads.add(thread)
            _state.events.append(_named("thread_name", thread, threading.current_thread().name))
        _state.events.append(event | {"pid": process, "tid": thread})
        if _state.settings.aggregate_stats:
            key = event["cat"], event["name"]
            _state.statistics.setdefault(key, Statistic(is_value)).add(amount)
        chosen = _state.settings
        if chosen.continuous_dump and time.monotonic() - _state.written > chosen.dump_period:
            with contextlib.suppress(FileAccessError):  # `dump` will tell: it is no fault of the work that is recorded
                _write()


def _named(kind: str, thread: int, name: str) -> dict[str, Any]:
    """The event that names this process or a thread."""
    return {"name": kind, "ph": "M", "pid": os.getpid(), "tid": thread, "args": {"name": name}}


def dump(finished: bool) -> None:
    """Write the file. finished: recording stops, and the next one starts a new file.

    Raises FileAccessError when it cannot be written.
    """
    engine.waitall()
    if finished:
        set_running(False)
    with _state.lock:
        _write()
        if finished:
            _state.end, _state.threads = 0, set()


def _write() -> None:
    """Add the events to the file, which is whole after each time, also where there is no room for them. With the lock
    held."""
    from mxc.runtime.whole_file import replacing  # only now: a start does not pay for it

    _state.written = time.monotonic()
    path = _state.settings.filename
    text = "".join(f",\n{json.dumps(event)}" for event in _state.events).encode()
    if not _state.end:
        head = f'{{"displayTimeUnit": "ms", "traceEvents": [\n{json.dumps(_named("process_name", 0, "mxc"))}'
        text = head.encode() + text
        with replacing(path) as file:
            file.write(text + _TAIL)
    else:
        try:
            with open(path, "r+b", buffering=0) as file:
                try:
                    _put(file, _state.end, text + _TAIL)
                except OSError:
                    _put(file, _state.end, _TAIL)  # where it was
                    file.truncate()
                    raise
        except OSError as error:
            raise FileAccessError(path, "written", error) from None
    _state.end, _state.events = _state.end + len(text), []


def _put(file: io.FileIO, place: int, data: bytes) -> None:
    """Write all of `data` at a place of a file without a buffer."""
    file.seek(place)
    while data:
        data = data[file.write(data):]


def _forget() -> None:
    """A forked child does not record: the file is its parent's."""
    global _state
    _state = _State(settings=_state.settings)
    _install()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def statistics(reset: bool) -> dict[str, dict[str, Statistic]]:
    """What was recorded with aggregate_stats, by category and name. reset: begin anew."""
    engine.waitall()
    found: dict[str, dict[str, Statistic]] = {}
    with _state.lock:
        for (category, name), statistic in sorted(_state.statistics.items()):
            found.setdefault(category, {})[name] = statistic
        if reset:
            _state.statistics = {}
    return found
