"""Arrays on a GPU: memory of the device, and a copy of the host's where something on the host asks for values.

Of the two copies it is known which one holds what was written last. Kernels ask for the device's (`send`), work of the
host for its own (`memory`, as of any array), and what is missing is copied then, as a part of the work that asks. As
for all arrays, the engine orders that work.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler import targets
from mxc.compiler.error import MXNetError
from mxc.compiler.ops import dtypes
from mxc.compiler.system.forks import Lock
from mxc.runtime import engine
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import Context

BOTH, DEVICE, HOST = range(3)  # which copy holds what was written last


class DeviceMemory:
    """`nbytes` of a GPU's memory at `address`, holding anything. holder: whose it is, for errors. Raises TargetError
    where there is no such GPU, OutOfMemoryError where it has not so much left."""

    __slots__ = ("__weakref__", "address", "memory", "nbytes")

    def __init__(self, nbytes: int, context: Context, holder: str):
        self.address, self.nbytes = 0, nbytes
        self.memory = targets.gpus().memory(context.device_id)
        self.address = self.memory.allocate(max(nbytes, 1), holder)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.memory.release(self.address)


class ForeignMemory:
    """`nbytes` of a GPU's memory at `address` that another library's `owner` holds. Raises TargetError where there is
    no such GPU."""

    __slots__ = ("__weakref__", "address", "memory", "nbytes", "owner")

    def __init__(self, address: int, nbytes: int, context: Context, owner: object):
        self.address, self.nbytes, self.owner = address, nbytes, owner
        self.memory = targets.gpus().memory(context.device_id)


class DeviceBlock:
    """What views of one allocation share. host: bytes of the host's memory, which the system provides as they are
    touched. is_shared: others may write to the device's memory, so the host's copy is made anew each time."""

    __slots__ = ("__weakref__", "_latest", "_lock", "device", "host", "is_shared")

    def __init__(self, device: DeviceMemory | ForeignMemory, zeroed: bool = False):
        self.device, self.is_shared = device, isinstance(device, ForeignMemory)
        self.host = np.zeros(device.nbytes, np.uint8) if zeroed else np.empty(device.nbytes, np.uint8)
        self._latest, self._lock = DEVICE if self.is_shared else BOTH, Lock()  # BOTH: nothing was written
        if zeroed:
            device.memory.clear(device.address, device.nbytes)

    def send(self, writes: bool) -> None:
        """Have on the device what was written last. writes: something is about to be written there."""
        with self._lock:
            if self._latest == HOST:
                self.device.memory.write(self.device.address, self.host)
                self._latest = BOTH
            if writes:
                self._latest = DEVICE

    def fetch(self, writes: bool) -> None:
        """Have on the host what was written last. writes: something may be written there."""
        with self._lock:
            if self._latest == DEVICE or (self._latest == BOTH and self.is_shared):
                self.device.memory.read(self.device.address, self.host)
                self._latest = BOTH
            if writes:
                self._latest = HOST


class DeviceArray(Array):
    """An array on a GPU; see Array. Its `memory` is the host's copy: whoever asks for it may read and write it until
    other work begins that uses the array, and no longer. Its address is one of the device's."""

    __slots__ = ("block", "offset", "view_of_host")

    def __init__(self, block: DeviceBlock, view: np.ndarray, context: Context, variable: engine.Variable, dtype: str):
        self.block, self.view_of_host, self.context, self.variable, self.dtype = block, view, context, variable, dtype
        self.entry = self.update = None
        self.offset = 0 if view.size == 0 else _start(view) - _start(block.host)
        self._address = block.device.address + self.offset

    @classmethod
    def made(cls, shape: Sequence[int], dtype: str, context: Context, zeroed: bool) -> DeviceArray:
        """A new array; zeroed: of zeros, else of anything."""
        context.require()
        element = dtypes.numpy_dtype(dtype)
        nbytes = math.prod(shape) * element.itemsize
        block = DeviceBlock(DeviceMemory(nbytes, context, f"in arrays of {dtype} {tuple(shape)}"), zeroed)
        return cls(block, block.host.view(element).reshape(tuple(shape)), context, engine.Variable(), dtype)

    @classmethod
    def sharing_address(cls, address: int, shape: Sequence[int], dtype: str, context: Context,
                        owner: object) -> DeviceArray:
        """An array on memory of the GPU that `owner` holds, and may write to at any time."""
        element = dtypes.numpy_dtype(dtype)
        block = DeviceBlock(ForeignMemory(address, math.prod(shape) * element.itemsize, context, owner))
        values = block.host.view(element).reshape(tuple(shape))
        return cls(block, values, context, engine.Variable(volatile=True), dtype)

    def shared_address(self) -> int:
        """The address for others, who may read and write there from now on; all pending work is done, and what the host
        wrote is there."""
        engine.wait_to_write(self.variable)
        self.variable.volatile = self.block.is_shared = True
        self.send(writes=True)
        return self._address if self.size else 0

    @property
    def memory(self) -> np.ndarray:  # type: ignore[override]
        self.block.fetch(writes=True)
        return self.view_of_host

    def read(self) -> np.ndarray:
        self.block.fetch(writes=False)
        return self.view_of_host

    def send(self, writes: bool) -> None:
        """See DeviceBlock."""
        self.block.send(writes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view_of_host.shape

    @property
    def size(self) -> int:
        return self.view_of_host.size

    @property
    def nbytes(self) -> int:
        return self.view_of_host.nbytes

    @property
    def layout(self) -> np.ndarray:
        return self.view_of_host

    @property
    def owner(self) -> Any:
        return self.block

    @property
    def address(self) -> int:
        return self._address

    @property
    def identity(self) -> object:
        return self.view_of_host

    def plain(self) -> DeviceArray:
        return DeviceArray(self.block, self.view_of_host, self.context, self.variable, self.dtype)

    def view(self, data: np.ndarray) -> DeviceArray:
        return DeviceArray(self.block, data, self.context, self.variable, dtype_name(data.dtype))

    def reshape(self, shape: Sequence[int]) -> DeviceArray:
        return self.view(self.view_of_host.reshape(tuple(shape)))

    def prefix(self, shape: Sequence[int]) -> DeviceArray:
        return self.view(self.view_of_host.reshape(-1)[:math.prod(shape)].reshape(tuple(shape)))

    def numpy(self) -> np.ndarray:
        self.wait()
        return self.read().copy()

    def share(self) -> np.ndarray:
        raise MXNetError(f"an array on {self.context} shares no memory with NumPy or DLPack: copy it to the host "
                         "first, as .asnumpy() and .as_in_context(mx.cpu()) do")

    def fill(self, other: Array) -> None:
        whole = other.nbytes == self.nbytes == self.block.device.nbytes
        if isinstance(other, DeviceArray) and other.context == self.context and other.dtype == self.dtype and whole:
            other.send(writes=False)
            self.send(writes=True)
            self.block.device.memory.copy(self.address, other.address, self.nbytes)
            return
        super().fill(other)


def check_devices(context: Context, arrays: Mapping[str, Array | None]) -> None:
    """Raise MXNetError unless everything is on the GPU that `context` is, or nothing is on a GPU."""
    for name, array in arrays.items():
        if array is not None and array.context.gpu_number != context.gpu_number:
            raise MXNetError(f"{name} is on {array.context}, and the graph is bound on {context}: bind it on the "
                             "device of its arrays, or copy them there with as_in_context")


def _start(array: np.ndarray) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
