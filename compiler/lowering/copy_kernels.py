"""Kernels that copy one array: to another, or to its place in a larger one."""
from __future__ import annotations

import math

from mxc.compiler.graph.graph import Shape
from mxc.compiler.kernel.ir import LoopKernel, Store, axis, load
from mxc.compiler.kernel.simplify_index import from_affine


def copy_kernel(dtype: str, shape: Shape, mode: str) -> LoopKernel:
    """A kernel that copies a whole array. buffers: source, destination, both of `shape`. mode: "write" or "add"."""
    store = Store(1, axis(0), load(0, axis(0), dtype), mode)
    return LoopKernel("copy", (dtype, dtype), (math.prod(shape),), (), (), (store,))


def placing_kernel(dtype: str, shape: Shape, whole: Shape, joined: int, start: int, mode: str) -> LoopKernel:
    """A kernel that copies an array to its place in a larger one.

    buffers: an array of `shape`, and one of the shape `whole`, in which it lies from `start` on along the axis
    `joined`. mode: "write" or "add". The kernel is in canonical form, since there may be thousands of them.
    """
    lead, run, step = math.prod(shape[:joined]), math.prod(shape[joined:]), math.prod(whole[joined + 1:])
    # For each axis: its extent, and the elements from one place to the next in the part and in the whole.
    loops = [(lead, run, step * whole[joined]), (run, 1, 1)] if run != step * whole[joined] else [(lead * run, 1, 1)]
    loops = [each for each in loops if each[0] != 1]
    source = from_affine({axis(i): part for i, (_, part, _) in enumerate(loops)}, 0)
    place = from_affine({axis(i): all_ for i, (_, _, all_) in enumerate(loops)}, start * step)
    store = Store(1, place, load(0, source, dtype), mode)
    return LoopKernel("copy", (dtype, dtype), tuple(extent for extent, _, _ in loops), (), (), (store,))
