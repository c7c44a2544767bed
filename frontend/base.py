"""Names that programs take from `mxnet.base`: errors, groups of Python types, and the mark for "not given"."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxc.compiler.error import MXNetError

__all__ = ["MXNetError", "NotImplementedForSymbol", "integer_types", "mx_real_t", "numeric_types", "string_types"]

integer_types = (int, np.integer)
numeric_types = (float, int, np.generic)
string_types = (str,)
mx_real_t = np.float32


class _NullType:
    """The type of `_Null`, the default of operator parameters: the operator's own default holds."""

    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False


_Null = _NullType()


class NotImplementedForSymbol(MXNetError):
    """Raised by what only an NDArray can do: a Symbol has no values.

    function: a function or its name. alias: how programs write it, such as "+=". args: what it was called with.
    """

    def __init__(self, function: Callable[..., object] | str, alias: str | None, *args: object) -> None:
        text = f"Function {function if isinstance(function, str) else function.__name__}"
        if alias:
            text += f' (namely operator "{alias}")'
        if args:
            text += f" with arguments ({', '.join(str(type(arg)) for arg in args)})"
        super().__init__(f"{text} is not implemented for Symbol and only available in NDArray.")
