"""The file format of artifacts: a manifest and sections of bytes, each with a checksum (in full: docs/artifact.md).

    head (64 bytes) | manifest (JSON) | section | section | ...

The manifest ends, and each section begins and ends, at a multiple of 4096 bytes, so that a mapped section is aligned
and every byte of the file is under a checksum.
"""
from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
import struct
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from mxc.compiler.error import FileAccessError, ModelFileError
from mxc.compiler.system import env

MAGIC = b"mxcmodl\x1a"
VERSION = 3
HEAD = struct.Struct("<8sIIQ8s32s")  # magic, version, bytes of the manifest, bytes of the file, zeros, SHA-256
PAGE = 4096
FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY")  # O_NONBLOCK: a pipe in the file's place does not make the reader wait
ALIGNMENT = 64  # bytes: arrays in a section begin at multiples of it
CHUNK, BLOCK, ROW = 16 << 20, 256 << 10, 4096  # bytes of a digest's piece, of what is summed at once, of a row
MOST_THREADS = 4  # that compute a checksum: with more, memory is no faster
Piece = bytes | np.ndarray


class Contents(NamedTuple):
    """What is in a file. sections: read-only views of the mapped file, which they keep mapped."""

    path: str
    manifest: dict[str, Any]
    sections: dict[str, memoryview]


def aligned(size: int, to: int = ALIGNMENT) -> int:
    """`size`, or the next multiple of `to`."""
    return -(-size // to) * to


class Section:
    """A section of a file: arrays one behind the other, each key's once."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.end = 0
        self._places: dict[Hashable, int] = {}

    def add(self, key: Hashable, array: np.ndarray) -> int:
        """The offset of the array of that key, which is added if it is not there yet."""
        if key not in self._places:
            self._places[key] = self.end
            self.pieces.append(array)
            self.end += aligned(array.nbytes)
        return self._places[key]


def checksum(data: memoryview) -> str:
    """A checksum of a section (a multiple of 4096 bytes), as fast as memory is read; it tells every change of one word.

    A chunk is summed as 64-bit words in rows of 512: modulo 2^64 the sum of each column and of each row, so that rows
    which changed places show in the ones, words of a row in the others, and two changes that cancel each other in a
    column do not in their rows. The checksum is the SHA-256 of the SHA-256 of each chunk's sums, in hexadecimal digits.
    """
    starts = range(0, len(data), CHUNK)
    digests = [b""] * len(starts)
    todo = iter(range(len(starts)))

    def work() -> None:
        for i in todo:
            words = np.frombuffer(data[starts[i]:starts[i] + CHUNK], np.uint64).reshape(-1, ROW // 8)
            columns, rows = np.zeros(ROW // 8, np.uint64), np.empty(len(words), np.uint64)
            for row in range(0, len(words), BLOCK // ROW):  # a block stays in a core's cache for its second reading
                block = words[row:row + BLOCK // ROW]
                columns += block.sum(axis=0)
                block.sum(axis=1, out=rows[row:row + len(block)])
            digests[i] = hashlib.sha256(columns.tobytes() + rows.tobytes()).digest()

    helpers = [threading.Thread(target=work) for _ in range(min(len(starts), env.num_threads(), MOST_THREADS) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    return hashlib.sha256(b"".join(digests)).hexdigest()


def write(path: str | os.PathLike[str], manifest: Mapping[str, Any], sections: Mapping[str, Sequence[Piece]]) -> None:
    """Write a file, whole or not at all: `manifest` (which gets the entry "sections") and the pieces of each section,
    every piece at a multiple of 64 bytes of it. Raises FileAccessError when the file cannot be written."""
    from mxc.runtime.whole_file import replacing  # only now: who reads a file does not pay for it

    with replacing(path) as file:
        _fill(file, dict(manifest), sections)


def _fill(file: BinaryIO, manifest: dict[str, Any], sections: Mapping[str, Sequence[Piece]]) -> None:
    lengths = {name: aligned(sum(aligned(_nbytes(piece)) for piece in pieces), PAGE)
               for name, pieces in sections.items()}

    def encoded(sums: Mapping[str, str]) -> bytes:
        listed = [{"name": name, "length": length, "checksum": sums[name]} for name, length in lengths.items()]
        text = json.dumps({**manifest, "sections": listed}, separators=(",", ":")).encode()
        return text + b" " * (aligned(HEAD.size + len(text), PAGE) - HEAD.size - len(text))

    start = HEAD.size + len(encoded(dict.fromkeys(lengths, "0" * 64)))
    size = start + sum(lengths.values())
    file.truncate(size)
    place = start
    for name, pieces in sections.items():
        at = place
        for piece in pieces:
            file.seek(at)
            file.write(piece if isinstance(piece, bytes) else np.ascontiguousarray(piece).reshape(-1).data)
            at += aligned(_nbytes(piece))
        place += lengths[name]
    file.flush()
    with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        places = _places(start, lengths.items())
        text = encoded({name: checksum(view[a:b]) for name, (a, b) in places.items()})
    head = HEAD.pack(MAGIC, VERSION, len(text), size, bytes(8), bytes(32))[:-32]
    file.seek(0)
    file.write(head + hashlib.sha256(head + text).digest() + text)


def _nbytes(piece: Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.nbytes


def _places(start: int, lengths: Iterable[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Where sections of these lengths begin and end."""
    places = {}
    for name, length in lengths:
        places[name] = start, start + length
        start += length
    return places


def read(path: str | os.PathLike[str]) -> Contents:
    """Map a file and check all of it.

    Raises FileAccessError when it cannot be read, ModelFileError when it is no artifact, or damaged anywhere.
    """
    name = os.fspath(path)
    try:
        handle = os.open(name, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in FLAGS))
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(name, "expected an artifact (NAME.mxc), but it is not a regular file")
            if status.st_size < HEAD.size:
                raise ModelFileError(name, f"expected an artifact (NAME.mxc), but it has only {status.st_size} bytes")
            data = memoryview(mmap.mmap(handle, status.st_size, access=mmap.ACCESS_READ))
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:  # ValueError: it became shorter meanwhile, or its name has a zero byte
        raise FileAccessError(name, "read", error) from None
    manifest, start = _manifest(name, data)
    try:
        listed = [(str(entry["name"]), int(entry["length"]), str(entry["checksum"])) for entry in manifest["sections"]]
        places = _places(start, (entry[:2] for entry in listed))
        if any(length < 0 or length % PAGE for _, length, _ in listed) or len(places) != len(listed) or \
                start + sum(length for _, length, _ in listed) != len(data):
            raise ValueError("its sections do not fill the file")
    except (KeyError, TypeError, ValueError) as error:
        raise malformed(name, error) from None
    sections = {section: data[a:b] for section, (a, b) in places.items()}
    for section, _, expected in listed:
        if checksum(sections[section]) != expected:
            raise ModelFileError(name, f"its section {section!r} is damaged: its checksum is not the one that the "
                                 "manifest has. Get or make the file anew", places[section][0])
    return Contents(name, manifest, sections)


