"""Protocols of NumPy and DLPack: memory that is handed out and taken without a copy, and NumPy's functions on arrays.

Memory is handed out after pending writes are done. It is writable, and the array is volatile from then on: results kept
from its values are computed again. NumPy's functions take an array's values, and give what they give for NumPy arrays;
only a NumPy number with an array, as in `np.float32(2) * x`, is arithmetic of arrays.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.compiler.ops import dtypes
from mxc.ndarray import arithmetic
from mxc.runtime import dlpack
from mxc.runtime.array import dtype_name
from mxc.runtime.context import gpu
from mxc.runtime.device_array import DeviceArray

# The functions of NumPy that `number * array` and other operators of Python call.
_OPERATORS = {
    np.add: arithmetic.add, np.subtract: arithmetic.subtract, np.multiply: arithmetic.multiply,
    np.divide: arithmetic.divide, np.remainder: arithmetic.modulo, np.power: arithmetic.power,
    np.equal: arithmetic.equal, np.not_equal: arithmetic.not_equal, np.less: arithmetic.lesser,
    np.less_equal: arithmetic.lesser_equal, np.greater: arithmetic.greater,
    np.greater_equal: arithmetic.greater_equal,
}


class NumpyProtocols:
    """The methods that NumPy and DLPack ask of an array."""

    __slots__ = ()

    _array: Any
    _check_writable: Any

    @property
    def numpy(self) -> np.ndarray:
        """The elements as a NumPy array on the same memory, after all pending writes are done."""
        values = self._array.share()
        if not self.writable:  # type: ignore[attr-defined]
            values = values.view()
            values.flags.writeable = False
        return values

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.numpy.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy or (dtype is not None and dtypes.dtype_name(dtype) != self._array.dtype):
            if copy is False:
                raise ValueError(f"an array of {self._array.dtype} cannot be taken as {np.dtype(dtype)} without a copy")
            values = self._array.numpy()
            return values if dtype is None else dtypes.converted(values, np.dtype(dtype))
        return self.numpy

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if (len(inputs) == 2 and isinstance(inputs[0], (np.generic, np.ndarray)) and inputs[0].ndim == 0
                and method == "__call__" and not kwargs and ufunc in _OPERATORS):
            return _OPERATORS[ufunc](inputs[0].item(), inputs[1])  # type: ignore[operator]
        results = kwargs.pop("out", ())
        kwargs = {key: _values(value) for key, value in kwargs.items()}
        if results:
            kwargs["out"] = tuple(_written(result) for result in results)
        found = getattr(ufunc, method)(*_values(inputs), **kwargs)
        return results[0] if len(results) == 1 and isinstance(results[0], NumpyProtocols) else found

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        result = kwargs.pop("out", None)
        kwargs = {key: _values(value) for key, value in kwargs.items()}
        if result is not None:
            kwargs["out"] = _written(result)
        found = function(*_values(args), **kwargs)
        return found if result is None else result

    # -- DLPack

    def __dlpack__(self, **options: Any) -> Any:
        """A capsule on this array's memory, after all pending work on it is done, so that it may be used in any stream
        (`stream`). Raises BufferError for memory that is elsewhere than `dl_device` asks for, and for what is only
        read where the capsule does not tell so."""
        if not self._is_lent_here():
            return self.numpy.__dlpack__(**options)
        device = self.__dlpack_device__()
        if options.get("dl_device") not in (None, device):
            raise BufferError(f"the array is on {self._array.context}, not on DLPack's device {options['dl_device']}")
        if options.get("copy"):
            return self.copy().__dlpack__()  # type: ignore[attr-defined]
        if not self.writable:  # type: ignore[attr-defined]
            raise BufferError("the array is read-only, which this capsule of DLPack cannot tell")
        return self._capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        number = self._array.context.gpu_number
        return (dlpack.CPU, 0) if number < 0 else (dlpack.CUDA, number)

    def _is_lent_here(self) -> bool:
        """Whether NumPy makes no capsule of the memory."""
        return isinstance(self._array, DeviceArray) or self._array.dtype == "bfloat16"

    def _capsule(self) -> Any:
        array = self._array
        if not self._is_lent_here():
            return array.share().__dlpack__()
        address = array.shared_address() if isinstance(array, DeviceArray) else array.share().ctypes.data
        return dlpack.made(address, array.shape, array.dtype, self.__dlpack_device__(), array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of an array on a GPU, for torch.as_tensor, cupy.asarray and numba.cuda.as_cuda_array (version 3 of
        the interface, as Numba's documentation defines it), after all pending work on it is done. What a program writes
        from the host later is there after the next operator on the GPU, or when this is asked for again. Raises
        AttributeError for other arrays, and for bfloat16."""
        array = self._array
        if not isinstance(array, DeviceArray) or array.dtype == "bfloat16":
            raise AttributeError(f"an array of {array.dtype} on {array.context} has no memory for CUDA's interface")
        is_read_only: bool = not self.writable  # type: ignore[attr-defined]
        return {"shape": array.shape, "typestr": dtypes.numpy_dtype(array.dtype).str, "strides": None, "version": 3,
                "data": (array.shared_address(), is_read_only)}

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule on this array's memory, after all pending writes are done."""
        return self._capsule()

    def to_dlpack_for_write(self) -> Any:
        """A DLPack capsule for writing to this array's memory. Raises ValueError for an array that is only read."""
        self._check_writable()
        return self._capsule()


