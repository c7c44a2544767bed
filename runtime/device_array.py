"""Arrays on a GPU: memory of the device, and a copy of the host's where something on the host asks for values.

Of the two copies it is known which one holds what was written last. Kernels ask for the device's (`send`), work of the
host for its own (`memory`, as of any array), and what is missing is copied then, as a part of the work that asks. As
for all arrays, the engine orders that work; but to the engine a piece of work is done when the device has been told all
of it (`computed`). What is in other streams of the device than that work is kept behind it by marks
(`targets/cuda/order.py`), and who wants values waits for the device.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler import targets
from mxc.compiler.error import MXNetError
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.storage import Given
from mxc.compiler.system.forks import Lock
from mxc.runtime import engine
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import Context

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import Launcher, Mark

BOTH, DEVICE, HOST = range(3)  # which copy holds what was written last


class DeviceMemory:
    """`nbytes` of a GPU's memory at `address`, holding anything. holder: whose it is, for errors. before: the mark
    behind which nobody else uses it. sent: that of a copy to it which computing has not followed. Raises TargetError
    where there is no such GPU, OutOfMemoryError where it has not so much left."""

    __slots__ = ("__weakref__", "address", "before", "memory", "nbytes", "sent")

    def __init__(self, nbytes: int, context: Context, holder: str):
        self.address, self.nbytes = 0, nbytes
        self.sent: Mark | None = None
        gpus = targets.gpus()
        self.memory = gpus.memory(context.device_id)
        if gpus.wait not in engine.beyond:
            engine.beyond.append(gpus.wait)
        self.address = self.memory.allocate(max(nbytes, 1), holder)
        self.before: Mark | None = self.memory.last_use(self.address)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self.memory.release(self.address, self.sent)


class ForeignMemory:
    """`nbytes` of a GPU's memory at `address` that another library's `owner` holds. Raises TargetError where there is
    no such GPU."""

    __slots__ = ("__weakref__", "address", "before", "memory", "nbytes", "owner", "sent")

    def __init__(self, address: int, nbytes: int, context: Context, owner: object):
        self.address, self.nbytes, self.owner = address, nbytes, owner
        self.before = self.sent = None
        self.memory = targets.gpus().memory(context.device_id)


class DeviceBlock:
    """What views of one allocation share. host: bytes of the host's memory, which the system provides as they are
    touched. is_shared: others may write to the device's memory, so the host's copy is made anew each time. written:
    the mark behind which the device has what was written last there."""

    __slots__ = ("__weakref__", "_is_computed", "_latest", "_lock", "device", "host", "is_shared", "written")

    def __init__(self, device: DeviceMemory | ForeignMemory, zeroed: bool = False):
        self.device, self.is_shared = device, isinstance(device, ForeignMemory)
        self.host = np.zeros(device.nbytes, np.uint8) if zeroed else np.empty(device.nbytes, np.uint8)
        self._latest, self._lock = DEVICE if self.is_shared else BOTH, Lock()  # BOTH: nothing was written
        self._is_computed = self.is_shared or zeroed  # whether the device computes with it
        self.written: Mark | None = None
        if zeroed:
            device.memory.clear(device.address, device.nbytes)
            self.written = device.memory.computed()

    def send(self, writes: bool) -> None:
        """Have on the device, for what is computed from now on, what was written last. writes: that writes there."""
        with self._lock:
            if self._latest == HOST:
                self._copy(self.host)
                self._latest = BOTH
            if self.device.sent is not None:
                self.device.memory.follow(self.device.sent)
                self.device.sent = None
            self._is_computed = True
            if writes:
                self._latest = DEVICE

    def put(self, values: np.ndarray) -> None:
        """Write all of it: begin to copy these elements to the device."""
        with self._lock:
            self._copy(values)
            self._latest = DEVICE

    def _copy(self, values: np.ndarray) -> None:
        """Begin to copy to the device, when it computes with the memory no more: all such work has begun, for the
        engine keeps its order."""
        device, memory = self.device, self.device.memory
        after = memory.computed() if self._is_computed else device.before
        device.sent = self.written = memory.send(device.address, values, after)

    def fetch(self, writes: bool) -> None:
        """Have on the host what was written last. writes: something may be written there."""
        with self._lock:
            if self._latest == DEVICE or (self._latest == BOTH and self.is_shared):
                self.device.memory.fetch(self.device.address, self.host, self.written)
                self._latest = BOTH
            if writes:
                self._latest = HOST

    def fetch_into(self, values: np.ndarray) -> bool:
        """Copy all of it to an array in one piece. False where the host's copy holds what was written last."""
        with self._lock:
            if self._latest != DEVICE:
                return False
            self.device.memory.fetch(self.device.address, values, self.written)
            return True

    def publish(self) -> None:
        """Have on the device what the host wrote last, and return when it is there: others look at any time."""
        if self._latest == HOST:
            self.send(writes=False)
        self.wait()

    def wait(self) -> None:
        """Return when the device has written what it is to write. Raises MXNetError for what failed there."""
        self.device.memory.wait(self.written)


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
        variable = engine.Variable(volatile=True)
        variable.publish = block.publish
        return cls(block, values, context, variable, dtype)

    def shared_address(self) -> int:
        """The address for others, who may read and write there from now on; all pending work is done, and what the host
        wrote is there."""
        engine.wait_to_write(self.variable)
        self.variable.volatile = self.block.is_shared = True
        self.variable.publish = self.block.publish
        self.send(writes=True)
        memory = self.block.device.memory
        memory.wait(memory.computed())
        self.wait()
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

    def wait(self) -> None:
        super().wait()
        self.block.wait()

    def numpy(self) -> np.ndarray:
        super().wait()
        return self.read().copy()

    def share(self) -> np.ndarray:
        raise MXNetError(f"an array on {self.context} shares no memory with NumPy: copy it to the host "
                         "first, as .asnumpy() and .as_in_context(mx.cpu()) do")

    def fill(self, other: Array) -> None:
        whole = other.nbytes == self.nbytes == self.block.device.nbytes
        if isinstance(other, DeviceArray) and other.context == self.context and other.dtype == self.dtype and whole:
            other.send(writes=False)
            self.send(writes=True)
            self.block.device.memory.copy(self.address, other.address, self.nbytes)
            computed(self.block.device.memory, ((other, False), (self, True)))
        else:
            self.have(other.given())

    def have(self, values: Given) -> None:
        """See Array. All of an allocation is copied to the device at once, and not to the host's copy before."""
        element = self.view_of_host.dtype
        if not isinstance(values, np.ndarray) or values.size * element.itemsize != self.block.device.nbytes:
            super().have(values)
            return
        if values.dtype != element or not values.flags.c_contiguous:
            dtypes.write(made := np.empty(values.shape, element), values)
            values = made
        self.block.put(values)

    def _write(self, values: np.ndarray, key: Any) -> None:
        is_whole = key is ... or (isinstance(key, slice) and key == slice(None))
        if is_whole and np.shape(values) == self.shape and isinstance(values, np.ndarray):
            self.have(values)
        else:
            super()._write(values, key)

    def copy_out(self, values: np.ndarray) -> bool:
        """See Array."""
        return (self.nbytes == values.nbytes == self.block.device.nbytes and values.flags.c_contiguous
                and self.block.fetch_into(values))


