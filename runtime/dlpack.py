"""DLPack's capsules for memory that NumPy knows nothing of: a GPU's, and bfloat16.

NumPy makes and takes them as if the memory were the host's and bfloat16 uint16; here only these facts are changed in
what a capsule points to, which is DLTensor of dlpack.h (DLPack 0.8). So memory is kept and given back by NumPy's code.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.compiler.ops import dtypes

CPU, CUDA = 1, 2  # DLPack's numbers of where memory is
_NAME = b"dltensor"  # of a capsule that nobody has taken
_UINT, _BFLOAT = 1, 4  # DLPack's kinds of elements


class _Tensor(ctypes.Structure):
    """The fields that are of use here. device, number: where the memory is. code, bits: of an element."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8)]


def _function(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's, with types of its own: `ctypes.pythonapi` has one set of types for all its users."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


class _Held:
    """Memory as NumPy takes it, which keeps what the memory belongs to."""

    def __init__(self, address: int, shape: Sequence[int], kind: np.dtype, owner: object):
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": tuple(shape), "typestr": kind.str, "version": 3}


class Capsule:
    """A capsule as an object that NumPy takes. NumPy itself checks on which device the memory is."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


def made(address: int, shape: Sequence[int], dtype: str, device: tuple[int, int], owner: object) -> Any:
    """A capsule on the memory of an array, which `owner` holds and which is in one piece. device: CPU or CUDA, and the
    number of the GPU."""
    kind = np.dtype(np.uint16) if dtype == "bfloat16" else np.dtype(dtype)
    capsule = np.asarray(_Held(address, shape, kind, owner)).__dlpack__()
    tensor = _tensor(capsule)
    tensor.data, (tensor.device, tensor.number) = address, device
    if dtype == "bfloat16":
        tensor.code = _BFLOAT
    return capsule


def device_of(capsule: Any) -> tuple[int, int]:
    """Where the memory of a capsule is. Raises ValueError for what is no capsule that can be taken."""
    tensor = _tensor(capsule)
    return tensor.device, tensor.number


def taken(capsule: Any) -> np.ndarray:
    """The memory of a capsule as NumPy's array, which keeps it, also where it is a GPU's: such an array only tells its
    address, strides and dtype. Raises ValueError for what is no capsule that can be taken, BufferError and RuntimeError
    as NumPy does."""
    tensor = _tensor(capsule)
    device, code = tensor.device, tensor.code
    is_narrow = (code, tensor.bits) == (_BFLOAT, 16)
    tensor.device, tensor.code = CPU, _UINT if is_narrow else code
    try:
        values = np.from_dlpack(Capsule(capsule))
    finally:  # whoever made the capsule finds it as it was
        tensor.device, tensor.code = device, code
    return values.view(dtypes.BFLOAT16) if is_narrow else values


def _tensor(capsule: Any) -> _Tensor:
    if not _is_valid(capsule, _NAME):
        raise ArgumentError(f"expected a capsule named {_NAME.decode()!r} that nobody has taken, or an object that "
                            f"makes one; got {capsule!r}")
    return _Tensor.from_address(_pointer(capsule, _NAME))
