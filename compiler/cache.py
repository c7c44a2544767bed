"""The kernel cache: object code on disk, one file for each kernel (cache_files.py has the format).

A file is written under another name in the same directory, synced and renamed, so that readers see all of it or
nothing, without locks. A file that is refused is set aside (`.bad`), and the caller builds it anew. Processes that miss
the same kernels at once divide them up by locks (`Cache.claims`), which only save work: nothing depends on them.

An entry's name is `<kernel>-<rest>.mxk`: digests of what the kernel is, and of everything else that its code depends on
(target, CPU, versions), so that a miss can be explained: see `Cache.explain`. The time of a file's last change is when
it was last used, to the hour; when the files of a directory are more than MXC_CACHE_SIZE, those used longest ago go.
"""
from __future__ import annotations

import errno
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mxc.compiler.cache_files import (
    OURS,
    PREFIX,
    UNSET,
    candidates,
    decode,
    encode,
    header,
    read,
    refusal,
    refused,
    remove_stale,
    why_unwritable,
)
from mxc.compiler.system import env

try:
    import fcntl
except ImportError:  # The system is not a POSIX one.
    fcntl = None  # type: ignore[assignment]

LIMIT = 2 << 30  # bytes, where MXC_CACHE_SIZE says nothing
TIDY_SHARE = 64  # A process that has stored 1/64 of the limit looks whether the directory keeps it.
LOCK = ".mxc.lock"
UNFINISHED = (".tmp", ".try")
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)  # errors of the process or system, not of a file
_warned: set[str] = set()


@dataclass(frozen=True)
class CacheEntry:
    """An entry, by its header alone. used: when it was last used, in seconds since 1970 (to the hour). name: what the
    kernel does; reason: why it was compiled; parts: what its code depends on, labelled."""

    key: str
    place: Path
    nbytes: int
    used: float
    name: str
    reason: str
    parts: Mapping[str, str]


@dataclass(frozen=True)
class Info:
    """What is in a cache's directory. nbytes: bytes of everything in it; limit: how many bytes there may be after a
    compilation (0: any number); refused: how many files were set aside because they were damaged; unfinished: how many
    files belong to writers that are at work or were killed; readable: further directories, which cannot be written to.
    """

    path: Path
    entries: int
    nbytes: int
    limit: int
    refused: int
    unfinished: int
    readable: tuple[Path, ...]


@dataclass(frozen=True)
class Removed:
    """How many files were removed, and their bytes."""

    files: int
    nbytes: int


def open_cache() -> Cache | None:
    """The cache of this process's environment; None where there is none: MXC_CACHE_DIR is empty, or no directory can be
    used, which is said once in a warning."""
    if env.text("MXC_CACHE_DIR", UNSET) == "":
        return None
    reasons: list[str] = []
    readable: list[Path] = []
    for path in candidates():
        reason = why_unwritable(path)
        if not reason:
            if reasons:
                _warn_once(f"kernels are cached in {path}, because {'; '.join(reasons)}")
            remove_stale(path)
            return Cache(path, tuple(readable), _limit())
        reasons.append(reason)
        if not refusal(path):
            readable.append(path)
    _warn_once(f"kernels are compiled but not cached: {'; '.join(reasons)}")
    return Cache(readable[0], tuple(readable[1:]), _limit(), writable=False) if readable else None


def _limit() -> int:
    """MXC_CACHE_SIZE in bytes."""
    given = env.text("MXC_CACHE_SIZE").strip()
    text = given.upper().removesuffix("B")
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(text[-1:], 1)
    number = text[:-1] if scale > 1 else text
    if number.isdecimal():
        return int(number) * scale
    if given:
        _warn_once(f"MXC_CACHE_SIZE is {given!r}, expected a number of bytes such as 500M or 2G; it is taken as 2G", "")
    return LIMIT


def _warn_once(message: str, advice: str = " Set MXC_CACHE_DIR to a directory of your own.") -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(f"mxc: {message}.{advice}", RuntimeWarning, stacklevel=3)


class Claims:
    """Which kernels this process is compiling, told to others by locks on the bytes of one file. A lock ends with its
    process, however that ends, and forked children have none."""

    def __init__(self, handle: int | None):
        self._handle = handle

    def take(self, key: str) -> bool:
        """True when no other process is compiling `key`, which then is this one's."""
        return self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB) if self._handle is not None else True

    def release(self, key: str) -> None:
        """Give up the claim on `key`: its code was stored, or is not going to be."""
        if self._handle is not None:
            self._lock(key, fcntl.LOCK_UN)

    def _lock(self, key: str, how: int) -> bool:
        assert self._handle is not None
        try:
            fcntl.lockf(self._handle, how, 1, int(key[:7] + key[-7:], 16))
        except BlockingIOError:
            return False
        except PermissionError:  # Some systems raise this in place of BlockingIOError.
            return False
        except OSError:  # The file system has no locks: every process compiles.
            return True
        return True