def computed(memory: Any, used: Iterable[tuple[DeviceArray, bool]]) -> None:
    """Note what work that has begun on a GPU uses, and whether it writes that. Where others see the memory, and where
    nothing is queued (NaiveEngine), it is waited for."""
    mark = memory.computed()
    waits = engine.is_naive()
    for array, writes in used:
        if writes:
            array.block.written = mark
        waits = waits or array.block.is_shared
    if waits:
        memory.wait(mark)


def run(launcher: Launcher, table: Any, used: Sequence[tuple[DeviceArray, bool]]) -> None:
    """Begin to run a table on a GPU, in the middle of work that reads and writes its arrays: these, each with whether
    it is written."""
    for array, writes in used:
        array.send(writes)
    try:
        launcher.run(table)
    finally:  # a part may have begun
        computed(launcher.memory, used)


def check_devices(context: Context, arrays: Mapping[str, Array | None]) -> None:
    """Raise MXNetError unless everything is on the GPU that `context` is, or nothing is on a GPU."""
    for name, array in arrays.items():
        if array is not None and array.context.gpu_number != context.gpu_number:
            raise MXNetError(f"{name} is on {array.context}, and the graph is bound on {context}: bind it on the "
                             "device of its arrays, or copy them there with as_in_context")


def _start(array: np.ndarray) -> int:
    found: int = array.__array_interface__["data"][0]
    return found