def _manifest(name: str, data: memoryview) -> tuple[dict[str, Any], int]:
    """The manifest and where it ends."""
    magic, version, length, size, _, digest = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ModelFileError(name, f"it is not an artifact of mxc: it begins with {magic!r}, expected {MAGIC!r}", 0)
    if version != VERSION:
        raise ModelFileError(name, f"it has version {version} of the format of artifacts, this mxc reads version "
                             f"{VERSION}: compile the model again", 8)
    if size != len(data):
        raise ModelFileError(name, f"it has {len(data)} bytes, but should have {size}: it was cut off or is damaged")
    end = HEAD.size + length
    if end > size or end % PAGE or hashlib.sha256(bytes(data[:HEAD.size - 32]) + bytes(data[HEAD.size:end])).digest() \
            != digest:
        raise ModelFileError(name, "its head or manifest is damaged: the checksum does not match. Get or make the file "
                             "anew")
    try:
        manifest = json.loads(bytes(data[HEAD.size:end]))
        if not isinstance(manifest, dict):
            raise ValueError("it is no JSON object")
    except (ValueError, RecursionError) as error:
        raise malformed(name, error) from None
    return manifest, end


def malformed(path: str, error: Exception) -> ModelFileError:
    """What to raise for a manifest or section that is not what the format says, though its checksum is right."""
    return ModelFileError(path, f"its content is not of the form that mxc writes ({type(error).__name__}: {error}): "
                          "compile the model again")
