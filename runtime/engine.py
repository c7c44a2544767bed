"""The engine of the runtime: all work on arrays goes through `push`, which names what it reads and what it writes.

Work runs in program order for each variable: after the writes pushed before to what it reads, and after all work pushed
before on what it writes. Small work whose variables are free runs at once in the caller's thread, without a thread's
hand-over, and so do runs of executors that take a millisecond or two; other work is queued, and a few worker threads
run what is ready. Whoever waits works too. Under the name `NaiveEngine` in MXNET_ENGINE_TYPE nothing is queued.

An error stays with every variable that the work should have written, and with what depends on one: each wait on it
raises, until it is overwritten. It is raised at the call instead, and the variables stay as they are, of work that the
caller must do itself, that writes nothing, or without a queue. Work inside of work (what a piece of work itself pushes)
runs at once as a part of it; it waits for what was pushed before that piece, and never for what was pushed behind.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from mxc.compiler.system import env, forks  # noqa: F401 (forks: its part of a fork comes after the engine's)
from mxc.runtime.engine_work import Busy, Failure, Variable, Work, failure_of, let_go, note, raised, unseen

# What is told of each piece of work: its name, start and end in nanoseconds of time.perf_counter_ns. The profiler's.
observer: Callable[[str, int, int], None] | None = None

# Seconds. A worker has Python's lock so long after it was called, at the latest, and often no sooner: the caller has
# done by then what takes less. Work that is briefer yet, `small`, is done with the engine's lock held.
BRIEF = 0.0025
WORKERS = 2  # kernels have threads of their own: these only keep independent work going
MOST_PENDING = 256  # beyond, a caller works instead of queueing: what is queued keeps its arrays alive
MOST_LARGE = 8  # the same for work that is not small


class _Engine:
    """The state of the process's engine; everything in it is used with `lock` held. pending: pieces that are not done,
    in the program's order. pushed: how many there ever were."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.work, self.done = threading.Condition(self.lock), threading.Condition(self.lock)
        self.ready: deque[Work] = deque()
        self.pending: dict[Work, None] = {}
        self.pushed = self.large = self.idle = self.held = 0
        self.workers: list[threading.Thread] = []
        self.naive = env.text("MXNET_ENGINE_TYPE") == "NaiveEngine"
        self.closed = False


class _Thread(threading.local):
    """work: the pieces of work that this thread is in the middle of."""

    def __init__(self) -> None:
        self.work: list[Work] = []


_engine = _Engine()
_thread = _Thread()
Placed = Work | None  # what is left of work that is placed; None: nothing


def push(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str = "copy",
         small: bool = True) -> None:
    """Run `work`, which reads and writes the memory of those variables, now or as soon as they are free.

    Every written variable gets a new version when it is done, also when it failed: a part may be written then.
    name: for people. small: it takes less than a thread's hand-over, so it runs here when nothing is in its way. What
    it raises comes where what it writes is waited for. `work` must not read its variables by `Array.data` of arrays
    that it does not name.
    """
    is_inside()
    piece = place(work, reads, writes, name, small)
    if piece is not None or _engine.pending:
        complete((piece,))


def run(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str) -> None:
    """As `push`, but done, here, when it returns; what it or what it depends on raises is raised here."""
    is_inside()
    complete((place(work, reads, writes, name, False, is_queued=False),))


def is_inside() -> bool:
    """Whether the caller is in the middle of a piece of work, so that what it pushes is a part of that. If not, it
    returns when new work may begin: none does while a thread is about to fork or to end the process, which others that
    keep pushing would never let it do."""
    if _thread.work:
        return True
    if _engine.held:
        with _engine.lock:
            while _engine.held:
                _engine.done.wait()
    return False


