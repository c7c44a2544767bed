"""A GPU of this machine, through NVIDIA's driver (the extra `cuda`: cuda-bindings).

All work of a device is in the order of one stream, copies too. Nothing of this file has run on a GPU yet
(docs/cuda.md).
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError, TargetError


def bindings() -> Any:
    """cuda.bindings.driver. Raises ImportError without the extra."""
    from cuda.bindings import driver

    return driver


class Gpu:
    """See `Device` of device.py. Raises TargetError where the driver does not give the device."""

    def __init__(self, number: int):
        self.number, self._driver = number, bindings()
        try:
            self._device = self._done("be found", self._driver.cuDeviceGet(number))
            self._context = self._done("be used", self._driver.cuDevicePrimaryCtxRetain(self._device))
            self._enter()
            kinds = self._driver.CUdevice_attribute
            version = (kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                       kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
            major, minor = (self._done("tell what it is", self._driver.cuDeviceGetAttribute(kind, self._device))
                            for kind in version)
            text = self._done("tell its name", self._driver.cuDeviceGetName(100, self._device))
            self._stream = self._done("make a stream", self._driver.cuStreamCreate(0))
        except MXNetError as error:
            raise TargetError(str(error)) from None
        self.arch, self.name = f"sm_{major}{minor}", bytes(text).split(b"\0")[0].decode()

    def _done(self, what: str, made: tuple[Any, ...]) -> Any:
        """What a call gave. Raises MXNetError: the device cannot do `what`."""
        code, *values = made
        if int(code) != 0:
            _, text = self._driver.cuGetErrorString(code)
            raise MXNetError(f"gpu({self.number}) cannot {what}: {(text or b'unknown error').decode()} ({int(code)})")
        return values[0] if values else None

    def _enter(self) -> None:
        """Calls of this thread are about this device."""
        self._done("be entered", self._driver.cuCtxSetCurrent(self._context))

    def memory_info(self) -> tuple[int, int]:
        self._enter()
        code, free, total = self._driver.cuMemGetInfo()
        self._done("tell its memory", (code,))
        return free, total

    def allocate(self, nbytes: int) -> int:
        self._enter()
        code, address = self._driver.cuMemAlloc(nbytes)
        if code == self._driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return 0
        return int(self._done("allocate memory", (code, address)))

    def release(self, address: int) -> None:
        self._enter()
        self._done("release memory", self._driver.cuMemFree(address))

    def write(self, address: int, values: np.ndarray) -> None:
        self._enter()
        values = np.ascontiguousarray(values)
        self._done("copy from the host", self._driver.cuMemcpyHtoDAsync(address, values.ctypes.data, values.nbytes,
                                                                         self._stream))
        self.wait()  # the values may go

    def read(self, address: int, values: np.ndarray) -> None:
        self._enter()
        self._done("copy to the host", self._driver.cuMemcpyDtoHAsync(values.ctypes.data, address, values.nbytes,
                                                                       self._stream))
        self.wait()

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._enter()
        self._done("copy", self._driver.cuMemcpyDtoDAsync(target, source, nbytes, self._stream))

    def clear(self, address: int, nbytes: int) -> None:
        self._enter()
        self._done("clear memory", self._driver.cuMemsetD8Async(address, 0, nbytes, self._stream))

    def function(self, cubin: bytes, symbol: str) -> Any:
        """The function of that name in machine code of this device's architecture, and the module that it is in."""
        self._enter()
        module = self._done("load code", self._driver.cuModuleLoadData(cubin))
        return self._done(f"find {symbol}", self._driver.cuModuleGetFunction(module, symbol.encode()))

    def launch(self, function: Any, blocks: int, threads: int, pointers: Sequence[tuple[int, str]]) -> None:
        self._enter()
        values = tuple(address for address, _ in pointers)
        self._done("launch", self._driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, self._stream,
                                                         (values, (ctypes.c_void_p,) * len(values)), 0))

    def wait(self) -> None:
        self._enter()
        self._done("finish", self._driver.cuStreamSynchronize(self._stream))
