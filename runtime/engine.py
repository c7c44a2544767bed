"""The engine of the runtime: all work on arrays goes through `push`, which names what it reads and what it writes.

Work runs in program order for each variable: a piece of work waits for earlier writes to what it reads, and for all
earlier work on what it writes. Small work whose variables are free runs at once in the caller's thread, without a
hand-over to another thread, and so do runs of executors that take a millisecond or two. Other work is queued, and a few
worker threads run what is ready. Whoever waits works too. With MXNET_ENGINE_TYPE=NaiveEngine nothing is queued.

An error of queued work stays with every variable that the work should have written, and with every variable that later
work computes from one of these: each wait on such a variable raises, until it is written again. An error is raised at
the call instead, and the variables stay as they are, where the caller must do the work itself, where the work writes
nothing, and where nothing is queued. What a piece of work pushes runs at once, as a part of that piece; it waits for
what was pushed before the piece, and never for what was pushed after it.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial

from mxc.compiler.system import forks  # noqa: F401 (its part of a fork comes after the engine's)
from mxc.runtime.engine_queue import Queue
from mxc.runtime.engine_work import Failure, GrowingWork, Variable, Work, failure_of, note, nothing, raised, unseen

# The profiler's: told each piece's name, and its start and end in nanoseconds of time.perf_counter_ns. None: nobody's.
observer: Callable[[str, int, int], None] | None = None
# What `waitall` also waits for, besides the engine's own work: devices, which may not have done what work began there.
beyond: list[Callable[[], None]] = []

# Seconds. A worker that is called gets Python's lock after this time at the latest, and often no sooner, for the caller
# keeps the lock. So the caller does work itself that takes less. Work that takes less than a hand-over (`small`) is
# done with the engine's lock held.
BRIEF = 0.0025
MOST_PENDING = 256  # pieces; a caller that is further ahead works instead of queueing, for the queue keeps arrays alive
MOST_LARGE = 8  # the same limit for pieces that are not small


class _Thread(threading.local):
    """work: the pieces of work that this thread is in the middle of, the innermost last."""

    def __init__(self) -> None:
        self.work: list[Work] = []


_thread = _Thread()
Placed = Work | None  # work that has its place and is still to be completed; None: nothing is left to do


def push(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str = "copy",
         small: bool = True, brief: bool = False) -> None:
    """Run `work`, which reads and writes the memory of those variables, now or as soon as they are free.

    Every written variable gets a new version when the work is done, also when it failed, for a part may be written
    then. name: for people. small: the work takes less than a hand-over to another thread, so it runs here when nothing
    is in its way. brief: see `place`. An error that it raises is raised where a variable that it writes is waited for.
    `work` must not use `Array.data` of arrays whose variables are not among `reads` and `writes`.
    """
    is_inside()
    piece = place(work, reads, writes, name, small, brief=brief)
    if piece is not None or _engine.pending:
        complete((piece,))


def begin(piece: GrowingWork) -> bool:
    """Give work that will grow its place in the program's order. False where all work is done at once: inside of other
    work, while it is observed, and where nothing is queued."""
    state = _engine
    if is_inside() or state.naive or state.closed or observer is not None:
        return False
    with state.lock:
        state.enter_open(piece)
    return True


def extend(piece: GrowingWork, step: object, reads: Collection[Variable], writes: Sequence[Variable]) -> bool:
    """Add a step that reads these variables, and writes those of new arrays, to work that was begun. False, with
    nothing changed, where that runs already, or would have to wait for what the step reads."""
    with _engine.lock:
        return _engine.extend(piece, step, reads, writes)


def release(piece: GrowingWork) -> None:
    """Let work that was begun run, if it does not yet."""
    with _engine.lock:
        if piece.is_open:
            _engine.release(piece)


def run(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str) -> None:
    """As `push`, but done here when it returns. Raises what the work, or earlier work that it depends on, raised."""
    is_inside()
    complete((place(work, reads, writes, name, False, is_queued=False),))


def is_inside() -> bool:
    """Whether the caller is in the middle of a piece of work, so that what it pushes is a part of that piece. Where it
    is not, the call returns when new work may begin: none does while a thread is about to fork or to end the process,
    which threads that keep pushing would never let it do."""
    if _thread.work:
        return True
    if _engine.held:
        with _engine.lock:
            while _engine.held:
                _engine.done.wait()
    return False


def place(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str, small: bool,
          turn: AbstractContextManager | None = None, is_queued: bool = True, brief: bool = False) -> Placed:
    """The part of `push` that waits for nothing, for a caller who holds a lock that pending work may want. When it
    returns, `work` has its place in the program's order, or is done. The caller then lets go of its lock and gives the
    result to `complete`.

    Call `is_inside` before. turn: a lock that is held while `work` runs, unless it runs in this call. is_queued: False
    for work that the caller itself must do. brief: the work takes less than BRIEF seconds, so it is done here when
    nothing is in its way.
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
                state.enter(piece)
            else:
                now = (not is_queued or state.naive or state.closed or True in [v.volatile for v in reads]
                       or True in [v.volatile for v in writes])
                call = work if turn is None else partial(_in_turn, turn, work)
                raises = not is_queued or state.naive or not writes
                piece = Work(call, reads, writes, name, small or now, is_queued=not now, raises=raises)
                state.enter(piece)
                return piece if now else None
        _run_placed(piece)
    except BaseException:
        if piece is not None:
            _give_up(piece)
        raise
    return None


