"""MXNet's `mx.profiler`: where a program's time and memory go, as a Chrome trace and as a table (docs/profiling.md)."""
from __future__ import annotations

import dataclasses
import json
import time
import warnings
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, nearest
from mxc.runtime import profiler
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {
    "": "ctypes warnings", "mxc.base": "KVStoreHandle ProfileHandle _LIB c_str c_str_array check_call py_str"})
__all__ = ["Counter", "Domain", "Event", "Frame", "Marker", "Task", "dump", "dump_profile", "dumps", "pause",
           "profiler_set_config", "profiler_set_state", "resume", "set_config", "set_state", *_names]

_STATES = ("stop", "run")
_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}
_SORTED_BY = {"total": "total", "avg": "average", "min": "least", "max": "most", "count": "count"}


# -- control

def set_config(**kwargs: Any) -> None:
    """Say what is recorded, before `set_state("run")`.

    filename: of the trace ("profile.json"). profile_symbolic: the kernels of executors. profile_imperative: the
    operations that programs call one by one, and the executors' runs. profile_memory: bytes in use. profile_all: all of
    these. aggregate_stats (False): keep the table of `dumps`. continuous_dump, dump_period: write the file every so
    many seconds while running. profile_api, profile_process: accepted; there is no C API and no server.
    What is not given keeps its default. Raises MXNetError for an unknown name or a value of a wrong type.
    """
    known = {f.name: f for f in dataclasses.fields(profiler.Settings)}
    chosen = profiler.Settings()
    for name, value in kwargs.items():
        if name not in known:
            raise ArgumentTypeError(f"set_config: no setting {name!r}; there are {', '.join(known)}"
                                    f"{nearest(name, known)}")
        setattr(chosen, name, _setting(name, value, type(getattr(chosen, name))))
    _require_worker(chosen.profile_process)
    profiler.configure(chosen)


def _setting(name: str, value: Any, kind: type) -> Any:
    if kind is bool and str(value).lower() in ("true", "false", "1", "0"):
        return str(value).lower() in ("true", "1")
    if kind is float and isinstance(value, (int, float)) and value > 0:
        return float(value)
    if kind is str and isinstance(value, str):
        return value
    raise ArgumentError(f"set_config: {name} must be a {'positive number' if kind is float else kind.__name__}, "
                        f"got {value!r}")


def _require_worker(process: str) -> None:
    if process != "worker":
        raise MXNetError(f"profile_process is {process!r}: only this process can be profiled ('worker')")


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start ("run") or stop recording. Raises ArgumentError, a ValueError, for another state."""
    if state not in _STATES:
        raise ArgumentError(f"the profiler's state must be one of {', '.join(_STATES)}, not {state!r}")
    _require_worker(profile_process)
    profiler.set_running(state == "run")


def pause(profile_process: str = "worker") -> None:
    """Interrupt recording, until `resume`."""
    _require_worker(profile_process)
    profiler.set_paused(True)


def resume(profile_process: str = "worker") -> None:
    """Go on with what `pause` interrupted."""
    _require_worker(profile_process)
    profiler.set_paused(False)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write what was recorded to the file, which chrome://tracing and Perfetto show.

    finished: recording stops, and the next one begins anew. Raises MXNetError when the file cannot be written.
    """
    _require_worker(profile_process)
    profiler.dump(finished)


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """How often each thing happened and how long it took, as a text; "" unless set_config had aggregate_stats=True.

    reset: forget it then. format: "table" or "json". sort_by: "total", "avg", "min", "max" or "count".
    Raises AssertionError for other values.
    """
    for name, value, values in (("format", format, ("table", "json")), ("sort_by", sort_by, tuple(_SORTED_BY)),
                                ("ascending", ascending, (False, True))):
        if value not in values:
            raise AssertionError(f"Invalid value provided for {name}: {value}. Support: {', '.join(map(str, values))}")
    found = profiler.statistics(reset)
    if not found and not profiler.settings().aggregate_stats:
        return ""
    ordered = {category: dict(sorted(group.items(), key=lambda item: getattr(item[1], _SORTED_BY[sort_by]),
                                     reverse=not ascending)) for category, group in found.items()}
    return _as_table(ordered) if format == "table" else _as_json(ordered)


def _as_table(found: dict[str, dict[str, profiler.Statistic]]) -> str:
    lines = ["", "Profile Statistics:", "\tNote the difference in units for different entries."]
    for category, group in found.items():
        unit = _unit(category)
        heads = ("Total Count", *(f"{word} ({unit})" for word in ("Total", "Min", "Max", "Avg")))
        lines += [category, "=" * 17, f"{'Name':<40}" + "".join(f"{head:>17}" for head in heads),
                  f"{'----':<40}" + "".join(f"{'-' * len(head):>17}" for head in heads)]
        for name, s in group.items():
            numbers = (s.total, s.least, s.most, s.average)
            shown = "".join(f"{number / _scale(category):>17.4f}" for number in numbers)
            lines.append(f"{name:<40}{s.count:>17}{shown}")
        lines.append("")
    return "\n".join(lines) + "\n"


