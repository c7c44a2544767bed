"""Devices, as the runtime knows them: `Context`, the thread's current one, `cpu`, `gpu` and `cpu_pinned`.

Every `cpu(i)` is a device of its own: arrays of `cpu(0)` and `cpu(1)` do not share memory, though both are the host's,
which computes with them together.
"""
from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, ClassVar

from mxc.compiler import targets
from mxc.compiler.error import ArgumentTypeError, MXNetError, nearest
from mxc.runtime.scopes import ClassPropertyType, ThreadValue, deprecated

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget

GPU = 2  # the type of GPUs; types above it are memory for transfers


class Context(metaclass=ClassPropertyType):
    """A device by type ("cpu", "gpu", "cpu_pinned", "cpu_shared") and number; a copy when given a Context.

    As a `with` scope it is what `current_context()` gives, in this thread, until the scope ends.
    Raises KeyError for a device type that does not exist, TypeError for a number that is none.
    """

    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {name: number for number, name in devtype2str.items()}
    _default_ctx: ClassVar[ThreadValue] = ThreadValue(lambda: Context("cpu"))  # what `current_context()` gives
    default_ctx = deprecated(_default_ctx, "Context.default_ctx is deprecated: use mx.current_context(), and a `with` "
                             "scope to change it", lambda context: Context(context))

    __slots__ = ("device_id", "device_typeid")
    device_id: int
    device_typeid: int

    def __init__(self, device_type: str | Context, device_id: int = 0):
        if isinstance(device_type, Context):
            self.device_typeid, self.device_id = device_type.device_typeid, device_type.device_id
        elif isinstance(device_id, str):
            raise ArgumentTypeError(f"the number of a device must be an integer, got {device_id!r}")
        elif device_type in self.devstr2type:
            self.device_typeid, self.device_id = self.devstr2type[device_type], int(device_id)
        else:
            known = ", ".join(self.devstr2type)
            hint = nearest(str(device_type), self.devstr2type)
            raise KeyError(f"no device type {device_type!r} (known: {known}){hint}")

    @property
    def device_type(self) -> str:
        return self.devtype2str[self.device_typeid]

    @property
    def home(self) -> Context:
        """Where an array lives that is made here: as in MXNet a negative number stands for device 0 of the type."""
        return self if self.device_id >= 0 else Context(self.device_type)

    @property
    def computing(self) -> Context:
        """Where the results of operators on arrays from here are: memory for transfers (cpu_pinned, cpu_shared) keeps
        what was put there, and the CPU of that number computes with it."""
        return self if self.device_typeid <= GPU else cpu(self.device_id)

    @property
    def gpu_number(self) -> int:
        """The number of the GPU; -1 for another device."""
        return self.device_id if self.device_typeid == GPU else -1

    def target(self) -> KernelTarget | None:
        """What is compiled for the device; None for a CPU. Raises TargetError where there is no such GPU."""
        return targets.kernel_target(f"gpu:{self.device_id}") if self.device_typeid == GPU else None

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Context) and self.device_typeid == other.device_typeid
                and self.device_id == other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_typeid, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[Context], tuple[str, int]]:
        return Context, (self.device_type, self.device_id)

    def __setstate__(self, state: dict[str, int]) -> None:
        """Take MXNet's pickled state, its attributes; mxc's pickles have none."""
        self.device_typeid, self.device_id = state["device_typeid"], state["device_id"]

    def __enter__(self) -> Context:
        self._default_ctx.enter(self)
        return self

    def __exit__(self, ptype: object, value: object, trace: object) -> None:
        self._default_ctx.leave()

    def empty_cache(self) -> None:
        """Give the memory that is pooled for this device back to the system, or to the GPU."""
        from mxc.runtime import storage

        if self.device_typeid == GPU:
            targets.gpus().memory(self.device_id).release_free()
            return
        storage.release_free(self)

    def require(self) -> None:
        """Raise TargetError unless arrays can live on this device."""
        if self.device_typeid == GPU:
            targets.gpus().require(self.device_id)


@functools.cache  # one object: that arrays are on the same device is then seen at once
def cpu(device_id: int = 0) -> Context:
    """The CPU device of that number."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Host memory that a GPU copies from directly: its pages are locked where this process uses a GPU already, the
    array is not small, and until this process forks. Else, and for the CPU, it is the same as the CPU's."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """The GPU of that number. Naming it is free; the first array put there raises TargetError when there is none."""
    return Context("gpu", device_id)


def current_context() -> Context:
    """The context of the innermost `with` scope of this thread, else `cpu(0)` or what was set with `set_default`."""
    return Context._default_ctx.value


def context_of(given: Context | str) -> Context:
    """The context itself, or the one that a text such as "cpu(1)" names. Raises MXNetError for a text that names none,
    ArgumentTypeError for anything else."""
    if isinstance(given, Context):
        return given
    if not isinstance(given, str):
        raise ArgumentTypeError(f"expected a Context such as mx.cpu(), got {given!r}")
    kind, _, number = given.partition("(")
    if kind not in Context.devstr2type or not re.fullmatch(r"-?\d+\)", number):
        raise MXNetError(f"{given!r} names no context; expected a device type ({', '.join(Context.devstr2type)}) and a "
                         'number, such as "cpu(0)"')
    return Context(kind, int(number[:-1]))


def set_default(context: Context) -> None:
    """Make `context` the current one in this thread, until the end of the `with` scope that it is called in."""
    Context._default_ctx.value = Context(context)


def num_gpus() -> int:
    """How many GPUs arrays can be put on; those of Numba's simulator with NUMBA_ENABLE_CUDASIM=1."""
    return targets.gpus().count()


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """(free, total) bytes of a GPU; memory that is kept for later arrays counts as free. Raises TargetError where there
    is none."""
    return targets.gpus().memory(device_id).info()