class Cache:
    """Entries in one directory. `refused` counts the files that were set aside.

    readable: further directories from which entries are read. limit: the most bytes of all entries; 0 for no limit.
    writable: False for a directory that may only be read.
    """

    def __init__(self, path: Path, readable: Sequence[Path] = (), limit: int = 0, writable: bool = True):
        self.path = path
        self.readable = tuple(readable)
        self.limit = limit
        self.writable = writable
        self.refused = 0
        self._unpruned = limit or LIMIT  # bytes stored since `tidy` pruned; so many that its first call prunes

    def place(self, key: str) -> Path:
        """Where the entry of `key` is, or would be."""
        return self.path / f"{key}.mxk"

    def get(self, key: str) -> bytes | None:
        """The code of `key`; None when there is no entry, or none that can be trusted (it is set aside)."""
        for folder in (self.path, *self.readable):
            place = folder / f"{key}.mxk"
            try:
                return decode(read(place), key)[1]
            except FileNotFoundError:
                continue
            except PermissionError as error:
                _warn_once(f"kernels in {folder} that are another user's are not used: {error.strerror}", "")
            except (ValueError, KeyError, TypeError, OSError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                if getattr(error, "errno", None) in SHORTAGES:  # The file may be sound: it is not set aside.
                    _warn_once(f"the cached kernel {place} cannot be read and is built anew: {reason}", "")
                else:
                    self._set_aside(place, reason)
        return None

    def put(self, key: str, parts: Mapping[str, str], code: bytes, name: str = "", reason: str = "") -> None:
        """Store the code of `key`; name, reason: as in `CacheEntry`. What the file system does not allow is said once
        in a warning."""
        if not self.writable:
            return
        data = encode(key, parts, code, name, reason)
        try:
            try:
                self._write(key, data)
            except FileNotFoundError:  # Somebody has removed the directory.
                if (trouble := why_unwritable(self.path)):
                    raise OSError(trouble) from None
                self._write(key, data)
        except OSError as error:
            _warn_once(f"kernels are compiled but not cached in {self.path}: {error.strerror or error}")
        self._unpruned += len(data)

    def tidy(self) -> None:
        """`prune`, which looks at every file, if this process has stored enough since it did so last."""
        if self._unpruned * TIDY_SHARE >= (self.limit or LIMIT):
            self._unpruned = 0
            self.prune()

    def _write(self, key: str, data: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=self.path, prefix=PREFIX, suffix=".tmp")  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                if readers := self.path.stat().st_mode & 0o044:  # Others may read the directory, and so its files.
                    os.chmod(name, 0o600 | readers)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.place(key))
        except BaseException:
            if os.path.exists(name):
                os.unlink(name)
            raise

    @contextmanager
    def claims(self) -> Iterator[Claims]:
        """Locks on kernels that are about to be compiled, for as long as the block."""
        handle = None
        if fcntl is not None and self.writable:
            with suppress(OSError):
                handle = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            yield Claims(handle)
        finally:
            if handle is not None:
                os.close(handle)

    def explain(self, key: str, parts: Mapping[str, str]) -> str:
        """Why there is no code of `key`: it was damaged, or which parts differ from an entry of the same kernel (of
        several, the one used last), or the kernel is new here."""
        return self.reasons([key], parts)[key]

    def reasons(self, keys: Iterable[str], parts: Mapping[str, str]) -> dict[str, str]:
        """`explain` of several keys, by one look at the directory."""
        kernels = {key: key.split("-")[0] for key in keys}
        near = self._entries_of(tuple(f"{kernel}-" for kernel in kernels.values()))
        return {key: self._reason(key, parts, [e for e in near if e.key.split("-")[0] == kernel and e.key != key])
                for key, kernel in kernels.items()}

    def _reason(self, key: str, parts: Mapping[str, str], near: Iterable[CacheEntry]) -> str:
        if self.place(key).with_suffix(".bad").exists():
            return "its entry was damaged and set aside"
        for entry in near:
            changed = [f"{label} was {entry.parts.get(label, '')!r}, is {parts.get(label, '')!r}"
                       for label in dict.fromkeys([*parts, *entry.parts])
                       if parts.get(label) != entry.parts.get(label)]
            if changed:
                return "; ".join(changed)
        return "this kernel was not compiled before"

    def entries(self) -> list[CacheEntry]:
        """All entries of the directory whose headers can be read, those used last first. Their content is not
        looked at: see `verify`."""
        return self._entries_of(("",))

    def _entries_of(self, starts: tuple[str, ...]) -> list[CacheEntry]:
        found = []
        for place, size, used in self._files(starts):
            if place.suffix == ".mxk":
                try:
                    about = header(place)
                except (ValueError, OSError):
                    continue
                found.append(CacheEntry(place.stem, place, size, used, about["name"], about["reason"], about["parts"]))
        return sorted(found, key=lambda e: (-e.used, e.key))

    def _files(self, starts: tuple[str, ...] = ("",)) -> list[tuple[Path, int, float]]:
        """(place, bytes, time of last change) of what this module has written to the directory, with names that begin
        with one of `starts`."""
        found = []
        try:
            with os.scandir(self.path) as scan:
                for item in scan:
                    if item.name.startswith(starts) and OURS.fullmatch(item.name):
                        try:
                            status = item.stat(follow_symlinks=False)
                        except OSError:  # another process removed it
                            continue
                        found.append((Path(item.path), status.st_size, status.st_mtime))
        except OSError:
            return []
        return found

    def refusal(self) -> str:
        """Why the directory does not take a kernel's file, as on a full disk; empty where it does."""
        return refused(self.path)

    def info(self) -> Info:
        """Sums over the directory."""
        files = self._files()
        kinds = [place.suffix for place, _, _ in files]
        return Info(self.path, kinds.count(".mxk"), sum(size for _, size, _ in files), self.limit, kinds.count(".bad"),
                    sum(map(kinds.count, UNFINISHED)), self.readable)

    def verify(self) -> list[tuple[Path, str]]:
        """The entries that would not be used, and why. Reads all files; changes nothing."""
        wrong = []
        for place, _, _ in sorted(self._files()):
            if place.suffix == ".mxk":
                try:
                    decode(read(place, use=False), place.stem)
                except FileNotFoundError:  # removed by another process meanwhile
                    continue
                except (ValueError, KeyError, TypeError, OSError) as error:
                    wrong.append((place, getattr(error, "strerror", None) or str(error)))
        return wrong

    def foreign(self) -> list[Path]:
        """Files that are called `.mxk` and are not this module's by their names: nothing reads or removes them."""
        return sorted(place for place in self.path.glob("*.mxk") if not OURS.fullmatch(place.name))

    def prune(self, limit: int | None = None) -> Removed:
        """Remove what was set aside and what killed writers left, then the entries used longest ago until all are at
        most `limit` bytes (None: the cache's own; 0: any number)."""
        limit = self.limit if limit is None else limit
        remove_stale(self.path)
        files = sorted(self._files(), key=lambda f: f[2])
        gone = [f for f in files if f[0].suffix == ".bad"]
        kept = [f for f in files if f[0].suffix == ".mxk"]
        total = sum(size for _, size, _ in kept)
        for file in kept if limit else ():
            if total <= limit:
                break
            gone.append(file)
            total -= file[1]
        return self._remove(gone)

    def clear(self) -> Removed:
        """Remove everything that the cache has written; files of others stay."""
        return self._remove(self._files())

    def _remove(self, files: Sequence[tuple[Path, int, float]]) -> Removed:
        count = nbytes = 0
        for place, size, _ in files:
            try:
                _delete(place)
            except OSError:  # another process was faster
                continue
            count, nbytes = count + 1, nbytes + size
        return Removed(count, nbytes)

    def _set_aside(self, place: Path, reason: str) -> None:
        self.refused += 1
        _warn_once(f"the cached kernel {place} is not used and is built anew: {reason}", "")
        set_aside(place)


def set_aside(place: Path) -> None:
    """Keep what is in an entry's place, if anything, as its `.bad`, where the file system allows it."""
    aside = place.with_suffix(".bad")
    with suppress(OSError):
        if aside.is_dir() or place.is_dir():  # A rename replaces no directory, and puts none in a file's place.
            with suppress(FileNotFoundError):
                _delete(aside)
        os.replace(place, aside)


def _delete(place: Path) -> None:
    """Remove a file, or what somebody has put in its place."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
