"""Files from a server, which appear whole or not at all: what was interrupted goes on where it stopped."""
from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mxc.compiler.error import AssertedError, FileAccessError, ModelFileError

try:
    import fcntl
except ImportError:  # a system without such locks: processes that want one file each fetch it
    fcntl = None  # type: ignore[assignment]

PATIENCE = 60.0  # seconds that a server may say nothing
PAUSE, LONGEST = 0.2, 10.0  # seconds before the second try, twice as long before each one more, and at most
PIECE = 1 << 18  # bytes that are written at once
# Answers that another try may change: timeout, too many requests, and errors of the server itself (RFC 9110).
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_PARTIAL, _BEYOND = 206, 416


def has_sha1(path: str | os.PathLike[str], digest: str) -> bool:
    """Whether a file has the SHA-1 digest that begins so."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest().startswith(digest.lower())


def download(url: str, target: str | os.PathLike[str], sha1: str | None = None, retries: int = 5,
             is_verified: bool = True) -> None:
    """Fetch a file to `target`, whose folder is made.

    sha1: the digest that it must have, or how it begins. retries: how often it is tried again where a try may help, as
    after a lost connection. is_verified: whether the server's certificate is checked. What came so far is in
    TARGET.part: a further try, and with sha1 also a later call, asks for the rest alone. Processes that want one file
    at once wait for the first of them. Raises AssertionError for less than 0 retries, FileAccessError for a file that
    cannot be written, ModelFileError, which says why, where it cannot be had; what was at `target` then stays.
    """
    if retries < 0:
        raise AssertedError(f"retries is the number of further tries, 0 or more; got {retries}")
    path = Path(target)
    try:
        before = _stamp(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with _claimed(path.with_name(f"{path.name}.part")) as part:
            if _stamp(path) != before and (sha1 is None or has_sha1(path, sha1)):
                return  # another process has fetched it meanwhile
            _Fetching(url, path, part, sha1, is_verified).run(retries)
    except OSError as error:
        raise FileAccessError(str(path), "written", error) from None


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether an open file is the one of that name: others rename and remove files at any moment."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _claimed(part: Path) -> Iterator[BinaryIO]:
    """The file of that name, which no other process has: who has it is waited for."""
    while True:
        with open(part, "a+b") as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(part, file):  # not renamed by another while it was waited for
                yield file
                if not os.fstat(file.fileno()).st_size and _is_at(part, file):
                    part.unlink()
                return


class _Failure(Exception):
    """Why a try failed. may_pass: whether another one may do better."""

    def __init__(self, reason: str, may_pass: bool):
        super().__init__(reason)
        self.may_pass = may_pass


class _Fetching:
    """One file that is fetched into `part`, in one try or several."""

    def __init__(self, url: str, path: Path, part: BinaryIO, sha1: str | None, is_verified: bool):
        self._url, self._path, self._part, self._sha1 = url, path, part, sha1
        self._context = None if is_verified else ssl._create_unverified_context()
        self._version = ""  # what the server calls the content of which `part` has the beginning
        if sha1 is None:  # who knows of what file an earlier call has left something
            part.truncate(0)

    def run(self, retries: int) -> None:
        for tried in range(retries + 1):
            if tried:
                time.sleep(min(PAUSE * 2 ** (tried - 1), LONGEST))
            try:
                self._try()
            except _Failure as failure:
                if tried == retries or not failure.may_pass:
                    raise ModelFileError(str(self._path), f"cannot be downloaded from {self._url}: {failure}") from None
                continue
            os.replace(self._part.name, self._path)
            return

    def _try(self) -> None:
        have = self._part.seek(0, os.SEEK_END)
        headers = {}
        if have and (self._version or self._sha1):
            headers = {"Range": f"bytes={have}-"} | ({"If-Range": self._version} if self._version else {})
        try:
            wanted = urllib.request.Request(self._url, headers=headers)
            with urllib.request.urlopen(wanted, timeout=PATIENCE, context=self._context) as answer:
                if getattr(answer, "status", None) != _PARTIAL:
                    have = 0
                    self._part.truncate(0)
                self._version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
                if self._version.startswith("W/"):  # it stands for contents that differ (RFC 9110, 8.8.1)
                    self._version = ""
                self._take(answer, have)
        except urllib.error.HTTPError as error:
            if error.code != _BEYOND:
                raise _Failure(f"the server answers {error.code} {error.reason}", error.code in _PASSING) from None
            # All was there already, or more than that: the digest tells.
        except (urllib.error.URLError, http.client.HTTPException, ValueError) as error:
            raise _Failure(str(getattr(error, "reason", "") or error), not isinstance(error, ValueError)) from None
        except (TimeoutError, ConnectionError) as error:
            raise _Failure(str(error), True) from None
        self._part.flush()
        if self._sha1 and not has_sha1(self._part.name, self._sha1):
            self._part.truncate(0)
            self._version = ""
            raise _Failure(f"its SHA-1 digest is not {self._sha1}", True)
        os.fsync(self._part.fileno())

    def _take(self, answer: http.client.HTTPResponse, have: int) -> None:
        """Append what the server sends. Raises _Failure for a part that does not begin where it should, and for less
        than was announced."""
        place = answer.headers.get("Content-Range")
        if have and not (place or "").startswith(f"bytes {have}-"):
            self._part.truncate(0)
            raise _Failure(f"the server sent {place or 'nothing that says which part'} for the part from byte {have} "
                           "on", True)
        length, taken = answer.headers.get("Content-Length"), 0
        while piece := answer.read(PIECE):
            self._part.write(piece)
            taken += len(piece)
        if length is not None and taken < int(length):
            self._part.flush()
            raise _Failure(f"the connection ended behind {have + taken:,} of {have + int(length):,} bytes", True)
