"""The engine's queue: which pieces of work are pending, what each waits for, which are ready, and the threads that run
them.

Only `runtime/engine.py` uses it. Everything is called with `lock` held, but for `watch` and what a thread is started
with.
"""
from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence

from mxc.compiler.system import env
from mxc.runtime.engine_work import Busy, Failure, GrowingWork, Variable, Work, let_go, unseen

WORKERS = 2  # threads for queued work: few, for kernels have threads of their own, and these only overlap pieces
# Seconds after which open work is released that has not grown meanwhile: a caller that prepares the next operators of a
# network takes some tens of microseconds for each, and one that does something else should find the work begun.
OPEN_SECONDS = 0.005


class Queue:
    """The state of the process's engine.

    serve: what a worker thread does. pending: pieces that are not done, in the program's order. pushed: how many there
    ever were. open: those of the pending pieces that may still grow. A piece is open until another one depends on it,
    a thread waits for anything, or it has not grown for OPEN_SECONDS; it waits for nothing, so it is ready then.
    """

    def __init__(self, serve: Callable[[Queue], None]) -> None:
        self.lock = threading.RLock()
        self.work, self.done = threading.Condition(self.lock), threading.Condition(self.lock)
        self.ready: deque[Work] = deque()
        self.pending: dict[Work, None] = {}
        self.open: dict[GrowingWork, None] = {}
        self.pushed = self.large = self.idle = self.held = 0
        self.workers: list[threading.Thread] = []
        self.naive = env.text("MXNET_ENGINE_TYPE") == "NaiveEngine"
        self.closed = False
        self._serve, self._opened = serve, threading.Condition(self.lock)
        self._watcher: threading.Thread | None = None

    def readers(self, variable: Variable) -> list[Work]:
        """The pending work that reads it and was pushed since its last write."""
        if not variable.is_read:
            return []
        found = [piece for piece in self.pending if variable in piece.reads]
        variable.is_read = bool(found)
        return found

    def enter(self, piece: Work) -> None:
        """Put a piece behind the pieces that it depends on. The piece is pending before anything refers to it, and its
        `missing` changes together with the others' followers, without a call in between, where an interrupt could come:
        the engine's `_give_up` must find them right."""
        reads, writes = piece.reads, piece.writes
        before = {v.busy.writer for v in (*reads, *writes) if v.busy is not None and v.busy.writer is not None}
        for variable in writes:
            if variable.is_read:
                before.update(self.readers(variable))
        for other in before:
            if isinstance(other, GrowingWork) and other.is_open:
                self.release(other)
        self.pushed += 1
        piece.number = self.pushed
        self.large += not piece.small
        self.pending[piece] = None
        for other in before:
            piece.missing += 1
            other.followers += [piece]
        for variable in reads:
            variable.is_read = True
        for variable in writes:
            busy = variable.busy = variable.busy or Busy()
            busy.writer, variable.is_read = piece, False
        if piece.is_queued and not before:
            self.ready.append(piece)
            self.call_worker()

    def enter_open(self, piece: GrowingWork) -> None:
        """Make a piece pending that will grow (`extend`). An interrupt may come between any two steps: a piece that is
        open is released by the next wait."""
        self.pushed += 1
        piece.number = self.pushed
        self.open[piece] = None
        self.pending[piece] = None
        if self._watcher is None:
            self._watcher = threading.Thread(target=self.watch, name="mxc-engine-watch", daemon=True)
            with contextlib.suppress(RuntimeError):  # no more threads: a wait releases it
                self._watcher.start()
        self._opened.notify()

    def extend(self, piece: GrowingWork, step: object, reads: Collection[Variable], writes: Sequence[Variable]) -> bool:
        """Add a step that reads and writes these to an open piece; nobody else knows the written ones yet. False, with
        nothing changed, where the piece is not open any more, or would have to wait, or to fail, for a variable."""
        if not piece.is_open:
            return False
        for variable in reads:
            busy = variable.busy
            if variable.volatile or (busy is not None and (busy.writer is not piece or busy.failure is not None)):
                return False
        for variable in reads:
            if variable.busy is None:
                piece.reads.add(variable)
                variable.is_read = True
        for variable in writes:
            busy = variable.busy = Busy()
            busy.writer = piece
        piece.writes.extend(writes)
        piece.steps.append(step)
        return True

    def release(self, piece: GrowingWork, calls: bool = True) -> None:
        """Let an open piece grow no more, and run. calls: whether a worker is called; a thread that waits runs it
        itself. After an interrupt in the middle of it, it may be called again."""
        piece.is_open = False
        if piece not in self.ready:
            self.ready.append(piece)
        self.open.pop(piece, None)
        if calls:
            self.call_worker()

    def release_all(self) -> None:
        """Let all open pieces run: the caller waits, and runs what is ready."""
        for piece in list(self.open):
            self.release(piece, calls=False)

    def watch(self) -> None:
        """What the thread does that releases open pieces nobody waits for."""
        while True:
            with self.lock:
                while not self.open:
                    if self.closed:
                        return
                    self._opened.wait()
                seen = {piece: len(piece.steps) for piece in self.open}
            time.sleep(OPEN_SECONDS)
            with self.lock:
                for piece, size in seen.items():
                    if piece in self.open and len(piece.steps) == size:
                        self.release(piece)

    def call_worker(self) -> None:
        """Wake up a worker, or start one, for a piece that is ready."""
        if self.idle:
            self.idle -= 1  # counted here and not when it wakes up, for the next piece needs another worker
            self.work.notify()
        elif len(self.workers) < WORKERS and not self.closed:
            name = f"mxc-engine-{len(self.workers)}"
            thread = threading.Thread(target=self._serve, args=(self,), name=name, daemon=True)
            with contextlib.suppress(RuntimeError):  # the system has no more threads; whoever waits does the work
                thread.start()
                self.workers.append(thread)

    def finish(self, piece: Work, failure: Failure | None, has_written: bool = True, tells: bool = True) -> None:
        """Note that a piece is done, and its failure. has_written: earlier failures of what it writes are gone. tells:
        have those who wait look again. Takes the lock. After an interrupt in the middle of it, it may be called
        again."""
        with self.lock:
            piece.end()
            for variable in piece.writes:
                variable.version += 1
                busy = variable.busy
                if busy is not None:
                    if has_written and busy.failure is not None:
                        let_go(busy.failure)
                        busy.failure = None
                    if failure is not None and busy.failure is not failure:
                        busy.failure = failure
                        failure.holders += 1
                    if busy.writer is piece:
                        busy.writer = None
                    if busy.writer is None and busy.failure is None:
                        variable.busy = None
            if failure is not None and failure.holders and not failure.seen:
                unseen[failure] = None
            while piece.followers:  # one by one with its count: after an interrupt the same piece comes here again
                other = piece.followers[0]
                other.missing -= 1
                del piece.followers[0]
                if not other.missing and other.is_queued:
                    self.ready.append(other)
                    self.call_worker()
            if piece in self.pending:
                self.large -= not piece.small
                del self.pending[piece]
            if tells:
                self.done.notify_all()

    def close(self) -> None:
        """Let the threads end."""
        self.closed = True
        self.work.notify_all()
        self.done.notify_all()
        self._opened.notify_all()

    def join(self) -> None:
        """Return when the threads have ended. Called without the lock."""
        for thread in (*self.workers, *([self._watcher] if self._watcher is not None else ())):
            with contextlib.suppress(RuntimeError):  # one that could not be started
                thread.join()
