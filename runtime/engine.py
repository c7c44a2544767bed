"""The engine: every piece of work on arrays goes through `push`, which names what it reads and what it writes.

Work runs in program order for each variable: after the writes pushed before to what it reads, and after all work pushed
before on what it writes. Small work whose variables are free runs at once in the caller's thread, without a thread's
hand-over; other work is queued, and a few worker threads run what is ready. Whoever waits works too. Under the name
`NaiveEngine` in MXNET_ENGINE_TYPE nothing is queued.

An error in queued work stays with every variable that it should have written, and with what depends on one: each wait
on it raises, until it is overwritten. An error in work that runs in the caller is raised at the call, and the variables
stay as they are. Work inside of work (what a piece of work itself pushes) runs at once as a part of it; it waits for
what was pushed before that piece, and never for what was pushed behind.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from mxc.compiler import env, forks  # noqa: F401 (forks: its part of a fork comes after the engine's)
from mxc.compiler.error import MXNetError, OutOfMemoryError

# What is told of each piece of work: its name, start and end in nanoseconds of time.perf_counter_ns. The profiler's.
observer: Callable[[str, int, int], None] | None = None

WORKERS = 2  # kernels have threads of their own: these only keep independent work going
MOST_PENDING = 256  # beyond, a caller works instead of queueing: what is queued keeps its arrays alive
MOST_LARGE = 8  # the same for work that is not small


class Variable:
    """The engine's view of one allocation: what orders work on it and tells whether it has changed.

    version: counts finished writes. volatile: the memory was handed out without a copy, so it may change unseen: work
    on it is done when `push` returns. busy: the pending work and the failure of the last; None when there is none.
    """

    __slots__ = ("busy", "version", "volatile")

    def __init__(self, volatile: bool = False):
        self.version, self.volatile = 0, volatile
        self.busy: _Busy | None = None


class _Busy:
    """writer: the last pending work that writes. readers: pending work that reads since. failure: what went wrong in
    the last write that is done."""

    __slots__ = ("failure", "readers", "writer")

    def __init__(self) -> None:
        self.writer: _Work | None = None
        self.readers: list[_Work] = []
        self.failure: _Failure | None = None


class _Failure:
    """An error in queued work. holders: variables that have it. seen: it was raised somewhere."""

    __slots__ = ("error", "holders", "name", "seen")

    def __init__(self, name: str, error: BaseException):
        self.name, self.error, self.holders, self.seen = name, error, 0, False

    def raised(self) -> MXNetError:
        """What to raise, with the engine's lock held."""
        self.seen = True
        _engine.failures.pop(self, None)
        kind = OutOfMemoryError if isinstance(self.error, (OutOfMemoryError, MemoryError)) else MXNetError
        what = str(self.error) or type(self.error).__name__
        if not isinstance(self.error, Exception):
            what = f"it was interrupted by {what}"
        made = kind(f"operation {self.name}: {what}")
        made.__cause__ = self.error
        return made


class _Work:
    """A queued piece of work. number: its place in the program's order. missing: how many others it waits for.
    followers: those that wait for it."""

    __slots__ = ("followers", "is_done", "missing", "name", "number", "reads", "run", "small", "writes")

    def __init__(self, run: Callable[[], None] | None, reads: Sequence[Variable], writes: Sequence[Variable], name: str,
                 small: bool):
        self.run, self.reads, self.writes, self.name, self.small = run, reads, writes, name, small
        self.number, self.missing, self.is_done = 0, 0, False
        self.followers: list[_Work] = []


