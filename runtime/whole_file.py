"""Writing files that appear whole or not at all."""
from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mxc.compiler.error import FileAccessError

MOST = 50  # characters of a name that are in its temporary file's: 255 bytes are what file systems take


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
    temporary = target.with_name(f".{target.name[:MOST]}.{os.urandom(8).hex()}")
    try:
        with open(temporary, "x+b") as file:
            if mode is not None:
                os.chmod(temporary, mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