class _Writable:
    """Memory that may be written to although NumPy's array on it is read-only. Such is an array that became read-only
    when its memory was shared, and one of a capsule of DLPack's first version, which does not tell."""

    def __init__(self, values: np.ndarray):
        self.values = values
        self.__array_interface__ = {**values.__array_interface__, "data": (values.ctypes.data, False)}


def writable(values: np.ndarray) -> np.ndarray:
    """An array on the same memory that can be written to, unless the memory of its owner is read-only."""
    owner = values
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if values.flags.writeable or not (owner.flags.writeable or owner.flags.owndata):
        return values.view()
    return np.asarray(_Writable(values))


def imported(owner: Any) -> np.ndarray | DeviceArray:
    """An array on the memory of a DLPack capsule or of an object that makes one (`__dlpack__`): NumPy's, or one on a
    GPU. Raises ValueError for what is neither, and for memory of another device or not in one piece."""
    try:
        has_methods = hasattr(owner, "__dlpack__")
        kind, number = owner.__dlpack_device__() if has_methods else dlpack.device_of(owner)
        if kind not in (dlpack.CPU, dlpack.CUDA):
            raise BufferError("the memory is neither the CPU's nor a GPU's")
        try:
            capsule = owner.__dlpack__() if has_methods else owner
        except BufferError:  # The memory may be read-only, which only later versions of DLPack can tell.
            return np.from_dlpack(owner)
        values = dlpack.taken(capsule)
        if kind == dlpack.CPU:
            return np.asarray(_Writable(values))
        if not values.flags.c_contiguous:
            raise BufferError(f"the memory has the strides {values.strides}, which no array of shape {values.shape} "
                              "has: copy it first")
        return DeviceArray.sharing_address(values.ctypes.data, values.shape, dtype_name(values.dtype), gpu(int(number)),
                                           values)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"from_dlpack: {error}") from None


def _values(value: Any) -> Any:
    """A value in which every array is replaced by a NumPy array, of bfloat16 by one of float32, in lists, tuples and
    dicts too."""
    if isinstance(value, NumpyProtocols):
        return dtypes.widened(value._array.numpy())
    if type(value) in (list, tuple):
        return type(value)(map(_values, value))
    return value


def _written(result: Any) -> Any:
    """The array that NumPy is given as `out=`: one on the array's memory."""
    if result is None or isinstance(result, np.ndarray):
        return result
    if not isinstance(result, NumpyProtocols):
        raise ArgumentTypeError(f"out must be an array, got {type(result)}")
    result._check_writable()
    return result.numpy