def place(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str, small: bool,
          turn: AbstractContextManager | None = None, is_queued: bool = True, brief: bool = False) -> Placed:
    """The part of `push` that waits for nothing, for a caller who holds a lock that pending work may want: `work` has
    its place in the program's order, or is done. Without that lock `complete` must be called with the result.

    Call `is_inside` before. turn: held while `work` runs, unless it runs in this call. is_queued: False for work that
    the caller itself must do. brief: it takes less than BRIEF, so it is done here when nothing is in its way.
    """
    if _thread.work:
        _run_inside(work, reads, writes)
        return None
    state = _engine
    piece: Placed = None
    try:
        with state.lock:
            if (small or brief) and _are_free(reads, writes):
                if small:
                    try:
                        _run_here(work, writes, name)
                    except Exception as error:
                        if state.naive or not writes or not is_queued:
                            raise
                        note(Failure(name, error), writes)
                    return None
                piece = Work(work, reads, writes, name, True, is_queued=False, raises=state.naive)
                _enter(piece)
            else:
                now = (not is_queued or state.naive or state.closed or True in [v.volatile for v in reads]
                       or True in [v.volatile for v in writes])
                call = work if turn is None else partial(_in_turn, turn, work)
                raises = not is_queued or state.naive or not writes
                piece = Work(call, reads, writes, name, small or now, is_queued=not now, raises=raises)
                _enter(piece)
                return piece if now else None
        _run_placed(piece)
    except BaseException:
        if piece is not None:
            _give_up(piece)
        raise
    return None


def _are_free(reads: Collection[Variable], writes: Sequence[Variable]) -> bool:
    """Whether nothing is in the way of work on these, nor has what it reads failed, with the engine's lock held."""
    for variable in reads:
        if variable.busy is not None:
            return False
    for variable in writes:  # noqa: SIM110  a loop takes half the time
        if variable.busy is not None or (variable.is_read and _readers(variable)):
            return False
    return True


def complete(placed: Iterable[Placed]) -> None:
    """Do what is left of what `place` gave, in this order; when the caller is ahead by far, work for a while."""
    state = _engine
    if not state.pending or _thread.work:  # inside of work all is done
        return
    left = [piece for piece in placed if piece is not None]
    try:
        while left:
            _run_placed(left[0])
            del left[0]
    finally:
        for piece in left:
            _give_up(piece)
    if len(state.pending) > MOST_PENDING or state.large > MOST_LARGE:
        _wait(lambda: len(state.pending) <= MOST_PENDING and state.large <= MOST_LARGE)


def _in_turn(turn: AbstractContextManager, work: Callable[[], None]) -> None:
    with turn:
        work()


def _run_placed(piece: Work) -> None:
    """Run a piece that is not queued, in its turn. After an error the caller gives it up: its place is kept for those
    behind."""
    if piece.missing:
        _wait(lambda: piece.missing == 0, piece.number)
    is_over, failure = False, failure_of(piece.reads)  # without the lock: only writes change it, which are behind this
    try:
        if failure is None:
            _thread.work.append(piece)
            try:
                _run_here(piece.call, (), piece.name)
            except Exception as error:
                if piece.raises:
                    raise
                failure = Failure(piece.name, error)
            finally:
                _thread.work.pop()
        elif piece.raises:
            with _engine.lock:
                raise raised(failure)
        is_over = True
    finally:
        _finish(piece, failure if is_over else None, is_over)


def _give_up(piece: Work) -> None:
    """After an error in the caller: when that was an interrupt, which may come between any two steps of the engine's
    own, a piece that is not queued may never be noted as done. A worker then does that, where no interrupt comes."""
    _thread.work.clear()
    with _engine.lock:
        if piece in _engine.pending and not piece.is_queued:
            piece.call, piece.is_queued = _nothing, True
            if not piece.missing:
                _engine.ready.append(piece)
                _call_worker()
        _engine.done.notify_all()


def _nothing() -> None:
    pass


def fail(name: str, error: Exception, writes: Sequence[Variable]) -> None:
    """An error of work that was done without the engine: it stays with these, as that of a piece of work does. Without
    a queue it is raised here."""
    with _engine.lock:
        if _engine.naive:
            raise error
        note(Failure(name, error), writes)


def settle(variables: Iterable[Variable]) -> None:
    """Return when work on these, pushed now, need not wait. For who is inside of work: what was pushed behind that work
    does not count, so this stays true."""
    for variable in variables:
        _settle(variable, True, raises=False)


def wait_to_read(variable: Variable) -> None:
    """Return when all writes pushed so far are done; raises what one of them raised."""
    _settle(variable, False)


def wait_to_write(variable: Variable) -> None:
    """Return when all work on it that was pushed so far is done; raises what a write raised."""
    _settle(variable, True)


