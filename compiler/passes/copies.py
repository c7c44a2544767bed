"""The kernel that copies one array."""
from __future__ import annotations

import math

from mxc.compiler.graph.graph import Shape
from mxc.compiler.kernel.ir import LoopKernel, Store, axis, load


def copy_kernel(dtype: str, shape: Shape, mode: str) -> LoopKernel:
    """buffers: source, destination, both of `shape`. mode: "write" or "add"."""
    store = Store(1, axis(0), load(0, axis(0), dtype), mode)
    return LoopKernel("copy", (dtype, dtype), (math.prod(shape),), (), (), (store,))
