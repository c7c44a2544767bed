"""What programs use to call MXNet's C library, as far as Python's ctypes alone gives it a meaning: its types and
conversions. The library itself, `_LIB`, is not there."""
from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from mxc.compiler.error import MXNetError

mx_uint, mx_int, mx_int64, mx_float = ctypes.c_uint, ctypes.c_int, ctypes.c_int64, ctypes.c_float
mx_float_p, c_int_p = ctypes.POINTER(mx_float), ctypes.POINTER(ctypes.c_int)

# What the library calls its objects by; here nothing has one.
CachedOpHandle = CudaKernelHandle = CudaModuleHandle = DataIterCreatorHandle = DataIterHandle = DLPackHandle = \
    ExecutorHandle = FunctionHandle = KVStoreHandle = NDArrayHandle = OpHandle = ProfileHandle = RecordIOHandle = \
    RtcHandle = SymbolHandle = ctypes.c_void_p


class MXCallbackList(ctypes.Structure):
    """A number of C functions, and the data that each is called with."""

    _fields_ = [("num_callbacks", ctypes.c_int),
                ("callbacks", ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_int))),
                ("contexts", ctypes.POINTER(ctypes.c_void_p))]


class _NoLibrary:
    """Stands for MXNet's C library. Raises MXNetError for every function that is asked for."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MXNetError(f"_LIB.{name}: mxc has no C library; use the functions and classes of its Python modules")


_LIB = _NoLibrary()


def check_call(ret: int) -> None:
    """Raises MXNetError unless `ret`, what a function of a C library returned, is 0."""
    if ret != 0:
        raise MXNetError(f"a call of a C library failed: it returned {ret!r}")


def c_str(string: str) -> ctypes.c_char_p:
    """A text as C has it, in UTF-8."""
    return ctypes.c_char_p(string.encode())


def py_str(x: bytes) -> str:
    """A text of Python from C's, in UTF-8."""
    return x.decode()


def c_str_array(strings: Sequence[str]) -> Any:
    """A C array of texts."""
    return (ctypes.c_char_p * len(strings))(*[s.encode() for s in strings])


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """A C array of copies of the values."""
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buf: array.array) -> Any:
    """A C array on the memory of an `array.array`, not copied."""
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs: Sequence[Any]) -> Any:
    """A C array of the objects' handles. Raises MXNetError for an object that has none, as all of mxc's."""
    for value in objs:
        if not hasattr(value, "handle"):
            raise MXNetError(f"{type(value).__name__} has no handle: mxc has no C library")
    return c_array(ctypes.c_void_p, [value.handle for value in objs])


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """A copy of `length` bytes behind a pointer to char. Raises RuntimeError for another pointer."""
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_char)):
        raise MXNetError(f"expected a pointer to char, got {type(cptr)}")
    return bytearray(ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A NumPy array of `shape` on the memory behind a pointer to float. Raises RuntimeError for another pointer."""
    if not isinstance(cptr, mx_float_p):
        raise MXNetError(f"expected a pointer to float, got {type(cptr)}")
    return np.ctypeslib.as_array(cptr, tuple(shape))