def _are_free(reads: Collection[Variable], writes: Sequence[Variable]) -> bool:
    """Whether no pending work and no failure is in the way of work on these. The caller holds the engine's lock."""
    for variable in reads:
        if variable.busy is not None:
            return False
    for variable in writes:  # noqa: SIM110  a loop takes half the time
        if variable.busy is not None or (variable.is_read and _engine.readers(variable)):
            return False
    return True


def complete(placed: Iterable[Placed]) -> None:
    """Do what `place` has left to do, in this order. A caller that is far ahead of the queue then works for a while."""
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


def _run_placed(piece: Work, tells: bool = True) -> None:
    """Run a piece that is not queued, in its turn. After an error the caller calls `_give_up`, for the pieces behind
    it. tells: whether those who wait look again when it is done."""
    if piece.missing:
        _wait(lambda: piece.missing == 0, piece.number)
    is_over, failure = False, failure_of(piece.reads)  # needs no lock: only later writes could change it
    try:
        if failure is None:
            _thread.work.append(piece)
            try:
                _run_here(piece.call, (), piece.name)
                _publish(piece.writes)
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
        _engine.finish(piece, failure if is_over else None, is_over, tells)


def _give_up(piece: Work) -> None:
    """After an error in the caller: an interrupt (Ctrl-C) may come between any two steps of the engine, so that a piece
    that is not queued is never noted as done. It is queued with nothing to do; a worker, which no interrupt reaches,
    then notes it."""
    _thread.work.clear()
    with _engine.lock:
        if piece in _engine.pending and not piece.is_queued:
            piece.call, piece.is_queued = nothing, True
            if not piece.missing:
                _engine.ready.append(piece)
                _engine.call_worker()
        _engine.done.notify_all()


def fail(name: str, error: Exception, writes: Sequence[Variable]) -> None:
    """Give an error of work that was done without the engine to the variables that it should have written, as the
    engine does for its own work. Where nothing is queued (NaiveEngine) it is raised here."""
    with _engine.lock:
        if _engine.naive:
            raise error
        note(Failure(name, error), writes)


def settle(variables: Iterable[Variable]) -> None:
    """Return when work on these variables that is pushed now need not wait. For callers inside of a piece of work: what
    was pushed after that piece does not count, so it stays true."""
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
            last = _engine.readers(variable) if also_readers else []
            if variable.busy is not None and variable.busy.writer is not None:
                last.append(variable.busy.writer)
    if last:
        _wait(lambda: all(piece.is_done for piece in last), limit)
    if raises and variable.busy is not None:
        with _engine.lock:
            failure = failure_of((variable,))
            if failure is not None:
                raise raised(failure)


def is_naive() -> bool:
    """Whether nothing is queued (NaiveEngine): all work is done when `push` returns."""
    return _engine.naive


def is_free(variable: Variable) -> bool:
    """Whether `wait_to_write` would return at once, and raise nothing."""
    with _engine.lock:
        return variable.busy is None and not _engine.readers(variable)


def _limit() -> int | None:
    """The number of the innermost piece of work that this thread is in the middle of; None where it is in none."""
    return _thread.work[-1].number if _thread.work else None


