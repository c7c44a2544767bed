"""Files at a URL (`s3://bucket/key`, `hdfs://host/path`, ...), by fsspec, which is imported when one is named."""
from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable
from typing import Any

from mxc.compiler.error import FileAccessError, MXNetError
from mxc.compiler.system import input_files

# The extra of this distribution that has what a protocol needs; fsspec's own message says it for the others.
_EXTRAS = {"s3": "s3", "s3a": "s3", "hdfs": "hdfs"}
_CREDENTIALS = ("give credentials that may use it: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in "
                "~/.aws; AWS_ENDPOINT_URL names a server that is not Amazon's")
# By protocol: what to do about access that is refused, and about a server or library that is not reached.
_REFUSED = {"s3": _CREDENTIALS, "s3a": _CREDENTIALS, "hdfs": "give a user who may use it: hdfs://user@host/path"}
_HADOOP = "hdfs needs Java and Hadoop beside mxc-compiler[hdfs]: set JAVA_HOME, HADOOP_HOME and CLASSPATH"
# File systems where opening for writing destroys what was there: the content gets there by another name and a rename.
_RENAMED = ("file", "hdfs")


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a file name names a protocol: `s3://...`."""
    return isinstance(path, str) and "://" in path


def read(url: str) -> bytes:
    """The bytes at a URL. Raises FileAccessError when they cannot be read, MXNetError when a package is missing."""
    return _use(url, "read", lambda files, path: files.cat_file(path))


def content(path: str) -> bytes:
    """The bytes of a file, or at a URL. Raises FileAccessError when they cannot be read, MXNetError as `read`."""
    return read(path) if is_url(path) else input_files.content(path)


def write(url: str, content: bytes) -> None:
    """Put `content` at a URL; it appears when it is whole, and what was there stays until then. Raises as `read`."""
    def put(files: Any, path: str) -> None:
        if url.partition("://")[0] not in _RENAMED:
            files.pipe_file(path, content)  # object stores show an object when its upload is complete
            return
        temporary = f"{path}.{uuid.uuid4().hex}"
        try:
            files.pipe_file(temporary, content)
            files.mv(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):  # what went wrong first is what counts
                files.rm_file(temporary)
            raise

    _use(url, "written", put)


def _use(url: str, done: str, work: Callable[[Any, str], Any]) -> Any:
    protocol = url.partition("://")[0]
    extra = _EXTRAS.get(protocol)
    try:
        import fsspec.core
    except ModuleNotFoundError:
        raise _missing(url, extra or "s3", "fsspec is not installed") from None
    try:
        files, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:  # fsspec: no such protocol, or its package is missing
        raise _missing(url, extra, str(error)) from None
    except Exception as error:
        raise FileAccessError(url, done, error, _HADOOP if protocol == "hdfs" else "") from None
    try:
        return work(files, path)
    except Exception as error:  # each file system has its own classes
        raise FileAccessError(url, done, error, _hint(protocol, done, error)) from None


def _hint(protocol: str, done: str, error: Exception) -> str:
    """What to do about an error of a file system, or ""."""
    if isinstance(error, FileNotFoundError):
        return "check the names in the URL" if done == "read" else "make its bucket or folder first"
    if isinstance(error, PermissionError) or "redentials" in type(error).__name__:  # botocore's have no common class
        return _REFUSED.get(protocol, "")
    return ""


def _missing(url: str, extra: str | None, reason: str) -> MXNetError:
    hint = f"; install it with `pip install mxc-compiler[{extra}]`" if extra else ""
    return MXNetError(f"{url}: {reason}{hint}")
