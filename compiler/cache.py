"""The kernel cache: object code on disk, one file for each kernel.

    magic (8 bytes) | version (u32) | header length (u32) | header (JSON) | object length (u64) | object | SHA-256

All little endian; the digest is over everything before it, so a file that was cut or changed anywhere is refused. A
file is written under another name in the same directory, synced and renamed, so that readers see all of it or nothing,
without locks. A file that is refused is set aside (`.bad`), and the caller builds it anew. Nothing in a file is run or
unpickled before its digest and its key were compared; the directory and its files belong to this user and nobody else
may write to them.

An entry's name is `<kernel>-<rest>.mxk`: digests of what the kernel is, and of everything else that its code depends on
(target, CPU, versions), so that a miss can be explained: see `Cache.explain`.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

from mxc.compiler import env

MAGIC = b"mxckern\x1a"
VERSION = 1
HEAD = struct.Struct("<8sII")
SIZE = struct.Struct("<Q")
UNSET = "\0"
FLAGS = ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK")  # a pipe in an entry's place must not make the reader wait
STALE = 3600  # seconds after which a temporary file belongs to a writer that was killed


def digest(parts: Mapping[str, str]) -> str:
    """24 hexadecimal digits of labelled parts."""
    text = json.dumps(dict(parts), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def entry_key(kernel: str, parts: Mapping[str, str]) -> str:
    """The key of the code for `kernel` (its text) under `parts` (what else it depends on, labelled)."""
    return f"{digest({'kernel': kernel})}-{digest(parts)}"


def encode(key: str, parts: Mapping[str, str], code: bytes) -> bytes:
    """The bytes of an entry's file."""
    header = json.dumps({"key": key, "parts": dict(parts)}, sort_keys=True).encode()
    body = HEAD.pack(MAGIC, VERSION, len(header)) + header + SIZE.pack(len(code)) + code
    return body + hashlib.sha256(body).digest()


def decode(data: bytes, key: str | None = None) -> tuple[dict[str, str], bytes]:
    """The labelled parts and the code in an entry's file. Raises ValueError with the reason when it is not sound, or is
    not the entry of `key`."""
    if len(data) < HEAD.size + SIZE.size + 32:
        raise ValueError(f"{len(data)} bytes are too few")
    magic, version, length = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("it is not a kernel file")
    if version != VERSION:
        raise ValueError(f"its version is {version}, expected {VERSION}")
    if hashlib.sha256(data[:-32]).digest() != data[-32:]:
        raise ValueError("its checksum does not match its content")
    start = HEAD.size + length + SIZE.size
    if start + 32 > len(data) or SIZE.unpack_from(data, HEAD.size + length)[0] != len(data) - 32 - start:
        raise ValueError("its lengths do not fit its size")
    header = json.loads(data[HEAD.size:HEAD.size + length])
    if key is not None and header["key"] != key:
        raise ValueError(f"it holds the entry {header['key']}")
    return header["parts"], data[start:-32]


def _is_private(path: Path) -> bool:
    """True for a directory of this user that nobody else may write to."""
    status = os.lstat(path)
    owned = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return stat.S_ISDIR(status.st_mode) and owned and not status.st_mode & 0o022


