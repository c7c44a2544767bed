"""Files of the kernel cache: what an entry looks like, and which directories may hold entries.

    magic (8 bytes) | version (u32) | header length (u32) | header (JSON) | object length (u64) | object | SHA-256

All little endian; the digest is over everything before it, so a file that was cut or changed anywhere is refused.
Nothing in a file is run or unpickled before its digest and its key were compared; directories and files belong to this
user, or to the system's, and nobody else may write to them.
"""
from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import stat
import struct
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from mxc.compiler.system import env

MAGIC = b"mxckern\x1a"
VERSION = 2
HEAD = struct.Struct("<8sII")
SIZE = struct.Struct("<Q")
UNSET = "\0"
PREFIX = ".mxc-"  # Names of temporary files begin so: the directory may have files of other programs.
OURS = re.compile(r"[0-9a-f]+-[0-9a-f]+\.(mxk|bad)|\.mxc-.*\.(tmp|try)|\.mxc\.lock")  # names of all files of the cache
FLAGS = ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK")  # a pipe in an entry's place must not make the reader wait
STALE = 3600  # seconds after which a temporary file belongs to a writer that was killed
PROBE = 1 << 18  # bytes: more than most kernels have, so that a disk which takes them is not full
TOUCH = 3600  # seconds: how exactly the time of an entry's last use is kept


def digest(parts: Mapping[str, str]) -> str:
    """24 hexadecimal digits of labelled parts."""
    text = json.dumps(dict(parts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@functools.lru_cache(maxsize=16)  # A process asks with few `parts`: for kernels and for plans of each target.
def _digest_of(parts: frozenset[tuple[str, str]]) -> str:
    return digest(dict(parts))


def entry_key(kernel: str, parts: Mapping[str, str]) -> str:
    """The key of the code for `kernel` (its text) under `parts` (what else it depends on, labelled)."""
    return f"{digest({'kernel': kernel})}-{_digest_of(frozenset(parts.items()))}"


def encode(key: str, parts: Mapping[str, str], code: bytes, name: str = "", reason: str = "") -> bytes:
    """The bytes of an entry's file. name, reason: for people, what the kernel does and why it was compiled."""
    header = json.dumps({"key": key, "parts": dict(parts), "name": name, "reason": reason}, sort_keys=True).encode()
    body = HEAD.pack(MAGIC, VERSION, len(header)) + header + SIZE.pack(len(code)) + code
    return body + hashlib.sha256(body).digest()


def _header_length(data: bytes) -> int:
    if len(data) < HEAD.size + SIZE.size + 32:
        raise ValueError(f"{len(data)} bytes are too few")
    magic, version, length = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("it is not a kernel file")
    if version != VERSION:
        raise ValueError(f"its version is {version}, expected {VERSION}")
    return int(length)


def decode(data: bytes, key: str | None = None) -> tuple[dict[str, str], bytes]:
    """The labelled parts and the code in an entry's file. Raises ValueError with the reason when it is not sound, or is
    not the entry of `key`."""
    length = _header_length(data)
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise ValueError("its checksum does not match its content")
    start = HEAD.size + length + SIZE.size
    if start + 32 > len(data) or SIZE.unpack_from(data, HEAD.size + length)[0] != len(data) - 32 - start:
        raise ValueError("its lengths do not fit its size")
    header = json.loads(data[HEAD.size:HEAD.size + length])
    if key is not None and header["key"] != key:
        raise ValueError(f"it holds the entry {header['key']}")
    return header["parts"], data[start:-32]


def header(place: Path) -> dict:
    """The header of an entry's file, whose checksum is not looked at: key, parts, name, reason. Raises ValueError or
    OSError when the file cannot be an entry's."""
    with _opened(place)[0] as file:
        start = file.read(HEAD.size)
        length = _header_length(start + bytes(SIZE.size + 32)) if len(start) == HEAD.size else -1
        text = file.read(length) if 0 <= length <= os.fstat(file.fileno()).st_size else b""
    found = json.loads(text)
    if not isinstance(found, dict) or set(found) != {"key", "parts", "name", "reason"}:
        raise ValueError("its header is none")
    return found


def read(place: Path, use: bool = True) -> bytes:
    """An entry's file, as long as nobody else can have written it. use: its time of last use is now. Raises
    FileNotFoundError, OSError, or ValueError with the reason."""
    file, status = _opened(place)
    with file:
        if not _trusted(status):
            raise ValueError("others can write to it")
        if use and time.time() - status.st_mtime > TOUCH:
            with suppress(OSError):  # The directory may be one that this process can only read.
                os.utime(file.fileno() if os.utime in os.supports_fd else place)
        return file.read()


def _opened(place: Path) -> tuple[BinaryIO, os.stat_result]:
    """An entry's file to read. Raises ValueError for what is no file, OSError."""
    handle = os.open(place, os.O_RDONLY | sum(getattr(os, name, 0) for name in FLAGS))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise ValueError("it is not a file")
    return os.fdopen(handle, "rb"), status


def _trusted(status: os.stat_result) -> bool:
    """Whether a file or directory is this user's, or the system's, and nobody else may write to it."""
    return _owned(status) and (not hasattr(os, "geteuid") or not status.st_mode & 0o022)


def _owned(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid in (0, os.geteuid())


def refusal(path: Path) -> str:
    """"" for a directory whose entries may be used, else why they may not."""
    try:
        link, status = os.lstat(path), os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is not a directory"
    # The owner of a link can change where it points to, whatever the link's mode is.
    sound = _trusted(status) and (not stat.S_ISLNK(link.st_mode) or _owned(link))
    return "" if sound else f"{path} does not belong to this user alone (others can write to it)"


def why_unwritable(path: Path) -> str:
    """"" when the directory is there, which this makes if need be, and can be written to, else the reason."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := refusal(path):
            return reason
        handle, name = tempfile.mkstemp(dir=path, prefix=PREFIX, suffix=".try")
        os.close(handle)
        os.unlink(name)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return ""


def refused(path: Path) -> str:
    """Why a file of PROBE bytes cannot be written to a directory, as on a full disk; empty when it can."""
    try:
        with tempfile.NamedTemporaryFile(dir=path, prefix=PREFIX, suffix=".try") as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def remove_stale(path: Path) -> None:
    """Remove what writers that were killed left behind."""
    with suppress(OSError), os.scandir(path) as scan:
        for left in scan:
            if left.name.startswith(PREFIX) and left.name.endswith((".tmp", ".try")):
                with suppress(OSError):  # Another process may have removed it first.
                    if time.time() - left.stat().st_mtime > STALE:
                        os.unlink(left.path)


def candidates() -> list[Path]:
    """Where the cache may lie, best first: MXC_CACHE_DIR, XDG_CACHE_HOME/mxc, ~/.cache/mxc, a private temporary one."""
    chosen = env.text("MXC_CACHE_DIR", UNSET)
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    try:
        temporary = [Path(tempfile.gettempdir()) / f"mxc-{user}"]
    except FileNotFoundError:  # Python accepts only directories that take a file; where disks are full there is none.
        temporary = []
    if chosen != UNSET:
        return [Path(chosen).absolute(), *temporary]
    xdg = env.text("XDG_CACHE_HOME")
    if xdg:
        return [Path(xdg) / "mxc", *temporary]
    try:
        return [Path.home() / ".cache" / "mxc", *temporary]
    except RuntimeError:  # The system tells no home directory.
        return temporary
