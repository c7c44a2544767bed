"""The errors that mxc raises, in every layer. All derive from MXNetError, so code written for MXNet catches them."""
from __future__ import annotations

from collections.abc import Iterable


class MXNetError(RuntimeError):
    """Any failure that is the input's or the machine's: the message names what was expected and what came."""


class ModelFileError(MXNetError):
    """A model or parameter file that cannot be read. `path` and `offset` (bytes, or None) say where."""

    def __init__(self, path: str, reason: str, offset: int | None = None):
        self.path, self.reason, self.offset = str(path), reason, offset
        where = f"{path}" if offset is None else f"{path}, byte {offset}"
        super().__init__(f"{where}: {reason}")


class FileAccessError(ModelFileError):
    """A file that the system does not let this process read or write.

    done: "read" or "written". hint: what to do about it.
    """

    def __init__(self, path: str, done: str, error: Exception, hint: str = ""):
        self.done = done
        reason = " ".join(str(getattr(error, "strerror", None) or error).splitlines()[:2])
        super().__init__(path, f"cannot be {done}: {reason or type(error).__name__}{hint and f'; {hint}'}")


class OutOfMemoryError(MXNetError):
    """Arrays for which there is no memory."""


class SettingError(MXNetError):
    """An environment variable with a value that means nothing."""


class ArgumentError(MXNetError, ValueError):
    """A value that does not fit its purpose; also a ValueError, as programs written for MXNet expect."""


class AssertedError(ArgumentError, AssertionError):
    """A value that does not fit its purpose, of which MXNet asserts that it does; an AssertionError too."""


class ArgumentTypeError(MXNetError, TypeError):
    """A value of a wrong type, or a name that a function does not know; a TypeError too."""


class ArgumentIndexError(MXNetError, IndexError):
    """An index outside of what there is; an IndexError too."""


class ArgumentKeyError(MXNetError, KeyError):
    """A name that is not among those that there are; a KeyError too."""

    __str__ = Exception.__str__  # KeyError's own would show the message in quotes, as repr() writes it.


class ModuleConflictError(MXNetError, ImportError):
    """A module that cannot take a name, because another has it; an ImportError too."""


class UnsupportedError(MXNetError):
    """Operators or attributes that mxc does not know; the message lists all of them at once."""


class TargetError(MXNetError):
    """A device, driver or toolchain that is not there."""


def nearest(name: str, known: Iterable[str]) -> str:
    """"; did you mean 'X'?" for the known name closest to `name` when their cases are left aside, or "" when none is
    close. Of names that differ from each other by case alone it is the one closest as it is written."""
    import difflib  # This is imported here so that a program without errors does not pay for it.

    by_lower: dict[str, list[str]] = {}
    for each in known:
        by_lower.setdefault(each.lower(), []).append(each)
    lower = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    if not lower:
        return ""
    return f"; did you mean {difflib.get_close_matches(name, by_lower[lower[0]], n=1, cutoff=0)[0]!r}?"
