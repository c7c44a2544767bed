"""All that a file of records holds, sound or not: where its records are and what is wrong between them.

`record_file.Reader` gives one record after the other and stops at damage; this goes on behind it, where the next record
begins.
"""
from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from mxc.compiler.error import FileAccessError
from mxc.compiler.system import input_files
from mxc.runtime.record_file import BETWEEN, FIRST, HEAD, LAST, LENGTH_BITS, MAGIC, WHOLE, WORD

# Bytes that are searched at once for the beginning of a record: few at first, as it may be near, then more.
_LEAST, _MOST = 1 << 12, 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """A record that is whole: the bytes where it begins and ends, and (begin, end) of the contents of its parts."""

    offset: int
    end: int
    parts: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        """Bytes of the content, with the magic words that parts leave out."""
        return sum(end - begin for begin, end in self.parts) + len(WORD) * (len(self.parts) - 1)


@dataclass(frozen=True, slots=True)
class Fault:
    """A byte of the file from which on it is not what it should be, and why."""

    offset: int
    reason: str


class RecordScan:
    """A file, or a pipe's content, in which records are looked for. Raises FileAccessError where it cannot be read."""

    def __init__(self, path: str):
        self._path = path
        try:
            self._file: BinaryIO = open(path, "rb", 0) if input_files.is_regular(path) else \
                io.BytesIO(input_files.content(path))  # type: ignore[assignment]  # noqa: SIM115  (`close` closes it)
            self.size = self._file.seek(0, os.SEEK_END)
        except (OSError, ValueError) as error:  # A name with a zero byte raises ValueError.
            raise FileAccessError(path, "read", error) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def found(self, thorough: bool = False) -> Iterator[Record | Fault]:
        """Every record and every fault, in their order.

        thorough: read the contents too; one in which another record begins has a wrong length.
        """
        at = 0
        while at < self.size:
            each = self._record(at, thorough)
            yield each
            at = each.end if isinstance(each, Record) else self._next(max(each.offset, at + 1))

    def content(self, record: Record, most: int | None = None) -> bytes:
        """A record's content; of one of a single part only the first `most` bytes, where that is given."""
        if most is not None and len(record.parts) == 1:
            begin, end = record.parts[0]
            return self._read(begin, min(end - begin, most))
        return WORD.join(self._read(begin, end - begin) for begin, end in record.parts)

    def _record(self, offset: int, thorough: bool) -> Record | Fault:
        at = offset
        parts: list[tuple[int, int]] = []
        while True:
            head = self._read(at, HEAD.size)
            what = "a part of a record" if parts else "a record"
            if len(head) < HEAD.size:
                return Fault(at, f"expected {HEAD.size} bytes that begin {what}, but {len(head)} are left: the file "
                             "was cut off")
            magic, word = HEAD.unpack(head)
            flag, length = word >> LENGTH_BITS, word & (1 << LENGTH_BITS) - 1
            if magic != MAGIC:
                return Fault(at, f"expected 0x{MAGIC:08x}, which begins {what}, got 0x{magic:08x}")
            allowed = (BETWEEN, LAST) if parts else (WHOLE, FIRST)
            if flag not in allowed:
                return Fault(at, f"expected the part flag {allowed[0]} or {allowed[1]}, got {flag}")
            begin, end = at + HEAD.size, at + HEAD.size + length
            at = end + -length % 4
            if at > self.size:
                return Fault(begin - HEAD.size, f"{what} of {length:,} bytes begins here, but {self.size - begin:,} "
                             "are left: the file was cut off, or the length is damaged")
            # Such a word is left out where a record is written, and its content parted.
            inner = next((word for word in self._words(begin, end) if (word - begin) % 4 == 0), None) \
                if thorough else None
            if inner is not None:
                return Fault(begin - HEAD.size, f"{what} of {length:,} bytes begins here, but another does at byte "
                             f"{inner}: the length is damaged")
            parts.append((begin, end))
            if flag in (WHOLE, LAST):
                return Record(offset, at, tuple(parts))

    def _next(self, at: int) -> int:
        """Where the next record begins, from a byte on; the file's size where none does."""
        for found in self._words(at, self.size):
            head = self._read(found, HEAD.size)
            if len(head) == HEAD.size:
                word = HEAD.unpack(head)[1]
                is_inside = found + HEAD.size + (word & (1 << LENGTH_BITS) - 1) <= self.size
                if is_inside and word >> LENGTH_BITS in (WHOLE, FIRST):
                    return found
        return self.size

    def _words(self, at: int, end: int) -> Iterator[int]:
        """The places of the magic word between two bytes."""
        size = _LEAST
        while at < end:
            piece = self._read(at, min(size + len(WORD) - 1, end - at))
            found = piece.find(WORD)
            while found >= 0:
                yield at + found
                found = piece.find(WORD, found + 1)
            at, size = at + size, min(2 * size, _MOST)

    def _read(self, offset: int, count: int) -> bytes:
        """So many bytes from a place on; less at the end of the file."""
        try:
            self._file.seek(offset)
            pieces = [self._file.read(count)]
            while pieces[-1] and (left := count - sum(map(len, pieces))):  # The system gives at most 2^31 at once.
                pieces.append(self._file.read(left))
        except OSError as error:
            raise FileAccessError(self._path, "read", error) from None
        return b"".join(pieces) if len(pieces) > 1 else pieces[0]
