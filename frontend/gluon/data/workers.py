"""Threads and processes that make batches ahead of a program.

A thread of the program stands behind each of them: it takes the next numbers of examples from a queue, has the batch
made (by itself, or by its process, which it asks through a pipe), and completes a future. So a process that dies is
noticed at once, as the end of its pipe, and nothing waits for what never comes. All threads and processes are daemons:
the program's end does not wait for them.
"""
from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import queue
import secrets
import signal
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing import resource_tracker
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.gluon.data.shared_batches import Blocks, Packed

Indices = Sequence[Any]
Batchify = Callable[[list[Any]], Any]
Task = tuple[Future, Indices] | None  # None ends a thread
CLOSED = "the workers of the DataLoader were ended during this pass, by clean, refresh or an error: begin another one"
JOIN = 5.0  # seconds that a killed process may take to end


class WorkerEnded(MXNetError):
    """A worker ended without an answer, or there is none in time."""


class WorkerTraceback(Exception):
    """Where an error was raised in a worker: the cause of the error that the program sees."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


class Threads:
    """Threads that make batches. make: one function from numbers of examples to a batch for each thread."""

    def __init__(self, make: Sequence[Callable[[Indices], Any]]):
        self._tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        self._count, self._process, self._is_closed = len(make), os.getpid(), False
        for each in make:
            threading.Thread(target=_work, args=(self._tasks, each), name="mxc-loader", daemon=True).start()

    @property
    def are_here(self) -> bool:
        """Whether they run; a process that was forked has no threads of the other one's."""
        return self._process == os.getpid()

    def submit(self, indices: Indices) -> Future:
        """The batch of these examples, in the making. Raises WorkerEnded after `close`."""
        if self._is_closed:
            raise WorkerEnded(CLOSED)
        future: Future = Future()
        self._tasks.put((future, indices))
        return future

    def received(self, future: Future) -> Any:
        """The batch that was made. Raises what the dataset raised, WorkerEnded when there is none."""
        try:
            return future.result()
        except WorkerEnded:
            if self._is_closed:
                raise WorkerEnded(CLOSED) from None
            raise

    def discard(self, future: Future) -> None:
        """Nobody wants this batch."""
        future.cancel()

    def close(self) -> None:
        """Let the threads end when they have made what they are making; what they have not begun is not made."""
        self._is_closed = True
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is not None and task[0].set_running_or_notify_cancel():
                task[0].set_exception(WorkerEnded(CLOSED))
        for _ in range(self._count):
            self._tasks.put(None)


class Processes(Threads):
    """Processes that make batches, which come through shared memory."""

    def __init__(self, count: int, dataset: Any, batchify: Batchify):
        resource_tracker.ensure_running()  # one for all: it removes the blocks when the program is killed
        kind = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        context: Any = multiprocessing.get_context(kind)
        members: list[_Process] = []
        for _ in range(count):
            inherited = [member.pipe for member in members] if kind == "fork" else []
            members.append(_Process(context, inherited, dataset, batchify))
        super().__init__([member.make for member in members])
        self._close = weakref.finalize(self, _end, members, os.getpid())

    def received(self, future: Future) -> Any:
        """The batch, in arrays of the program's. Raises what the dataset raised, WorkerEnded when the process ended."""
        process, packed = super().received(future)
        try:
            return process.blocks.unpack(packed)
        except FileNotFoundError:  # `close` has removed it
            raise WorkerEnded(CLOSED) from None
        finally:
            process.lend(packed)

    def discard(self, future: Future) -> None:
        """Nobody wants this batch: its memory serves another one when it is made."""
        if not future.cancel():
            future.add_done_callback(_drop)

    def close(self) -> None:
        """End the processes, whatever they do, and remove what they left in shared memory."""
        super().close()
        self._close()


