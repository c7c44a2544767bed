"""Small things that programs take from `mxnet.util`: shape semantics, environment variables, GPUs."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn

from mxc.compiler import targets
from mxc.compiler.error import ArgumentError, UnsupportedError
from mxc.compiler.system import env
from mxc.context import Context, gpu_memory_info, num_gpus
from mxc.runtime.array import semantics
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"": "ctypes threading", "mxc.base": "_LIB c_str check_call py_str"})
__all__ = ["functools", "get_cuda_compute_capability", "get_gpu_count", "get_gpu_memory", "getenv", "inspect",
           "is_np_array", "is_np_shape", "np_array", "np_shape", "reset_np", "set_module", "set_np", "set_np_shape",
           "setenv", "use_np", "use_np_array", "use_np_shape", *_names]


def is_np_shape() -> bool:
    """Whether 0 and () are shapes like any other in this thread, instead of meaning "not known"."""
    return semantics.np_shape


def is_np_array() -> bool:
    """Whether results are arrays of MXNet's NumPy interface, which mxc does not have: False."""
    return False


def set_np_shape(active: bool) -> bool:
    """Turn NumPy's shape semantics on or off in this thread; what it was before.

    With it arrays without axes and without elements can be made (`mx.nd.zeros(())`), operators and executors take
    them, and an element that integers alone select has the shape (). In shapes that are given or inferred -1 is an
    extent that is not known.
    """
    before, semantics.np_shape = semantics.np_shape, bool(active)
    return before


def set_np(shape: bool = True, array: bool = True) -> None:
    """Turn NumPy's shape semantics on or off in this thread. Raises UnsupportedError when arrays of MXNet's NumPy
    interface are wanted too, ValueError when these are wanted without the shapes."""
    if array and not shape:
        raise ArgumentError("set_np: arrays of the NumPy interface need NumPy's shape semantics too")
    if array:
        _refuse_arrays("set_np")
    set_np_shape(shape)


def np_array(active: bool = True) -> _NumpyShapeScope:
    """A scope in which operators give arrays of MXNet's NumPy interface. Raises UnsupportedError unless `active` is
    False, which changes nothing."""
    if active:
        _refuse_arrays("np_array")
    return _NumpyShapeScope(is_np_shape())


def use_np_array(func: Any) -> NoReturn:
    """Raises UnsupportedError: a decorator for what computes with arrays of MXNet's NumPy interface."""
    _refuse_arrays("use_np_array")


def use_np(func: Any) -> NoReturn:
    """Raises UnsupportedError: a decorator for what computes with arrays of MXNet's NumPy interface."""
    _refuse_arrays("use_np")


def _refuse_arrays(name: str) -> NoReturn:
    raise UnsupportedError(f"{name}: the interface mx.np is not there; arrays are those of mx.nd. The shape semantics "
                           "alone are mx.np_shape, mx.use_np_shape and mx.set_np_shape")


def reset_np() -> None:
    """Turn NumPy's semantics off in this thread."""
    set_np_shape(False)


class _NumpyShapeScope:
    """A scope with NumPy's shape semantics on or off; also a decorator."""

    def __init__(self, active: bool):
        self._active = bool(active)
        self._before: list[bool] = []

    def __enter__(self) -> _NumpyShapeScope:
        self._before.append(set_np_shape(self._active))
        return self

    def __exit__(self, *exception: object) -> None:
        set_np_shape(self._before.pop())


def np_shape(active: bool = True) -> _NumpyShapeScope:
    """A `with` scope in which NumPy's shape semantics are on or off; see `set_np_shape`."""
    return _NumpyShapeScope(active)


def use_np_shape(func: Any) -> Any:
    """Decorate a function, or a class for all its methods, to run with NumPy's shape semantics.

    Raises TypeError for anything else.
    """
    if inspect.isclass(func):
        for name, member in vars(func).copy().items():
            if inspect.isfunction(member):
                setattr(func, name, use_np_shape(member))
            elif isinstance(member, property):
                fget, fset, fdel = (part and use_np_shape(part) for part in (member.fget, member.fset, member.fdel))
                setattr(func, name, property(fget, fset, fdel, member.__doc__))
        return func
    if not callable(func):
        raise TypeError(f"use_np_shape can only decorate classes and callable objects, while received a {type(func)}")

    @functools.wraps(func)
    def with_np_shape(*args: Any, **kwargs: Any) -> Any:
        with np_shape(True):
            return func(*args, **kwargs)

    return with_np_shape


def set_module(module: str) -> Callable[[Any], Any]:
    """A decorator that says in which module a function or class is to be found; nothing changes for None."""
    def decorate(func: Any) -> Any:
        if module is not None:
            func.__module__ = module
        return func

    return decorate


def getenv(name: str) -> str | None:
    """The environment variable of that name; None when it is not set."""
    return env.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable of this process, or unset it with None."""
    env.set(name, value)


def get_gpu_count() -> int:
    """How many GPUs arrays can be put on."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """(free, total) bytes of a GPU. Raises TargetError, an MXNetError, where there is none."""
    return gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int:
    """The compute capability of a GPU, as 75. Raises ValueError for another device, TargetError where no GPU is."""
    if not isinstance(ctx, Context) or ctx.device_type != "gpu":
        raise ArgumentError(f"only a GPU has a compute capability, got {ctx!r}")
    return targets.gpus().capability(ctx.device_id)
