"""MXNet's `mx.context`: the devices of runtime/context.py for programs."""
from mxc.runtime.context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {
    "": "ctypes threading warnings",
    "mxc.base": "_LIB _MXClassPropertyMetaClass check_call classproperty with_metaclass"})
__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "num_gpus", *_names]