class _Engine:
    """The state of the process's engine; everything in it is used with `lock` held. pending: pieces that are not done,
    in the program's order. pushed: how many there ever were. failures: those that nobody has seen."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.work, self.done = threading.Condition(self.lock), threading.Condition(self.lock)
        self.ready: deque[_Work] = deque()
        self.pending: dict[_Work, None] = {}
        self.pushed = self.large = self.idle = self.held = 0
        self.workers: list[threading.Thread] = []
        self.failures: dict[_Failure, None] = {}
        self.naive = env.text("MXNET_ENGINE_TYPE") == "NaiveEngine"
        self.closed = False


class _Thread(threading.local):
    """work: the pieces of work that this thread is in the middle of."""

    def __init__(self) -> None:
        self.work: list[_Work] = []


_engine = _Engine()
_thread = _Thread()


def push(work: Callable[[], None], reads: Sequence[Variable], writes: Sequence[Variable], name: str = "copy",
         small: bool = True) -> None:
    """Run `work`, which reads and writes the memory of those variables, now or as soon as they are free.

    Every written variable gets a new version when it is done, also when it failed: a part may be written then.
    name: for people. small: it takes less than a thread's hand-over, so it runs here when nothing is in its way, and
    what it raises is raised here. `work` must not read its variables by `Array.data` of arrays that it does not name.
    """
    if _thread.work:
        _run_inside(work, reads, writes)
        return
    state = _engine
    with state.lock:
        _begin(state)
        free, at_once = True, state.naive or state.closed
        for variable in (*reads, *writes):
            free = free and variable.busy is None
            at_once = at_once or variable.volatile
        if small and free:
            _run_here(work, writes, name)
            return
        if not at_once:
            _enqueue(work, reads, writes, name, small)
    if at_once:
        run(work, reads, writes, name)
    elif len(state.pending) > MOST_PENDING or state.large > MOST_LARGE:
        _throttle(state)


def run(work: Callable[[], None], reads: Sequence[Variable], writes: Sequence[Variable], name: str) -> None:
    """As `push`, but done, here, when it returns; what it or what it depends on raises is raised here."""
    if _thread.work:
        _run_inside(work, reads, writes)
        return
    with _engine.lock:
        _begin(_engine)
        if all(v.busy is None for v in (*reads, *writes)):
            piece = _Work(None, reads, writes, name, True)
            _enter(piece)
        else:
            piece = _enqueue(None, reads, writes, name, True)
    try:
        _wait(lambda: piece.missing == 0, piece.number)
    except BaseException:  # interrupted: its place is kept for those behind
        _give_up(piece)
        raise
    is_good = False
    try:
        with _engine.lock:
            failure = _failure_of(reads)
            if failure is not None:
                raise failure.raised()
        _thread.work.append(piece)
        try:
            _run_here(work, (), name)
        finally:
            _thread.work.pop()
        is_good = True
    finally:
        _finish(piece, None, is_good)


def _give_up(piece: _Work) -> None:
    with _engine.lock:
        piece.run = _nothing
        if not piece.missing:
            _engine.ready.append(piece)
            _call_worker()


def _nothing() -> None:
    pass


def wait_to_read(variable: Variable) -> None:
    """Return when all writes pushed so far are done; raises what one of them raised."""
    _settle(variable, False)


def wait_to_write(variable: Variable) -> None:
    """Return when all work on it that was pushed so far is done; raises what a write raised."""
    _settle(variable, True)


def _settle(variable: Variable, also_readers: bool) -> None:
    if variable.busy is None:
        return
    limit = _limit()
    with _engine.lock:
        busy = variable.busy
        if busy is None:
            return
        if limit is None:
            last = [busy.writer] if busy.writer is not None else []
            last += busy.readers if also_readers else []
        else:
            last = [p for p in _engine.pending
                    if p.number < limit and (variable in p.writes or (also_readers and variable in p.reads))]
    _wait(lambda: all(piece.is_done for piece in last), limit)
    with _engine.lock:
        failure = _failure_of((variable,))
        if failure is not None:
            raise failure.raised()


def _limit() -> int | None:
    """The number of the piece of work that this thread is in the middle of."""
    return _thread.work[-1].number if _thread.work else None


def waitall() -> None:
    """Return when everything pushed so far is done. Raises an error that nobody has seen yet: all of them count as seen
    then, but stay with what they should have written."""
    if _thread.work:  # a part of this work is done when it is pushed
        return
    state = _engine
    _wait(lambda: not state.pending)
    with state.lock:
        raised = [failure.raised() for failure in list(state.failures)]
    if raised:
        raise raised[0]


def _run_here(work: Callable[[], None], writes: Sequence[Variable], name: str) -> None:
    told = observer
    start = time.perf_counter_ns() if told is not None else 0
    try:
        work()
    finally:
        if told is not None:
            told(name, start, time.perf_counter_ns())
        for variable in writes:
            variable.version += 1


def _run_inside(work: Callable[[], None], reads: Sequence[Variable], writes: Sequence[Variable]) -> None:
    """Work that belongs to the work that this thread is in the middle of."""
    for variable in reads:
        wait_to_read(variable)
    for variable in writes:
        wait_to_write(variable)
    try:
        work()
    finally:
        for variable in writes:
            variable.version += 1


def _enqueue(work: Callable[[], None] | None, reads: Sequence[Variable], writes: Sequence[Variable], name: str,
             small: bool) -> _Work:
    """Put work behind what it depends on. Without `work` its place is only kept: the caller runs it in its turn."""
    piece = _Work(work, reads, writes, name, small)
    before: set[_Work] = set()
    for variable in reads:
        if variable.busy is not None and variable.busy.writer is not None:
            before.add(variable.busy.writer)
    for variable in writes:
        if variable.busy is not None:
            before.update(variable.busy.readers)
            if variable.busy.writer is not None:
                before.add(variable.busy.writer)
    piece.missing = len(before)
    for other in before:
        other.followers.append(piece)
    _enter(piece)
    if work is not None and not before:
        _engine.ready.append(piece)
        _call_worker()
    return piece


def _enter(piece: _Work) -> None:
    """Note on the variables that `piece` is pending."""
    for variable in piece.reads:
        busy = variable.busy = variable.busy or _Busy()
        busy.readers.append(piece)
    for variable in piece.writes:
        busy = variable.busy = variable.busy or _Busy()
        busy.writer, busy.readers = piece, []
    _engine.pushed += 1
    piece.number = _engine.pushed
    _engine.pending[piece] = None
    _engine.large += not piece.small


def _call_worker() -> None:
    state = _engine
    if state.idle:
        state.idle -= 1  # here, not where it wakes: the next piece needs another one
        state.work.notify()
    elif len(state.workers) < WORKERS and not state.closed:
        thread = threading.Thread(target=_serve, args=(state,), name=f"mxc-engine-{len(state.workers)}", daemon=True)
        with contextlib.suppress(RuntimeError):  # no more threads: whoever waits works
            thread.start()
            state.workers.append(thread)


def _serve(state: _Engine) -> None:
    """What a worker thread does."""
    while True:
        with state.lock:
            while not state.ready:
                if state.closed:
                    return
                state.idle += 1
                state.work.wait()
            piece = state.ready.popleft()
        with contextlib.suppress(BaseException):  # what a thread of a program's would end with; it is noted
            _execute(piece)


def _execute(piece: _Work) -> None:
    """Run a piece of queued work whose turn has come; when what it reads failed it fails in the same way."""
    with _engine.lock:
        failure = _failure_of(piece.reads)
    interrupt = None
    if failure is None:
        _thread.work.append(piece)
        try:
            assert piece.run is not None
            _run_here(piece.run, (), piece.name)
        except Exception as error:
            failure = _Failure(piece.name, error)
        except BaseException as error:  # of the thread that waits, not of the work
            failure, interrupt = _Failure(piece.name, error), error
        finally:
            _thread.work.pop()
    _finish(piece, failure, piece.run is not _nothing)
    if interrupt is not None:
        raise interrupt


def _finish(piece: _Work, failure: _Failure | None, has_written: bool = True) -> None:
    """Note that it is done. has_written: what failed before on what it writes is gone."""
    state = _engine
    with state.lock:
        piece.is_done, piece.run = True, None
        for variable in piece.writes:
            variable.version += 1
            if has_written:
                _forget_failure(variable)
            if failure is not None and variable.busy is not None:
                variable.busy.failure = failure
                failure.holders += 1
        if failure is not None and failure.holders and not failure.seen:
            state.failures[failure] = None
        for variable in (*piece.reads, *piece.writes):
            busy = variable.busy
            if busy is not None:
                if busy.writer is piece:
                    busy.writer = None
                if piece in busy.readers:
                    busy.readers.remove(piece)
                if busy.writer is None and not busy.readers and busy.failure is None:
                    variable.busy = None
        for other in piece.followers:
            other.missing -= 1
            if not other.missing and other.run is not None:
                state.ready.append(other)
                _call_worker()
        piece.followers = []
        state.pending.pop(piece, None)
        state.large -= not piece.small
        state.done.notify_all()


def _failure_of(variables: Sequence[Variable]) -> _Failure | None:
    return next((v.busy.failure for v in variables if v.busy is not None and v.busy.failure is not None), None)


def _forget_failure(variable: Variable) -> None:
    """Take a variable's failure from it. Nobody's failure is forgotten."""
    busy = variable.busy
    if busy is None or busy.failure is None:
        return
    failure, busy.failure = busy.failure, None
    failure.holders -= 1
    if not failure.holders:
        _engine.failures.pop(failure, None)


def _wait(is_over: Callable[[], bool], limit: int | None = None) -> None:
    """Return when `is_over()`; meanwhile run what is ready.

    limit: only pieces of smaller numbers. Whoever keeps others waiting runs nothing that may wait for what it keeps, so
    the pending piece of the smallest number can always go on.
    """
    state = _engine
    while True:
        with state.lock:
            while True:
                if is_over():
                    return
                piece = next((p for p in state.ready if limit is None or p.number < limit), None)
                if piece is not None:
                    break
                state.done.wait()
            state.ready.remove(piece)
        _execute(piece)


def _throttle(state: _Engine) -> None:
    _wait(lambda: len(state.pending) <= MOST_PENDING and state.large <= MOST_LARGE)


def _drain() -> None:
    """Before the process forks or ends: nothing is pending, whatever failed."""
    if not _thread.work:
        state = _engine
        _wait(lambda: not state.pending)


def _close() -> None:
    """At exit: what is queued is done, quietly, and no worker runs while the interpreter goes."""
    with _engine.lock:
        _engine.held += 1
    _drain()
    with _engine.lock:
        _engine.closed = True
        _engine.held -= 1
        _engine.work.notify_all()
        _engine.done.notify_all()
    for thread in _engine.workers:
        thread.join()


def _begin(state: _Engine) -> None:
    """Return when new work may begin: none does while a thread is about to fork or to end the process, which others
    that keep pushing would never let it do."""
    while state.held:
        state.done.wait()


def _before_fork() -> None:
    with _engine.lock:
        _engine.held += 1
    _drain()
    _engine.lock.acquire()


def _after_fork_in_parent() -> None:
    _engine.held -= 1
    _engine.done.notify_all()
    _engine.lock.release()


def _after_fork() -> None:
    """A forked child has none of the workers: it starts its own."""
    global _engine
    _engine = _Engine()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
