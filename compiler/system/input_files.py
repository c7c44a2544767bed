"""Reading files that somebody names: they may be pipes, devices without an end, or longer than memory."""
from __future__ import annotations

import mmap
import os
import stat

from mxc.compiler.error import FileAccessError, ModelFileError, OutOfMemoryError

MOST_OF_A_STREAM = 1 << 30  # bytes: no more are read of a pipe or device, which may never end
PIECE = 1 << 20
PARAMETERS = (0x112).to_bytes(8, "little")  # what a parameter file begins with


def content(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """The bytes of a file, a pipe or a device.

    most: the most bytes that a sound file can have (None: 2^30 for a pipe or device, any number for a file). Raises
    FileAccessError when it cannot be read, ModelFileError when it is longer, OutOfMemoryError when the machine has no
    memory for it.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            if most is not None and size > most:
                raise _too_long(path, most)
            if size > _memory():
                raise MemoryError
            if size:
                return file.readall()
            limit, pieces, length = MOST_OF_A_STREAM if most is None else most, [], 0
            while piece := file.read(PIECE):
                pieces.append(piece)
                length += len(piece)
                if length > limit:
                    raise _too_long(path, limit)
            return b"".join(pieces)
    except MemoryError:
        raise OutOfMemoryError(f"{os.fspath(path)}: there is no memory for a file of this length") from None
    except (OSError, ValueError) as error:  # A name with a zero byte raises ValueError.
        raise FileAccessError(os.fspath(path), "read", error) from None


def mapped(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, without reading what nobody looks at; of a pipe or a device all of them. Errors as
    `content`."""
    if not is_regular(path) or not os.stat(path).st_size:
        return memoryview(content(path))
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise FileAccessError(os.fspath(path), "read", error) from None


def looks_like(head: bytes | memoryview) -> str:
    """What a file seems to be, by its first 16 bytes or more, for messages on what it is not; "" for anything else."""
    start = bytes(head[:16])
    text = start.lstrip()
    kinds = {b"<": "an HTML or XML page", b"{": "a JSON text, as of a graph"}
    if text[:1] in kinds:
        return kinds[text[:1]]
    signs = {PARAMETERS: "a parameter file (NAME-0000.params)", b"\x93NUMPY": "an array (NAME.npy)",
             b"PK\x03\x04": "a zip archive, as .npz is", b"\xff\xd8\xff": "a JPEG picture", b"\x89PNG": "a PNG picture",
             b"mxcmodl": "an artifact (NAME.mxc)", b"\x1f\x8b": "a gzip archive"}
    return next((kind for sign, kind in signs.items() if start.startswith(sign)), "" if start else "empty")


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file with a content of its own, which can be read again: no pipe, device or folder."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _too_long(path: str | os.PathLike[str], most: int) -> ModelFileError:
    return ModelFileError(os.fspath(path), f"it has more than {most:,} bytes, too many for what it should be")


def _memory() -> int:
    """Bytes of this machine's memory; without bound where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 62