def _prepared(path: Path) -> str:
    """"" when the directory is there and may be used, else why it may not."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(path):
            return f"{path} does not belong to this user alone (others can write to it)"
        handle, name = tempfile.mkstemp(dir=path, suffix=".try")
        os.close(handle)
        os.unlink(name)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return ""


def _remove_stale(path: Path) -> None:
    """Remove what writers that were killed left behind."""
    for left in (*path.glob(".*.tmp"), *path.glob("*.try")):
        try:
            if time.time() - left.stat().st_mtime > STALE:
                left.unlink()
        except OSError:  # another process was faster
            continue


def candidates() -> list[Path]:
    """Where the cache may lie, best first: MXC_CACHE_DIR, XDG_CACHE_HOME/mxc, ~/.cache/mxc, a private temporary one."""
    chosen = env.text("MXC_CACHE_DIR", UNSET)
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    temporary = Path(tempfile.gettempdir()) / f"mxc-{user}"
    if chosen != UNSET:
        return [Path(chosen).absolute(), temporary]
    xdg = env.text("XDG_CACHE_HOME")
    try:
        home = Path.home() / ".cache"
    except RuntimeError:
        home = temporary.parent / f"mxc-{user}"
    return [Path(xdg) / "mxc" if xdg else home / "mxc", temporary]


def open_cache() -> Cache | None:
    """The cache of this process's environment; None where there is none: MXC_CACHE_DIR is empty, or no directory can be
    used, which is said once in a warning."""
    if env.text("MXC_CACHE_DIR", UNSET) == "":
        return None
    reasons: list[str] = []
    for path in candidates():
        reason = _prepared(path)
        if not reason:
            if reasons:
                _warn_once(f"kernels are cached in {path}, because {'; '.join(reasons)}")
            _remove_stale(path)
            return Cache(path)
        reasons.append(reason)
    _warn_once(f"kernels are compiled but not cached: {'; '.join(reasons)}")
    return None


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(f"mxc: {message}. Set MXC_CACHE_DIR to a directory of your own.", RuntimeWarning, stacklevel=3)


class Cache:
    """Entries in one directory. `refused` counts the files that were set aside."""

    def __init__(self, path: Path):
        self.path = path
        self.refused = 0

    def place(self, key: str) -> Path:
        return self.path / f"{key}.mxk"

    def get(self, key: str) -> bytes | None:
        """The code of `key`; None when there is no entry, or none that can be trusted (it is set aside)."""
        place = self.place(key)
        try:
            handle = os.open(place, os.O_RDONLY | sum(getattr(os, name, 0) for name in FLAGS))
        except FileNotFoundError:
            return None
        except OSError as error:
            self._set_aside(place, error.strerror or str(error))
            return None
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            self._set_aside(place, "it is not a file")
            return None
        with os.fdopen(handle, "rb") as file:
            if (hasattr(os, "geteuid") and status.st_uid != os.geteuid()) or status.st_mode & 0o022:
                self._set_aside(place, "others can write to it")
                return None
            data = file.read()
        try:
            return decode(data, key)[1]
        except (ValueError, KeyError, TypeError) as error:
            self._set_aside(place, str(error))
            return None

    def put(self, key: str, parts: Mapping[str, str], code: bytes) -> None:
        """Store the code of `key`. What the file system does not allow is said once in a warning."""
        name = ""
        try:
            handle, name = tempfile.mkstemp(dir=self.path, prefix=".", suffix=".tmp")  # mode 0600
            with os.fdopen(handle, "wb") as file:
                file.write(encode(key, parts, code))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.place(key))
        except OSError as error:
            _warn_once(f"kernels are compiled but not cached in {self.path}: {error.strerror or error}")
            if name and os.path.exists(name):
                os.unlink(name)

    def explain(self, key: str, parts: Mapping[str, str]) -> str:
        """Why `key` is not there: which parts differ from an entry of the same kernel."""
        for place in sorted(self.path.glob(f"{key.split('-')[0]}-*.mxk")):
            try:
                there = decode(place.read_bytes())[0]
            except (ValueError, KeyError, TypeError, OSError):
                continue
            changed = [f"{label} was {there.get(label)!r}, is {text!r}" for label, text in parts.items()
                       if there.get(label) != text]
            if changed:
                return "; ".join(changed)
        return "this kernel was not compiled before"

    def _set_aside(self, place: Path, reason: str) -> None:
        self.refused += 1
        _warn_once(f"the cached kernel {place} is not used and is built anew: {reason}")
        try:
            os.replace(place, place.with_suffix(".bad"))
        except OSError:
            return
