"""The routine argsort for long rows as numba.cuda source: a block for each row, which sorts it by bitonic merges.

What is sorted are pairs of a number and its place. No two are equal, so their order is the routine's, whatever way
leads to it: NaN comes last, and what fills a row up to a power of two comes behind all that is there. Pairs that are
near each other meet in shared memory, others in the scratch memory of the block.
"""
from __future__ import annotations

import numpy as np

from mxc.compiler.kernel.ir import RoutineKernel, computing_dtype
from mxc.compiler.kernel.routines import spec
from mxc.compiler.targets.cuda.blocks import Blocks
from mxc.compiler.targets.scalar_printer import SourceLines

SHORT = 64  # numbers of a row that one thread sorts at most
EACH = 8  # pairs in shared memory, for each thread


def has_form(kernel: RoutineKernel) -> bool:
    """Whether a block sorts each row."""
    return kernel.routine == "argsort" and kernel.buffers[0] != "bool" and spec.numbers(kernel)["n"] > SHORT  # type: ignore[operator]


def total_of(kernel: RoutineKernel, blocks: Blocks) -> int:
    """How many pairs a row is filled up to."""
    length = int(spec.numbers(kernel)["n"])  # type: ignore[call-overload]
    return max(EACH * blocks.threads, 1 << (length - 1).bit_length())


def sort_grid(kernel: RoutineKernel, blocks: Blocks) -> tuple[int, list[int]]:
    """How many blocks there are, and the bytes of each scratch array for all of them, as multiples of 256."""
    total = total_of(kernel, blocks)
    sizes = [np.dtype(dtype).itemsize for _, dtype, _ in spec.scratch(kernel)]
    count = max(1, min(spec.units(kernel), blocks.most_threads, blocks.scratch // (total * sum(sizes))))
    return count, [-(-count * total * size // 256) * 256 for size in sizes]


def sort_source(kernel: RoutineKernel, blocks: Blocks) -> str:
    """`def kernel(data, order, values, keys, ids)`; values: the routine's integers, then `total_of`."""
    dtype, near, source = computing_dtype(kernel.buffers[0]), EACH * blocks.threads, SourceLines()
    real, ascending = "float" in dtype, dict(kernel.constants)["ascending"]
    last = "float('nan')" if real else str(np.iinfo(dtype).max if ascending else np.iinfo(dtype).min)
    source(f"last = {dtype}({last})")
    with source.block("def kernel(data, order, values, keys, ids):"):
        for line in ("rows = values[0]", "n = values[1]", "k = values[2]", "total = values[4]",
                     "thread = cuda.threadIdx.x", "base = cuda.blockIdx.x * total",
                     f"near_keys = cuda.shared.array({near}, {dtype})", f"near_ids = cuda.shared.array({near}, int32)"):
            source(line)
        with source.block("for row in range(cuda.blockIdx.x, rows, cuda.gridDim.x):"):
            source(f"size = {near}")
            with source.block("while size <= total:"):
                source("stride = size >> 1")
                with source.block(f"while stride >= {near}:"):
                    _exchange(source, "keys", "ids", "base", "0", "total >> 1", (real, bool(ascending)))
                    source("stride = stride >> 1")
                with source.block(f"for chunk in range(0, total, {near}):"):
                    _nearby(source, kernel.buffers[0], near, (real, bool(ascending)))
                source("size = size << 1")
            with source.block(f"for i in range(thread, k, {blocks.threads}):"):
                source("order[row * k + i] = ids[base + i]")
            source("cuda.syncthreads()")
    return source.text()


def _nearby(source: SourceLines, stored: str, near: int, form: tuple[bool, bool]) -> None:
    """Sorts what is in a chunk of `near` pairs, the first time from the data on, else merges it."""
    source("i = small_(thread)")
    with source.block(f"while i < {near}:"):
        with source.block(f"if size > {near}:"):
            source("near_keys[i] = keys[base + chunk + i]")
            source("near_ids[i] = ids[base + chunk + i]")
        with source.block("else:"):
            source("near_ids[i] = int32(chunk + i)")
            source("near_keys[i] = last")
            with source.block("if chunk + i < n:"):
                element = "data[row * n + chunk + i]"
                source(f"near_keys[i] = {f'float32({element})' if stored == 'float16' else element}")
        source("i = small_(i + cuda.blockDim.x)")
    source("cuda.syncthreads()")
    source(f"run = select(size > {near}, size, 2)")
    with source.block("while run <= size:"):
        source(f"stride = min_(run >> 1, {near >> 1})")
        with source.block("while stride > 0:"):
            _exchange(source, "near_keys", "near_ids", "0", "chunk", str(near >> 1), form, "run")
            source("stride = stride >> 1")
        source("run = run << 1")
    source("i = small_(thread)")
    with source.block(f"while i < {near}:"):
        source("keys[base + chunk + i] = near_keys[i]")
        source("ids[base + chunk + i] = near_ids[i]")
        source("i = small_(i + cuda.blockDim.x)")
    source("cuda.syncthreads()")


def _exchange(source: SourceLines, keys: str, ids: str, base: str, chunk: str, pairs: str, form: tuple[bool, bool],
              run: str = "size") -> None:
    """Puts each two pairs that are `stride` apart in order: upwards or downwards, as the run that they are in goes."""
    real, ascending = form
    source("pair = small_(thread)")
    with source.block(f"while pair < {pairs}:"):  # not unrolled
        for line in ("place = 2 * pair - (pair & (stride - 1))", f"low = {base} + place", "high = low + stride",
                     f"a = {keys}[low]", f"b = {keys}[high]", f"first = {ids}[low]", f"other = {ids}[high]",
                     f"less = (b {'<' if ascending else '>'} a) | ((b == a) & (other < first))"):
            source(line)
        if real:
            source("less = less | ((b == b) & (a != a)) | ((b != b) & (a != a) & (other < first))")
        with source.block(f"if less == ((({chunk} + place) & {run}) == 0):"):
            for line in (f"{keys}[low] = b", f"{keys}[high] = a", f"{ids}[low] = other", f"{ids}[high] = first"):
                source(line)
        source("pair = small_(pair + cuda.blockDim.x)")
    source("cuda.syncthreads()")
