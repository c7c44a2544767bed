"""Kernels that copy one array: to another, or to its place in a larger one."""
from __future__ import annotations

import math

from mxc.compiler.graph.graph import Shape
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.index_rules.context import flatten
from mxc.compiler.kernel.ir import LoopKernel, Store, apply, axis, load
from mxc.compiler.kernel.simplify_index import index


def copy_kernel(dtype: str, shape: Shape, mode: str) -> LoopKernel:
    """buffers: source, destination, both of `shape`. mode: "write" or "add"."""
    store = Store(1, axis(0), load(0, axis(0), dtype), mode)
    return LoopKernel("copy", (dtype, dtype), (math.prod(shape),), (), (), (store,))


def placing_kernel(dtype: str, shape: Shape, whole: Shape, joined: int, start: int, mode: str) -> LoopKernel:
    """buffers: an array of `shape`, and one of the shape `whole`, in which it lies from `start` on along the axis
    `joined`. mode: "write" or "add"."""
    lead, run, step = math.prod(shape[:joined]), math.prod(shape[joined:]), math.prod(whole[joined + 1:])
    place = flatten((axis(0), axis(1)), (lead, step * whole[joined]))
    source = load(0, flatten((axis(0), axis(1)), (lead, run)), dtype)
    store = Store(1, apply("add", place, index(start * step)), source, mode)
    return canonical(LoopKernel("copy", (dtype, dtype), (lead, run), (), (), (store,)))
