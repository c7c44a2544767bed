"""What the engine keeps: a `Variable` for each allocation, a `Work` for each piece of work, and the failures of work.

Only `Variable` is for others than `runtime/engine.py`.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from mxc.compiler.error import ArgumentIndexError, MXNetError, OutOfMemoryError, SettingError

AGAIN = "; this error of an earlier operation was told before: an array that the operation should have written, or " \
    "one that follows from such an array, has no values yet. Write these arrays again; a module does so with " \
    "set_params, or init_params(force_init=True), and then init_optimizer(force_init=True)"
KEPT = (OutOfMemoryError, ArgumentIndexError, SettingError)  # classes that errors keep; others become MXNetError


class Variable:
    """The engine's view of one allocation: it orders the work on it, and tells whether it has changed.

    version: how many writes are finished. volatile: the memory was handed out without a copy, so it may change unseen;
    work on it is done when `push` returns. publish: called when work that writes it is done, where others look at a
    copy of the memory; else None. busy: the pending write, and the failure of the last one; None where there is
    neither. is_read: whether work that reads it may be pending that was pushed since the last write. Nothing more is
    noted of readers: a run of an executor reads hundreds of variables, and few are written while it is pending.
    """

    __slots__ = ("busy", "is_read", "publish", "version", "volatile")

    def __init__(self, volatile: bool = False):
        self.version, self.volatile, self.is_read = 0, volatile, False
        self.publish: Callable[[], None] | None = None
        self.busy: Busy | None = None


class Busy:
    """What a variable waits for or suffers from. writer: the last pending work that writes it, or None. failure: that
    of the last write that is done, or None."""

    __slots__ = ("failure", "writer")

    def __init__(self) -> None:
        self.writer: Work | None = None
        self.failure: Failure | None = None


class Failure:
    """An error in queued work. holders: how many variables have it. seen: whether it was raised somewhere."""

    __slots__ = ("error", "holders", "name", "seen")

    def __init__(self, name: str, error: BaseException):
        self.name, self.error, self.holders, self.seen = name, error, 0, False

    def made(self) -> MXNetError:
        """A new error that names the operation. If the failure was raised before, it also says why it comes again and
        what to do."""
        kind = OutOfMemoryError if isinstance(self.error, MemoryError) else \
            next((kind for kind in KEPT if isinstance(self.error, kind)), MXNetError)
        what = str(self.error) or type(self.error).__name__
        if not isinstance(self.error, Exception):
            what = f"it was interrupted by {what}"
        made = kind(f"operation {self.name}: {what}{AGAIN if self.seen else ''}")
        made.__cause__ = self.error
        return made


# The failures that some variable has and that were raised nowhere yet, in the order in which they came. Whoever uses
# this, or the functions below, holds the engine's lock.
unseen: dict[Failure, None] = {}


def note(failure: Failure, variables: Iterable[Variable]) -> None:
    """Give `failure` to variables that should have been written: each wait on one of them then raises."""
    for variable in variables:
        variable.busy = variable.busy or Busy()
        variable.busy.failure = failure
        failure.holders += 1
    unseen[failure] = None


def raised(failure: Failure) -> MXNetError:
    """The error to raise for a failure, which counts as seen from now on."""
    made = failure.made()
    failure.seen = True
    unseen.pop(failure, None)
    return made


def failure_of(variables: Iterable[Variable]) -> Failure | None:
    """The failure of the first of `variables` that has one; None where none has."""
    for variable in variables:
        if variable.busy is not None and variable.busy.failure is not None:
            return variable.busy.failure
    return None


def let_go(failure: Failure) -> None:
    """Note that one variable less has this failure. A failure that no variable has is forgotten."""
    failure.holders -= 1
    if not failure.holders:
        unseen.pop(failure, None)


class Work:
    """A piece of work with its place in the program's order.

    call: what it does. is_queued: True where any free thread may run it, False where the thread that placed it must.
    raises: whether an error is raised where the work runs, instead of being noted with what it should have written.
    number: its place in the order. missing: how many pieces it waits for. followers: the pieces that wait for it.
    final: the variables that it has said to write no more (see `runtime/outside.py`).
    """

    __slots__ = ("call", "final", "followers", "is_done", "is_queued", "missing", "name", "number", "raises", "reads",
                 "small", "writes")

    def __init__(self, call: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str,
                 small: bool, is_queued: bool, raises: bool = False):
        self.call, self.reads, self.writes, self.name, self.small = call, reads, writes, name, small
        self.number, self.missing, self.is_done, self.is_queued, self.raises = 0, 0, False, is_queued, raises
        self.followers: list[Work] = []
        self.final: frozenset[Variable] | None = None

    def end(self) -> None:
        """Note that it is done; what it needed is kept no longer."""
        self.is_done, self.call = True, nothing


def nothing() -> None:
    """The work of a piece that is done, or was given up."""


class GrowingWork(Work):
    """Work that steps can be added to until it is to run. steps: whatever its call does. is_open: whether it may still
    grow."""

    __slots__ = ("is_open", "steps")
    reads: set[Variable]
    writes: list[Variable]

    def __init__(self, name: str):
        super().__init__(nothing, set(), [], name, small=True, is_queued=True)
        self.steps: list[Any] = []
        self.is_open = True

    def end(self) -> None:
        """See Work."""
        super().end()
        self.steps = []
