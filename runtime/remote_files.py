"""Files at a URL (`s3://bucket/key`, `hdfs://host/path`, ...), by fsspec, which is imported when one is named."""
from __future__ import annotations

import os
from typing import Any

from mxc.compiler.error import FileAccessError, MXNetError

# The extra of this distribution that has what a protocol needs; fsspec's own message says it for the others.
_EXTRAS = {"s3": "s3", "s3a": "s3", "hdfs": "hdfs"}


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a file name names a protocol: `s3://...`."""
    return isinstance(path, str) and "://" in path


def read(url: str) -> bytes:
    """The bytes at a URL. Raises FileAccessError when they cannot be read, MXNetError when a package is missing."""
    return _use(url, "rb", "read", lambda file: file.read())


def write(url: str, content: bytes) -> None:
    """Put `content` at a URL; it appears when it is whole. Raises as `read`."""
    _use(url, "wb", "written", lambda file: file.write(content))


def _use(url: str, mode: str, done: str, work: Any) -> Any:
    protocol = url.partition("://")[0]
    extra = _EXTRAS.get(protocol)
    try:
        import fsspec
    except ModuleNotFoundError:
        raise _missing(url, extra or "s3", "fsspec is not installed") from None
    try:
        with fsspec.open(url, mode) as file:
            return work(file)
    except (ImportError, ValueError) as error:  # fsspec: no such protocol, or its package is missing
        raise _missing(url, extra, str(error)) from None
    except Exception as error:  # each file system has its own classes
        raise FileAccessError(url, done, error) from None


def _missing(url: str, extra: str | None, reason: str) -> MXNetError:
    hint = f"; install it with `pip install mxc-compiler[{extra}]`" if extra else ""
    return MXNetError(f"{url}: {reason}{hint}")
