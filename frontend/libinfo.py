"""Where the files of MXNet's C library are: `mx.libinfo`. mxc has none, so all of it raises RuntimeError."""
from __future__ import annotations

from typing import NoReturn

from mxc import __version__  # noqa: F401  # `mx.libinfo.__version__`
from mxc.compiler.error import MXNetError
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"": "logging os platform"})
__all__ = ["find_conf_path", "find_include_path", "find_lib_path", *_names]


def find_lib_path(prefix: str = "libmxnet") -> NoReturn:
    """Raises RuntimeError: there is no library to be found."""
    raise MXNetError(f"there is no library {prefix}: mxc compiles kernels at run time and has no C library")


def find_include_path() -> NoReturn:
    """Raises RuntimeError: there are no headers to be found."""
    raise MXNetError("there are no headers: mxc has no C library to compile against")


def find_conf_path(prefix: str = "tvmop") -> NoReturn:
    """Raises RuntimeError: there is no configuration to be found."""
    raise MXNetError(f"there is no file {prefix}.conf: mxc has no operators of TVM")
