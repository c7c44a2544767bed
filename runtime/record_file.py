"""Files of records (`.rec`), as MXNet writes them: byte strings one after the other.

A record is u32 0xCED7230A; u32 whose upper 3 bits are a flag and lower 29 bits a length; so many bytes; zeros up to a
multiple of 4. Flag 0: a whole record. A record in which the magic word stands at a multiple of 4 is written as parts
between these words, which are left out: flag 1 for the first part, 2 for those between, 3 for the last. All numbers are
little-endian.
"""
from __future__ import annotations

import contextlib
import io
import os
import stat
import struct
from typing import BinaryIO

from mxc.compiler.error import ArgumentError, FileAccessError, ModelFileError
from mxc.compiler.system.forks import Lock
from mxc.runtime import remote_files

MAGIC = 0xCED7230A
WORD = struct.pack("<I", MAGIC)
HEAD = struct.Struct("<II")
LENGTH_BITS = 29
WHOLE, FIRST, BETWEEN, LAST = range(4)
# Bytes that a reader asks the system for at once. Records of pictures have some tens of thousands.
_BUFFER = 1 << 18


def formatted(content: bytes) -> bytes:
    """The bytes of a record. Raises ValueError for one of 2^29 bytes or more."""
    if len(content) >= 1 << LENGTH_BITS:
        raise ArgumentError(f"a record has less than 2^{LENGTH_BITS} bytes, got {len(content):,}")
    cuts, at = [], content.find(WORD)
    while at >= 0:
        is_word = at % 4 == 0
        if is_word:
            cuts.append(at)
        at = content.find(WORD, at + 4 if is_word else at + 1)
    if not cuts:
        return _part(WHOLE, content)
    begins, ends = [0, *(cut + 4 for cut in cuts)], [*cuts, len(content)]
    flags = [FIRST, *[BETWEEN] * (len(cuts) - 1), LAST]
    return b"".join(_part(flag, content[begin:end]) for flag, begin, end in zip(flags, begins, ends, strict=True))


def _part(flag: int, content: bytes) -> bytes:
    return b"".join((HEAD.pack(MAGIC, flag << LENGTH_BITS | len(content)), content, bytes(-len(content) % 4)))


