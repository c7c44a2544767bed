"""What the engine keeps of each allocation and of each piece of work, and of what went wrong in it; all but `Variable`
is for `runtime/engine.py`."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from mxc.compiler.error import ArgumentIndexError, MXNetError, OutOfMemoryError, SettingError

AGAIN = "; this error of an earlier operation was told before: an array that the operation should have written, or " \
    "one that follows from such an array, has no values yet. Write these arrays again; a module does so with " \
    "set_params, or init_params(force_init=True), and then init_optimizer(force_init=True)"
KEPT = (OutOfMemoryError, ArgumentIndexError, SettingError)  # kinds that errors keep when they are told


class Variable:
    """The engine's view of one allocation: what orders work on it and tells whether it has changed.

    version: counts finished writes. volatile: the memory was handed out without a copy, so it may change unseen: work
    on it is done when `push` returns. busy: the pending write and the failure of the last; None when there is none.
    is_read: pending work may read it, which was pushed since the last write. That is all that is noted of readers: a
    run of an executor reads hundreds of variables, and few are ever written while it is pending.
    """

    __slots__ = ("busy", "is_read", "version", "volatile")

    def __init__(self, volatile: bool = False):
        self.version, self.volatile, self.is_read = 0, volatile, False
        self.busy: Busy | None = None


class Busy:
    """writer: the last pending work that writes. failure: what went wrong in the last write that is done."""

    __slots__ = ("failure", "writer")

    def __init__(self) -> None:
        self.writer: Work | None = None
        self.failure: Failure | None = None


class Failure:
    """An error in queued work. holders: variables that have it. seen: it was raised somewhere."""

    __slots__ = ("error", "holders", "name", "seen")

    def __init__(self, name: str, error: BaseException):
        self.name, self.error, self.holders, self.seen = name, error, 0, False

    def made(self) -> MXNetError:
        """The error that tells of it; where it was told before, also why it comes again and what to do."""
        kind = OutOfMemoryError if isinstance(self.error, MemoryError) else \
            next((kind for kind in KEPT if isinstance(self.error, kind)), MXNetError)
        what = str(self.error) or type(self.error).__name__
        if not isinstance(self.error, Exception):
            what = f"it was interrupted by {what}"
        made = kind(f"operation {self.name}: {what}{AGAIN if self.seen else ''}")
        made.__cause__ = self.error
        return made


# Failures that somebody holds and that were raised nowhere, in the order in which they came. As what follows, for who
# holds the engine's lock.
unseen: dict[Failure, None] = {}


def note(failure: Failure, variables: Iterable[Variable]) -> None:
    """These should have been written and were not: each wait on one raises."""
    for variable in variables:
        variable.busy = variable.busy or Busy()
        variable.busy.failure = failure
        failure.holders += 1
    unseen[failure] = None


def raised(failure: Failure) -> MXNetError:
    """What to raise for it; it counts as seen then."""
    made = failure.made()
    failure.seen = True
    unseen.pop(failure, None)
    return made


def failure_of(variables: Iterable[Variable]) -> Failure | None:
    """The failure that the first of these has which has one."""
    for variable in variables:
        if variable.busy is not None and variable.busy.failure is not None:
            return variable.busy.failure
    return None


def let_go(failure: Failure) -> None:
    """One variable less has this failure. Nobody's failure is forgotten."""
    failure.holders -= 1
    if not failure.holders:
        unseen.pop(failure, None)


class Work:
    """A piece of work that has its place in the program's order. call: what it does. is_queued: whoever is free runs
    it; else the thread that placed it. raises: an error is raised where it runs, and not noted. number: the place.
    missing: how many others it waits for. followers: those that wait for it."""

    __slots__ = ("call", "followers", "is_done", "is_queued", "missing", "name", "number", "raises", "reads", "small",
                 "writes")

    def __init__(self, call: Callable[[], None], reads: Collection[Variable], writes: Sequence[Variable], name: str,
                 small: bool, is_queued: bool, raises: bool = False):
        self.call, self.reads, self.writes, self.name, self.small = call, reads, writes, name, small
        self.number, self.missing, self.is_done, self.is_queued, self.raises = 0, 0, False, is_queued, raises
        self.followers: list[Work] = []