class _Process:
    """A worker process, and the program's end of its pipe. blocks: those of shared memory that the program opened."""

    _numbers = itertools.count()

    def __init__(self, context: Any, inherited: list[Any], dataset: Any, batchify: Batchify):
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, [*inherited, self.pipe], dataset, batchify),
                                       name="mxc-loader", daemon=True)
        self.process.start()
        other.close()  # the pipe ends with the process
        self.blocks, self._name = Blocks(), f"mxc_{secrets.token_hex(5)}"
        self._names: set[str] = set()  # of all blocks that there are, or may be
        self._spare: list[str] = []  # of those with no batch in them

    def make(self, indices: Indices) -> tuple[_Process, Packed]:
        """A batch, in shared memory. Raises WorkerEnded when the process ends instead."""
        name, spare = f"{self._name}_{next(_Process._numbers)}", self._spare.pop() if self._spare else ""
        self._names.add(name)
        try:
            self.pipe.send((name, spare, indices))
            packed, error, trace = self.pipe.recv()
        except (EOFError, OSError) as end:
            raise WorkerEnded("a worker process of the DataLoader ended suddenly: it was killed, or ran out of memory. "
                             "Another pass starts new ones; num_workers=0 reads in the program itself") from end
        used = "" if packed is None else packed.name
        if used == name:
            self._remove(spare)  # it was too small
        else:
            self._names.discard(name)
            if spare and used != spare:
                self._spare.append(spare)
        if error is not None:
            if packed is not None:
                self.lend(packed)
            raise error from WorkerTraceback(trace)
        return self, packed

    def lend(self, packed: Packed) -> None:
        """Let a block serve another batch."""
        if packed.name in self._names:
            self._spare.append(packed.name)

    def _remove(self, name: str) -> None:
        self._names.discard(name)
        self.blocks.remove(name)

    def remove_all(self) -> None:
        """Remove all blocks, when the process has ended."""
        for name in tuple(self._names):
            self._remove(name)


def _drop(future: Future) -> None:
    """The batch of a pass that was left is made, or not: its block may serve another one."""
    if not future.cancelled() and future.exception() is None:
        process, packed = future.result()
        process.lend(packed)


def _work(tasks: queue.SimpleQueue[Task], make: Callable[[Indices], Any]) -> None:
    """What a thread does: it makes batches until it is told to end, or its process has died."""
    while (task := tasks.get()) is not None:
        future, indices = task
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(make(indices))
        except BaseException as error:
            future.set_exception(error)
        del task, future  # nothing keeps the last batch alive while the thread waits


def _serve(pipe: Any, inherited: Sequence[Any], dataset: Any, batchify: Batchify) -> None:
    """What a process does. Ctrl-C is the program's, which ends it; without the program the pipe has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    threading.Thread(target=_end_with_program, daemon=True).start()
    blocks = Blocks()
    while True:
        try:
            name, spare, indices = pipe.recv()
        except (EOFError, OSError):
            return
        packed = error = None
        trace = ""
        try:
            packed = blocks.pack(batchify([dataset[i] for i in indices]), name, spare)
        except Exception as raised:
            error, trace = _sendable(raised), traceback.format_exc()
        try:
            pipe.send((packed, error, trace))
        except OSError:
            return
        except Exception as unsendable:  # what is no array is pickled
            assert packed is not None
            pipe.send((Packed(packed.name, None), _sendable(unsendable), traceback.format_exc()))


def _end_with_program() -> None:
    """End this process when the program has ended, though an example takes long."""
    program = multiprocessing.parent_process()
    if program is not None:
        program.join()
        os._exit(1)


def _sendable(error: Exception) -> Exception:
    """An error as it can pass through a pipe: itself, or its text where its class cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return MXNetError(f"{type(error).__name__}: {error}")
    return error


def _end(members: Sequence[_Process], process: int) -> None:
    """Kill the processes, and remove their blocks."""
    if process != os.getpid():
        return  # a fork's copy: they are not its own
    for member in members:
        member.process.kill()
    for member in members:
        member.process.join(JOIN)
    for member in members:
        member.remove_all()