class Reader:
    """The records of a file or URL. Raises FileAccessError where it cannot be read."""

    def __init__(self, path: str):
        self._path, self._lock = path, Lock()
        try:
            self._file: BinaryIO = io.BytesIO(remote_files.read(path)) if remote_files.is_url(path) else \
                open(path, "rb", _BUFFER)  # noqa: SIM115  (`close` closes it)
        except (OSError, ValueError) as error:  # A name with a zero byte raises ValueError.
            raise FileAccessError(path, "read", error) from None

    def read(self) -> bytes | None:
        """The next record; None behind the last one. Raises ModelFileError, with the offset, where the file was cut or
        is none of records."""
        parts: list[bytes] = []
        while True:
            flag, content = self._read_part(bool(parts))
            if content is None:
                return None
            if flag in (WHOLE, LAST):
                return WORD.join((*parts, content)) if parts else content
            parts.append(content)

    def seek(self, offset: int) -> None:
        """Go to a byte where a record begins."""
        self._file.seek(offset)

    def read_at(self, offset: int) -> bytes | None:
        """The record that begins there; the next `read` goes on behind it. Several threads may call this at once."""
        with self._lock:
            self.seek(offset)
            return self.read()

    def at(self, offset: int) -> bytes | None:
        """As `read_at`, of a record that the next `read` may go on behind or not. Where the system can read so, this
        needs neither the file's position, for which threads wait for each other, nor its buffer."""
        if isinstance(self._file, io.BytesIO) or not hasattr(os, "pread"):
            return self.read_at(offset)
        try:
            head = os.pread(self._file.fileno(), HEAD.size, offset)
            magic, word = HEAD.unpack(head) if len(head) == HEAD.size else (0, 0)
            is_whole = magic == MAGIC and 0 < word <= _BUFFER  # the flag of a whole record is 0
            content = os.pread(self._file.fileno(), word, offset + HEAD.size) if is_whole else b""
        except OSError:
            return self.read_at(offset)
        return content if is_whole and len(content) == word else self.read_at(offset)

    def offsets(self) -> tuple[list[int], int]:
        """Where each record begins, and how many bytes the file has. The content of records is not read."""
        found, at = [], 0
        size = self._file.seek(0, io.SEEK_END)
        while at < size:
            self._file.seek(at)
            head = self._take(HEAD.size)
            if len(head) < HEAD.size or HEAD.unpack(head)[0] != MAGIC:
                self._file.seek(at)
                self._read_part(False)  # which says what is wrong
            word = HEAD.unpack(head)[1]
            if word >> LENGTH_BITS in (WHOLE, FIRST):
                found.append(at)
            length = word & (1 << LENGTH_BITS) - 1
            at += HEAD.size + length + -length % 4
        self._file.seek(0)
        return found, size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read_part(self, is_later: bool) -> tuple[int, bytes | None]:
        """The flag and content of the next part; without content at the end. is_later: whether parts of the same
        record came before."""
        head = self._take(HEAD.size)
        if not head and not is_later:
            return WHOLE, None
        if len(head) < HEAD.size:
            raise self._fail(len(head), f"expected {HEAD.size} bytes that begin a record"
                             f"{' part' if is_later else ''}, but {len(head)} are left: the file was cut off")
        magic, word = HEAD.unpack(head)
        flag, length = word >> LENGTH_BITS, word & (1 << LENGTH_BITS) - 1
        if magic != MAGIC:
            raise self._fail(len(head), f"expected 0x{MAGIC:08x}, which begins a record, got 0x{magic:08x}; this is no "
                             "file of records, it is damaged, or no record begins here")
        allowed = (BETWEEN, LAST) if is_later else (WHOLE, FIRST)
        if flag not in allowed:
            raise self._fail(len(head), f"expected the part flag {allowed[0]} or {allowed[1]}, got {flag}; the file is "
                             "damaged, or no record begins here")
        padded = length + -length % 4
        self._check_left(padded)
        content = self._take(padded)
        if len(content) < padded:
            raise self._short(padded, len(content), len(content))
        return flag, content if padded == length else content[:length]

    def _take(self, count: int) -> bytes:
        try:
            return self._file.read(count)
        except OSError as error:
            raise FileAccessError(self._path, "read", error) from None

    def _check_left(self, count: int) -> None:
        """Refuse a length of which the file has less left, before there is memory made for it."""
        if count <= _BUFFER or isinstance(self._file, io.BytesIO):
            return
        status = os.fstat(self._file.fileno())
        left = status.st_size - self._file.tell() if stat.S_ISREG(status.st_mode) else count
        if left < count:
            raise self._short(count, left, 0)

    def _short(self, count: int, left: int, taken: int) -> ModelFileError:
        return self._fail(HEAD.size + taken, f"expected a record of {count} bytes, but {left} are left: the file was "
                          "cut off or is damaged")

    def _fail(self, back: int, reason: str) -> ModelFileError:
        try:
            offset: int | None = self._file.tell() - back
        except OSError:  # A pipe has no places.
            offset = None
        return ModelFileError(self._path, reason, offset)


class Writer:
    """A new file of records, or one at a URL, which appears there when it is closed. Raises FileAccessError where it
    cannot be written.

    Nothing is kept for later but what goes to a URL, so a process that is forked has nothing to write twice.
    """

    def __init__(self, path: str):
        self._path, self._offset = path, 0
        try:
            self._file: BinaryIO | io.BytesIO = io.BytesIO() if remote_files.is_url(path) else \
                open(path, "wb", 0)  # type: ignore[assignment]  # noqa: SIM115  (`close` closes it)
        except (OSError, ValueError) as error:
            raise FileAccessError(path, "written", error) from None

    def write(self, content: bytes) -> None:
        """Add a record. Raises ValueError for one of 2^29 bytes or more. Where the disk takes but a part of it, the
        file ends with the record before."""
        left, begin = memoryview(formatted(content)), self._offset
        try:
            while left:  # A file without a buffer may take less than it is given.
                count = self._file.write(left)
                self._offset += count
                left = left[count:]
        except OSError as error:
            with contextlib.suppress(OSError):  # a pipe keeps what it was given
                self._file.truncate(begin)
                self._offset = self._file.seek(begin)
            raise FileAccessError(self._path, "written", error) from None

    def tell(self) -> int:
        """The byte where the next record will begin."""
        return self._offset

    def close(self, publish: bool = True) -> None:
        """Close the file. publish: whether one at a URL is to appear there."""
        if publish and isinstance(self._file, io.BytesIO) and not self._file.closed:
            remote_files.write(self._path, self._file.getvalue())
        self._file.close()
