"""Writing files that appear whole or not at all.

A file is written under a hidden name, .NAME.HEX, and is then renamed. A process that is killed leaves the hidden file
behind; the next writer of NAME removes it. Writers hold a lock on their hidden file, so a locked one is still in use.
"""
from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mxc.compiler.error import FileAccessError

try:
    import fcntl
except ImportError:  # a system without such locks: hidden files of killed processes stay
    fcntl = None  # type: ignore[assignment]

DAY = 86400  # seconds of a day
MOST = 50  # characters of NAME that a hidden name has, since file systems take names of at most 255 bytes


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file to write (and read), which takes the place of what is at `path` when the block ends; what was there
    stays when it fails, or the process is killed.

    As with open(), a link stays and what it points to gets the content, a file that was there keeps its permissions,
    and a device or a pipe is written to (when the block ends), never replaced. Raises FileAccessError when the file
    cannot be written.
    """
    try:
        try:
            mode: int | None = os.stat(path).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError("it is a directory")
        with _passed_on(path) if mode is not None and not stat.S_ISREG(mode) else _renamed(path, mode) as file:
            yield file
    except OSError as error:
        raise FileAccessError(str(path), "written", error) from None


def check_replacing(path: str | os.PathLike[str]) -> None:
    """Raise FileAccessError where `replacing` cannot begin, before the work whose result is to be written. Leaves what
    is there as it is."""
    with contextlib.suppress(_Nothing), replacing(path):
        raise _Nothing


class _Nothing(Exception):
    """There is nothing to write yet."""


@contextlib.contextmanager
def _passed_on(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        with open(path, "wb") as device:
            shutil.copyfileobj(file, device)


@contextlib.contextmanager
def _renamed(path: str | os.PathLike[str], mode: int | None) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))
    _remove_left(target)
    file, temporary, lock = _hidden(target)
    try:
        with file:
            if mode is not None:
                os.chmod(temporary, mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(lock)


def _hidden(target: Path) -> tuple[BinaryIO, Path, int]:
    """A new hidden file, its path, and a descriptor that holds its lock until it is closed, which is after the file has
    its own name."""
    while True:
        temporary = target.with_name(f"{_beginning(target)}{_host()}{os.urandom(8).hex()}")
        file = open(temporary, "x+b")  # noqa: SIM115  it is the caller's
        lock = os.dup(file.fileno())
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks, where nothing is removed either
                fcntl.flock(lock, fcntl.LOCK_EX)
        if temporary.exists():
            return file, temporary, lock
        file.close()  # another writer removed it before it was locked
        os.close(lock)


def _remove_left(target: Path) -> None:
    """Remove the hidden files of this name whose processes are gone. On a disk that several hosts share, the locks of
    other hosts may not be seen, so their files stay if they were written to within a day."""
    if fcntl is None:
        return
    beginning, host = _beginning(target), _host()
    with contextlib.suppress(OSError):
        found = [entry.path for entry in os.scandir(target.parent) if _is_hidden(entry.name, beginning)]
        for path in found:
            with contextlib.suppress(OSError):  # somebody else's, locked, or gone by now
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    is_old = os.fstat(descriptor).st_mtime < time.time() - DAY
                    if is_old or os.path.basename(path).startswith(beginning + host):
                        os.unlink(path)
                finally:
                    os.close(descriptor)


def _beginning(target: Path) -> str:
    return f".{target.name[:MOST]}."


def _is_hidden(name: str, beginning: str) -> bool:
    rest = name.removeprefix(beginning)
    return rest != name and len(rest) == 24 and not rest.strip("0123456789abcdef")


def _host() -> str:
    """This host in eight digits."""
    return f"{zlib.crc32(os.uname().nodename.encode() if hasattr(os, 'uname') else b''):08x}"
