"""mxc runs Apache MXNet programs and models. Use it as `import mxc as mx`.

Parts are loaded when they are first used, so that importing mxc costs little. Modules here have the names of MXNet's:
begin with `ndarray/`, `symbol/` and `executor.py`; `cli/` is the command `mxc`. They may import `mxc.runtime` and, for
graphs and the operator table, `mxc.compiler`, which never import this layer.
"""
from __future__ import annotations

from mxc.compiler.system import env as _env

TYPE_CHECKING = False  # as typing.TYPE_CHECKING; importing typing would take longer than this module
if TYPE_CHECKING:
    from typing import Any

VERSION = "0.1.0"  # mxc's version, the one in pyproject.toml
__version__ = "1.9.1"  # the version of MXNet whose interface mxc has: programs compare it with what they need

# Modules under other names, and names that live in modules.
_MODULES = {"sym": "symbol", "nd": "ndarray", "rnd": "random", "runtime": "runtime", "img": "image",
            "init": "initializer", "kv": "kvstore", "mod": "module", "mon": "monitor", "viz": "visualization"}
_NAMES = {
    "AttrScope": "attribute", "MXNetError": "base", "load": "artifact",
    "Context": "context", "cpu": "context", "cpu_pinned": "context", "current_context": "context", "gpu": "context",
    "is_np_array": "util", "is_np_shape": "util", "np_array": "util", "np_shape": "util", "set_np_shape": "util",
    "use_np": "util", "use_np_array": "util", "use_np_shape": "util",
}
_ACTING = {"__main__", "as_mxnet"}  # importing these has an effect, so `dir` and `import *` leave them out
# What MXNet does not have, so that `from mxc import *` binds none of it.
_OWN = ("artifact", "batching", "checkpoints", "class_names", "cli", "codes", "compiler", "compiling", "detections",
        "load", "mixed_precision", "narray", "operator_arguments", "operator_calls", "operator_docs",
        "operator_elementwise", "operator_kernel", "parameter_files", "picture_inputs", "precision",
        "python_operator", "safetensors_file")


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__all__":
        return [name for name in __dir__() if not name.startswith("_") and name not in _OWN]
    if name.startswith("__"):
        raise AttributeError(f"module 'mxc' has no attribute {name!r}")
    if name in _NAMES:
        value = getattr(importlib.import_module(f"mxc.{_NAMES[name]}"), name)
    else:
        target = f"mxc.{_MODULES.get(name, name)}"
        try:
            value = importlib.import_module(target)
        except ModuleNotFoundError as error:
            if error.name != target:
                raise
            there = ", ".join(name for name in __dir__() if not name.startswith("__"))
            raise AttributeError(f"module 'mxc' has no attribute {name!r}; it has {there}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What there is, loaded or not: help and completion show it."""
    import pkgutil

    own = {name for name in globals() if name.startswith("__")}
    parts = {module.name for module in pkgutil.iter_modules(__path__)} - _ACTING
    return sorted({*own, *_NAMES, *_MODULES, *parts})


if _env.text("DMLC_ROLE") in ("scheduler", "server"):  # of a program that MXNet's launcher started in many processes
    from mxc.kvstore.kvstore_server import _init_kvstore_server_module

    _init_kvstore_server_module()