def _settle(variable: Variable, also_readers: bool, raises: bool = True) -> None:
    if variable.busy is None and not (also_readers and variable.is_read):
        return
    limit = _limit()
    with _engine.lock:
        if limit is not None:
            last = [p for p in _engine.pending
                    if p.number < limit and (variable in p.writes or (also_readers and variable in p.reads))]
        else:
            last = _readers(variable) if also_readers else []
            if variable.busy is not None and variable.busy.writer is not None:
                last.append(variable.busy.writer)
    if last:
        _wait(lambda: all(piece.is_done for piece in last), limit)
    if raises and variable.busy is not None:
        with _engine.lock:
            failure = failure_of((variable,))
            if failure is not None:
                raise raised(failure)


def is_free(variable: Variable) -> bool:
    """Whether `wait_to_write` would return at once, and raise nothing."""
    with _engine.lock:
        return variable.busy is None and not _readers(variable)


def _readers(variable: Variable) -> list[Work]:
    """The pending work that reads it and that no pending write of it is behind, with the engine's lock held."""
    if not variable.is_read:
        return []
    found = [piece for piece in _engine.pending if variable in piece.reads]
    variable.is_read = bool(found)
    return found


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
        errors = [raised(failure) for failure in list(unseen)]
    if errors:
        raise errors[0]


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


def _run_inside(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable]) -> None:
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


def _enter(piece: Work) -> None:
    """Put work behind what it depends on, with the engine's lock held. It is pending before anything refers to it, and
    its number of others and their followers change without a call between, so that `_give_up` finds them right."""
    state, reads, writes = _engine, piece.reads, piece.writes
    before = {v.busy.writer for v in (*reads, *writes) if v.busy is not None and v.busy.writer is not None}
    for variable in writes:
        if variable.is_read:
            before.update(_readers(variable))
    state.pushed += 1
    piece.number = state.pushed
    state.large += not piece.small
    state.pending[piece] = None
    for other in before:
        piece.missing += 1
        other.followers += [piece]
    for variable in reads:
        variable.is_read = True
    for variable in writes:
        busy = variable.busy = variable.busy or Busy()
        busy.writer, variable.is_read = piece, False
    if piece.is_queued and not before:
        state.ready.append(piece)
        _call_worker()


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


def _execute(piece: Work) -> None:
    """Run a piece of queued work whose turn has come; when what it reads failed it fails in the same way."""
    with _engine.lock:
        failure = failure_of(piece.reads)
    interrupt = None
    if failure is None:
        _thread.work.append(piece)
        try:
            _run_here(piece.call, (), piece.name)
        except Exception as error:
            failure = Failure(piece.name, error)
        except BaseException as error:  # of the thread that waits, not of the work
            failure, interrupt = Failure(piece.name, error), error
        finally:
            _thread.work.pop()
    _finish(piece, failure, piece.call is not _nothing)
    if interrupt is not None:
        raise interrupt


def _finish(piece: Work, failure: Failure | None, has_written: bool = True) -> None:
    """Note that it is done. has_written: what failed before on what it writes is gone."""
    state = _engine
    with state.lock:
        piece.is_done, piece.call = True, _nothing
        for variable in piece.writes:
            variable.version += 1
            busy = variable.busy
            if busy is not None:
                if has_written and busy.failure is not None:
                    let_go(busy.failure)
                    busy.failure = None
                if failure is not None:
                    busy.failure = failure
                    failure.holders += 1
                if busy.writer is piece:
                    busy.writer = None
                if busy.writer is None and busy.failure is None:
                    variable.busy = None
        if failure is not None and failure.holders and not failure.seen:
            unseen[failure] = None
        while piece.followers:  # each leaves with its count: an interrupted caller's piece comes here again
            other = piece.followers[0]
            other.missing -= 1
            del piece.followers[0]
            if not other.missing and other.is_queued:
                state.ready.append(other)
                _call_worker()
        state.pending.pop(piece, None)
        state.large -= not piece.small
        state.done.notify_all()


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


def _before_fork() -> None:
    with _engine.lock:
        _engine.held += 1
    _drain()
    _engine.lock.acquire()
    while _engine.pending and not _thread.work:  # of a thread that had begun before
        _engine.lock.release()
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
    unseen.clear()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
