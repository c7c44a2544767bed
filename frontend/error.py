"""MXNet's `mx.error`: classes of errors, for programs. All derive from MXNetError, so `except mx.MXNetError` catches
each. Those that mxc itself raises are in compiler/error.py."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc.compiler.error import MXNetError

__all__ = ["MXNetError", "register"]


class InternalError(MXNetError):
    """A mistake of the library itself, not of the program that uses it."""

    def __init__(self, msg: str):
        super().__init__(f"{msg}\nmxc hint: this is an error of mxc, not of your program; please report it.")


def register(func_name: str | type | None = None, cls: type | None = None) -> Any:
    """Register a class of errors: `@mx.error.register`, or `register("Name", Class)`; the class.

    An exception raised in a callback reaches the caller as it is, and one of a custom operator as the cause of an
    MXNetError, so it need not be registered: this is here for programs that do.
    """
    if cls is not None or isinstance(func_name, type):
        return func_name if cls is None else cls
    decorate: Callable[[Any], Any] = lambda c: c  # noqa: E731
    return decorate


register_error = register