def _as_json(found: dict[str, dict[str, profiler.Statistic]]) -> str:
    parts: dict[str, Any] = {"Time": {}, "Memory": {}, "Value": {}}
    for category, group in found.items():
        for name, s in group.items():
            part = "Memory" if category == profiler.MEMORY else "Value" if s.is_value else "Time"
            numbers = {"Total": s.total, "Min": s.least, "Max": s.most, "Avg": s.average}
            parts[part].setdefault(category, {})[name] = {
                "Count": s.count, **{key: number / _scale(category) for key, number in numbers.items()}}
    return json.dumps({**parts, "Unit": {"Time": "ms", "Memory": "kB"}}, indent=4)


def _unit(category: str) -> str:
    return "kB" if category == profiler.MEMORY else "value" if category.endswith(",counter") else "ms"


def _scale(category: str) -> float:
    return 1000 if category == profiler.MEMORY else 1


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """`set_config` as it was called before. mode: "symbolic", "imperative", "api", "memory" or "all". Warns of it."""
    warnings.warn("profiler_set_config is deprecated, use set_config instead", DeprecationWarning, stacklevel=2)
    kinds = ("symbolic", "imperative", "api", "memory")
    if mode not in (*kinds, "all"):
        raise ArgumentError(f"the profiler's mode must be one of {', '.join(kinds)}, all, not {mode!r}")
    set_config(filename=filename, **{f"profile_{kind}": mode in (kind, "all") for kind in kinds})


def profiler_set_state(state: str = "stop") -> None:
    """`set_state` as it was called before. Warns of it."""
    warnings.warn("profiler_set_state is deprecated, use set_state instead", DeprecationWarning, stacklevel=2)
    set_state(state)


def dump_profile() -> None:
    """`dump` as it was called before. Warns of it."""
    warnings.warn("dump_profile is deprecated, use dump instead", DeprecationWarning, stacklevel=2)
    dump(True)


# -- a program's own events

class Domain:
    """A group of a program's own events: a category of the trace."""

    def __init__(self, name: str):
        self.name = str(name)

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """A counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A marker of this domain."""
        return Marker(self, name)


class _Span:
    """Something that takes from `start` to `stop`, and may do so again. Recorded when it stops while the profiler
    runs."""

    def __init__(self, category: str, name: str):
        self.name, self._category = str(name), category
        self._started: int | None = None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """It begins now."""
        self._started = time.perf_counter_ns()

    def stop(self) -> None:
        """It ends now; nothing happens when it has not begun."""
        if self._started is not None and profiler.is_active():
            profiler.span(self._category, self.name, self._started, time.perf_counter_ns())
        self._started = None


class Task(_Span):
    """A piece of work of a domain."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(_category(domain), name)


class Frame(_Span):
    """A step that a program does again and again, as an epoch or a picture."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(_category(domain, ",frame"), name)


class Event(_Span):
    """A piece of work without a domain."""

    def __init__(self, name: str):
        super().__init__("event", name)


class Counter:
    """A number of a domain that changes; recorded at every change while the profiler runs."""

    def __init__(self, domain: Domain, name: str, value: int | None = None):
        self.name, self._category = str(name), _category(domain, ",counter")
        self.value = 0
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: int) -> None:
        """Make it `value`, of which the whole part counts. Raises ArgumentTypeError, a TypeError, for what is no
        number."""
        try:
            self.value = int(value)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentTypeError(f"counter {self.name}: expected a whole number, got {value!r}") from None
        if profiler.is_active():
            profiler.value(self._category, self.name, self.value)

    def increment(self, delta: int = 1) -> None:
        """Add `delta`."""
        self.set_value(self.value + delta)

    def decrement(self, delta: int = 1) -> None:
        """Take `delta` away."""
        self.set_value(self.value - delta)

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self


class Marker:
    """A moment of a domain."""

    def __init__(self, domain: Domain, name: str):
        self.name, self._category = str(name), _category(domain, ",instant_marker")

    def mark(self, scope: str = "process") -> None:
        """It is now. scope: "global", "process", "thread", "task" or "marker": how far the trace's mark reaches.

        Raises ArgumentError, a ValueError, for another one.
        """
        if scope not in _SCOPES:
            raise ArgumentError(f"Invalid Input: '{scope}', valid values are: {', '.join(_SCOPES)}")
        if profiler.is_active():
            profiler.instant(self._category, self.name, _SCOPES[scope])


def _category(domain: Domain, kind: str = "") -> str:
    if not isinstance(domain, Domain):
        raise ArgumentTypeError(f"expected a Domain, got {type(domain)}")
    return f"{domain.name}{kind}"
