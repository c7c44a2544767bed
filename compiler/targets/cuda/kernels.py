"""Kernels of every kind as numba.cuda source, and how each is launched."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.ir import CallKernel, FunctionKernel, Kernel, LoopKernel, RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.targets.cuda import loops, products, routines, sorting, windows
from mxc.compiler.targets.cuda.blocks import Blocks
from mxc.compiler.targets.cuda.functions import entry, function_source

MOST = (1 << 32) - 1  # points: places are divided with 32 bits


@dataclass(frozen=True)
class Grid:
    """How a kernel is launched. blocks: of threads. scratch: bytes of its private arrays for all threads. integers:
    what its code gets behind `values()`."""

    blocks: int
    scratch: int = 0
    integers: tuple[int, ...] = ()


def lacks(kernel: Kernel) -> str:
    """The template or routine that there is no code for; "" where there is code."""
    if isinstance(kernel, LoopKernel) and max(prod(kernel.domain), prod(kernel.reduce)) > MOST:
        return f"more than {MOST} points"
    if isinstance(kernel, LoopKernel | FunctionKernel | RoutineKernel):
        return ""
    if isinstance(kernel, CallKernel) and products.has_form(kernel) and max(products.sizes_of(kernel)) > MOST // 4:
        return f"a product of more than {MOST // 4} rows, columns or multiplications for each"
    if isinstance(kernel, CallKernel):
        return "" if products.has_form(kernel) or windows.has_form(kernel) else kernel.template
    return kernel.name


def source_of(kernel: Kernel, blocks: Blocks) -> str:
    """The numba.cuda source of a kernel. Raises MXNetError for one that there is no code for."""
    if isinstance(kernel, LoopKernel):
        return loops.loop_source(kernel, blocks.threads)
    if isinstance(kernel, FunctionKernel):
        return function_source(kernel)
    if isinstance(kernel, RoutineKernel):
        return sorting.sort_source(kernel, blocks) if sorting.has_form(kernel) else routines.routine_source(kernel)
    if lacks(kernel):
        raise MXNetError(f"{kernel.name}: there is no code for {lacks(kernel)} on GPUs")
    assert isinstance(kernel, CallKernel)
    return products.product_source(kernel, blocks) if products.has_form(kernel) else windows.window_source(
        kernel, blocks.threads)


def function_of(kernel: Kernel, blocks: Blocks, array: Callable[..., Any] | None = None,
                shared: Callable[..., Any] | None = None) -> Any:
    """The function that the source defines. array: makes an array of a buffer and a shape, for functions of a
    program's own; None: as the simulator does. shared: gives the arrays of shared memory by number, size and type, in
    place of numba.cuda."""
    if isinstance(kernel, FunctionKernel):
        from numba import cuda

        return entry(kernel, cuda, array)
    from mxc.compiler.targets.cuda.vocabulary import names

    source = source_of(kernel, blocks)
    assert isinstance(kernel, LoopKernel | CallKernel | RoutineKernel)
    space = names(kernel)
    if shared is not None:
        number = count()
        source = re.sub(r"cuda\.shared\.array\(", lambda _: f"shared({next(number)}, ", source)
        space["shared"] = shared
    exec(compile(source, f"<{kernel.name}>", "exec"), space)
    return space["kernel"]


def grid_of(kernel: Kernel, blocks: Blocks) -> Grid:
    """How a kernel is launched."""
    if isinstance(kernel, RoutineKernel) and sorting.has_form(kernel):
        count, sizes = sorting.sort_grid(kernel, blocks)
        return Grid(count, sum(sizes), (sorting.total_of(kernel, blocks), *sizes))
    if isinstance(kernel, RoutineKernel):
        threads, sizes = routines.threads_of(kernel, blocks), routines.scratch_sizes(kernel, blocks)
        return Grid(-(-threads // blocks.threads), sum(sizes), (threads, *sizes))
    if isinstance(kernel, FunctionKernel):
        return Grid(1)
    if isinstance(kernel, CallKernel):
        if products.has_form(kernel):
            return Grid(products.tiles_of(kernel, blocks))
        points = windows.points_of(kernel)
        return Grid(_of_blocks(points, blocks) if windows.by_blocks(kernel) else _of_points(points, blocks))
    assert isinstance(kernel, LoopKernel)
    points = prod(kernel.domain)
    if loops.form(kernel) == loops.BLOCKS:
        return Grid(_of_blocks(points, blocks))
    return Grid(_of_points(points, blocks))


def _of_blocks(points: int, blocks: Blocks) -> int:
    return max(1, min(points, blocks.most_threads))


def _of_points(points: int, blocks: Blocks) -> int:
    return max(1, -(-min(points, blocks.most_threads) // blocks.threads))


def scratch_dtypes(kernel: Kernel) -> tuple[str, ...]:
    """The dtypes of a kernel's private arrays."""
    return tuple(dtype for _, dtype, _ in spec.scratch(kernel)) if isinstance(kernel, RoutineKernel) else ()
