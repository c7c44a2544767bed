"""What a measurement is of: the versions of what ran, and digests of the files and of the kernels."""
from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable

import mxc
from mxc.compiler.error import FileAccessError
from mxc.compiler.system.input_files import is_regular


def versions() -> dict[str, str | None]:
    """Of mxc, Python, and the packages that compute and compile; None for one that is not there."""
    from mxc.cli.requirements import installed

    return {"mxc": mxc.VERSION, "python": platform.python_version(), "numpy": installed("numpy"),
            "llvmlite": installed("llvmlite")}


def file_digest(path: str) -> str | None:
    """The SHA-256 of a file, in hexadecimal digits; None for what is no file that can be read again: a pipe, a URL, or
    none at all. Raises FileAccessError when the file cannot be read."""
    if not is_regular(path):
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileAccessError(path, "read", error) from None


def kernels_digest(keys: Iterable[str]) -> str:
    """The SHA-256 of the keys of kernels, in any order: equal where the same code runs. A key is of what a kernel
    computes and of all that its code depends on."""
    return hashlib.sha256("\n".join(sorted({*keys})).encode()).hexdigest()