def waitall() -> None:
    """Return when everything pushed so far is done. Raises the first error that was raised nowhere yet. All of them
    count as seen then, but stay with the variables that should have been written."""
    if _thread.work:  # what a piece of work pushes is done when `push` returns
        return
    state = _engine
    _wait(lambda: not state.pending)
    for wait in beyond:
        wait()
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
    _publish(writes)


def _publish(writes: Sequence[Variable]) -> None:
    """Have others see what work has written, where they look at a copy of the memory."""
    for variable in writes:
        if variable.publish is not None:
            variable.publish()


def _run_inside(work: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable]) -> None:
    """Run work that is a part of the piece that this thread is in the middle of."""
    for variable in reads:
        wait_to_read(variable)
    for variable in writes:
        wait_to_write(variable)
    try:
        work()
    finally:
        for variable in writes:
            variable.version += 1
    _publish(writes)


def _serve(state: Queue) -> None:
    """What a worker thread does."""
    while True:
        with state.lock:
            while not state.ready:
                if state.closed:
                    return
                state.idle += 1
                state.work.wait()
            piece = state.ready.popleft()
        with contextlib.suppress(BaseException):  # SystemExit, say, which the failure notes
            _execute(piece)


def _execute(piece: Work) -> None:
    """Run a piece of queued work whose turn has come. Where what it reads has a failure, it has the same one."""
    with _engine.lock:
        _engine.open.pop(piece, None)  # type: ignore[call-overload]  # where an interrupt came between its release and this
        failure = failure_of(piece.reads)
    interrupt = None
    if failure is None:
        _thread.work.append(piece)
        try:
            _run_here(piece.call, (), piece.name)
            _publish(piece.writes)
        except Exception as error:
            failure = Failure(piece.name, error)
        except BaseException as error:  # an interrupt of the thread that waits, and helps, here
            if isinstance(piece, GrowingWork) and isinstance(error, KeyboardInterrupt):
                raise  # `_wait` lets it begin again
            failure, interrupt = Failure(piece.name, error), error
        finally:
            _thread.work.pop()
    _engine.finish(piece, failure, piece.call is not nothing)
    if interrupt is not None:
        raise interrupt


_engine = Queue(_serve)


def _wait(is_over: Callable[[], bool], limit: int | None = None) -> None:
    """Return when `is_over()` is true; meanwhile run pieces that are ready.

    limit: run only pieces of smaller numbers. A thread in the middle of a piece then runs nothing that may wait for
    that piece, so the pending piece of the smallest number can always go on.
    """
    while True:
        piece = None
        try:
            piece = _next(is_over, limit)
            if piece is None:
                return
            _execute(piece)
        except BaseException as error:  # an interrupt, which may come between any two steps
            if piece is not None and not piece.is_done:
                if isinstance(piece, GrowingWork):  # it writes new arrays alone, so it can begin again
                    with _engine.lock:
                        _engine.ready.appendleft(piece)
                        _engine.call_worker()
                else:
                    _engine.finish(piece, Failure(piece.name, error))
            raise


def _next(is_over: Callable[[], bool], limit: int | None) -> Work | None:
    """A piece to run for a thread that waits (see `_wait`), which is not ready any more; None when `is_over()`."""
    state, piece = _engine, None
    with state.lock:
        try:
            while not is_over():
                if state.open:
                    state.release_all()
                piece = next((p for p in state.ready if limit is None or p.number < limit), None)
                if piece is not None:
                    state.ready.remove(piece)
                    return piece
                state.done.wait()
            return None
        except BaseException:
            if piece is not None and piece not in state.ready:
                state.ready.appendleft(piece)
            raise


def _drain() -> None:
    """Return when nothing is pending, whatever has failed: before the process forks or ends."""
    if not _thread.work:
        state = _engine
        _wait(lambda: not state.pending)


def _close() -> None:
    """At exit: do what is queued, without raising its errors, and end the workers before the interpreter ends."""
    with _engine.lock:
        _engine.held += 1
    _drain()
    with _engine.lock:
        _engine.held -= 1
        _engine.close()
    _engine.join()


def _before_fork() -> None:
    with _engine.lock:
        _engine.held += 1
    _drain()
    _engine.lock.acquire()
    while _engine.pending and not _thread.work:  # of a thread that was in `push` already
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
    _engine = Queue(_serve)
    unseen.clear()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork)
