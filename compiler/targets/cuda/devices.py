"""The GPUs that arrays can be put on: those of the machine, or simulated ones."""
from __future__ import annotations

import atexit
import functools
import os
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import TargetError
from mxc.compiler.system import env, forks
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cuda import pinned
from mxc.compiler.targets.cuda.allocator import FORKED, Allocator

EXTRA = "pip install 'mxc-compiler[cuda]'"


_found: dict[int, Allocator] = {}  # by number
_owner = 0  # the process that uses them
_lock = Lock()


@functools.cache
def count() -> int:
    """How many GPUs there are; 0 without a driver, or without the extra `cuda`."""
    return env.simulated_gpus() or _fault_and_count()[1]


@functools.cache
def _fault_and_count() -> tuple[str, int]:
    """Why no GPU of this machine can be used, and how many can."""
    import ctypes.util

    if not ctypes.util.find_library("cuda"):
        return "the NVIDIA driver (libcuda) is not installed", 0
    from mxc.compiler.targets.cuda import driver

    try:
        bindings = driver.bindings()
        code = bindings.cuInit(0)[0]
        code, found = bindings.cuDeviceGetCount() if int(code) == 0 else (code, 0)
    except ImportError as error:
        return f"the packages for it are not installed ({error}): {EXTRA}", 0
    except Exception as error:  # such as a library that cannot be loaded
        return f"the NVIDIA driver cannot be used ({error})", 0
    if int(code) != 0 or not found:
        return f"the NVIDIA driver has no GPU (CUDA error {int(code)})", 0
    return "", int(found)


def require(number: int) -> None:
    """Raise TargetError unless arrays can live on the GPU of that number, in this process."""
    if not is_usable():
        raise TargetError(f"gpu({number}): {FORKED}")
    if not 0 <= number < count():
        why = f"there are {count()}" if count() else f"there is none: {_fault_and_count()[0]}"
        raise TargetError(f"gpu({number}): {why}; use mx.cpu(), or choose the context by mx.context.num_gpus(), which "
                          f"is {count()} here")


def memory(number: int) -> Allocator:
    """The memory of a GPU, which knows the device. Raises TargetError as `require`."""
    global _owner
    require(number)
    with _lock:
        if number not in _found:
            from mxc.compiler.targets.cuda import driver, simulator

            made: Device = simulator.SimulatedGpu(number) if env.simulated_gpus() else driver.Gpu(number)
            if not _found:
                atexit.register(_close)
                forks.before(_before_fork)
            _found[number], _owner = Allocator(made), os.getpid()
        return _found[number]


def wait() -> None:
    """See `Gpus` of protocol.py."""
    if _found and is_usable():
        for found in list(_found.values()):
            found.order.wait_for_all()


def pin(owner: Any, address: int, nbytes: int) -> bool:
    """See `Gpus` of protocol.py."""
    if not _found or not is_usable():
        return False
    return pinned.pin(owner, address, nbytes, next(iter(_found.values())).device)


def collectives() -> Collectives:
    """See `Gpus` of protocol.py."""
    from mxc.compiler.targets.cuda import collectives

    return collectives


@functools.cache
def collective_group(numbers: tuple[int, ...]) -> CollectiveGroup:
    """See `Gpus` of protocol.py."""
    from mxc.compiler.targets.cuda import collectives

    return collectives.Group([memory(number) for number in numbers])


def release_staging() -> None:
    """See `Gpus` of protocol.py."""
    if is_usable():
        for found in list(_found.values()):
            found.staging.release()


def _before_fork() -> None:
    """A child has no driver, and must not have memory either that one of its parent's devices copies from."""
    if is_usable():
        pinned.release_all()
        release_staging()


def _close() -> None:
    """At exit: no copies are under way when the host's memory goes. What is still to come is copied without blocks."""
    if is_usable():
        pinned.release_all()
        for found in list(_found.values()):
            found.staging.release(closes=True)


def capability(number: int) -> int:
    """The compute capability of a GPU, times 10: 90; of a simulated one that of the simulator. Raises TargetError as
    `require`."""
    arch = memory(number).device.arch
    if arch.startswith("sm_"):
        return int(arch[3:])
    from numba import cuda

    major, minor = cuda.get_current_device().compute_capability
    return int(10 * major + minor)


def is_usable() -> bool:
    """Whether GPUs can be used in this process: not in one that was forked from a process that did."""
    return not _found or os.getpid() == _owner


if TYPE_CHECKING:  # mypy compares them
    from mxc.compiler.targets.cuda.device import Device
    from mxc.compiler.targets.cuda.driver import Gpu
    from mxc.compiler.targets.cuda.simulator import SimulatedGpu
    from mxc.compiler.targets.protocol import CollectiveGroup, Collectives

    _: tuple[type[Device], type[Device]] = Gpu, SimulatedGpu
