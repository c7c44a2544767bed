"""MXNet's `mx.base`: errors, groups of Python types, the mark for "not given", properties of
classes, and what ctypes gives of the types of MXNet's C library."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.system import env
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.scopes import ClassProperty, ClassPropertyType

__getattr__, _ = elsewhere(__name__, {}, {
    "": "_np=numpy atexit ctypes inspect libinfo=mxc.libinfo os platform re sys", "mxc.error": "register_error",
    "mxc.runtime.c_types": """
        CachedOpHandle CudaKernelHandle CudaModuleHandle DLPackHandle DataIterCreatorHandle DataIterHandle
        ExecutorHandle FunctionHandle KVStoreHandle MXCallbackList NDArrayHandle OpHandle ProfileHandle RecordIOHandle
        RtcHandle SymbolHandle _LIB c_array c_array_buf c_handle_array c_str c_str_array check_call ctypes2buffer
        ctypes2numpy_shared mx_float mx_float_p mx_int mx_int64 mx_uint py_str"""})
__all__ = ["MXNetError"]

integer_types = (int, np.integer)
numeric_types = (float, int, np.generic)
string_types = (str,)
mx_real_t = np.float32
basestring, long = str, int  # Python 2 had these
_MXClassPropertyDescriptor, _MXClassPropertyMetaClass = ClassProperty, ClassPropertyType


class _NullType:
    """The type of `_Null`, the default of operator parameters: the operator's own default holds."""

    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False


_Null = _NullType()


class _NotForThis(MXNetError):
    """An error of a function that some class does not have.

    function: a function or its name. alias: how programs write it, such as "+=". args: what it was called with.
    """

    TEXT = ""

    def __init__(self, function: Callable[..., object] | str, alias: str | None, *args: object) -> None:
        text = f"Function {function if isinstance(function, str) else function.__name__}"
        if alias:
            text += f' (namely operator "{alias}")'
        if args:
            text += f" with arguments ({', '.join(str(type(arg)) for arg in args)})"
        super().__init__(f"{text} {self.TEXT} and only available in NDArray.")


class NotImplementedForSymbol(_NotForThis):
    """Raised by what only an NDArray can do: a Symbol has no values."""

    TEXT = "is not implemented for Symbol"


class NotSupportedForSparseNDArray(_NotForThis):
    """Raised by what only a dense array can do."""

    TEXT = "is not supported for SparseNDArray"


def classproperty(func: Any) -> ClassProperty:
    """A decorator: a property of the class, which calls `func` with it; `@NAME.setter` says how it is set."""
    return ClassProperty(func.__func__ if isinstance(func, classmethod) else func)


def with_metaclass(meta: type, *bases: type) -> type:
    """A class to derive from: the class derived has these bases, and `meta` for its type."""
    class Maker(type):
        def __new__(cls, name: str, _: tuple[type, ...], members: dict[str, Any]) -> Any:
            return meta(name, bases, members)

    return type.__new__(Maker, "with_metaclass", (), {})


def data_dir_default() -> str:
    """The folder that MXNet keeps its files in unless it is told another one."""
    return str(Path("~/.mxnet").expanduser())


def data_dir() -> str:
    """The folder that MXNet keeps its files in: the environment variable MXNET_HOME, or the default one."""
    return env.get("MXNET_HOME") or data_dir_default()


def build_param_doc(arg_names: Sequence[str], arg_types: Sequence[str], arg_descs: Sequence[str],
                    remove_dup: bool = True) -> str:
    """The section "Parameters" of a docstring as NumPy's style has it; remove_dup: each name only once."""
    seen: set[str] = set()
    lines = ["Parameters", "----------"]
    for name, kind, text in zip(arg_names, arg_types, arg_descs, strict=True):
        if name not in seen or not remove_dup:
            lines += [f"{name} : {kind}", *([f"    {text}"] if text else [])]
        seen.add(name)
    return "\n".join(lines) + "\n"


def _as_list(obj: Any) -> Any:
    """A list or tuple as it is, anything else as the list of it."""
    return obj if isinstance(obj, (list, tuple)) else [obj]
