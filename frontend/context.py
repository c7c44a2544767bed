"""Devices: `Context`, `cpu`, `gpu`, `cpu_pinned` and the current one."""
from mxc.runtime.context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "gpu_memory_info", "num_gpus"]
