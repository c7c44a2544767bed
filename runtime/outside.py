"""Work of the engine that waits for what lies outside of this process, as the answer of another machine.

It has its place in the program's order, and no thread of the engine is kept busy meanwhile: `reserve` gives it the
place, a thread of the caller's does it with `fulfil`. That thread can also be told early of values that a longer piece
of work has finished: a backward run states after each part which gradients it writes no more (`announce`), and `watch`
waits for that.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mxc.runtime import engine
from mxc.runtime.engine_work import Variable, Work, nothing

listeners = 0  # how many want to be told early; without any, a backward run is one piece


def reserve(reads: Collection[Variable], writes: Sequence[Variable], name: str) -> Work:
    """A place in the program's order for work on these variables. Not to be called in the middle of work."""
    piece = Work(nothing, reads, writes, name, True, is_queued=False)
    engine.is_inside()
    with engine._engine.lock:
        engine._engine.enter(piece)
    return piece


def fulfil(piece: Work, call: Callable[[], None], tells: bool = True) -> None:
    """Do reserved work, in its turn. What `call` raises is raised where what the piece writes is waited for. tells:
    have all who wait look again; a caller who has several pieces to do calls `tell` after the last."""
    piece.call = call
    engine._run_placed(piece, tells)


def writer(variable: Variable) -> Work | None:
    """The pending work that writes this last, if there is any."""
    with engine._engine.lock:
        return variable.busy.writer if variable.busy is not None else None


def announce(variables: Collection[Variable]) -> None:
    """In the middle of work: state that it writes these no more."""
    if not engine._thread.work:
        return
    piece = engine._thread.work[-1]
    with engine._engine.lock:
        piece.final = (piece.final or frozenset()).union(variables)
        engine._engine.done.notify_all()


def has_written(piece: Work | None, variable: Variable) -> bool:
    """Whether this work writes a variable no more. For `watch`."""
    return piece is None or piece.is_done or (piece.final is not None and variable in piece.final)


def watch(is_over: Callable[[], bool]) -> None:
    """Return when `is_over()`, which is called with the engine's lock held whenever work has ended, was announced, or
    `tell` was called. Unlike other waits this one does no work meanwhile."""
    with engine._engine.lock:
        engine._engine.done.wait_for(is_over)


def tell(change: Callable[[], bool | None]) -> None:
    """Make a change, with the engine's lock held, and have all who `watch` look again, unless it returns False."""
    with engine._engine.lock:
        if change() is not False:
            engine._engine.done.notify_all()
