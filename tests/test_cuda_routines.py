"""Routines for NVIDIA GPUs: in Numba's simulator, where they do exactly what they do as Python; and as code."""
from __future__ import annotations

import pytest
from cuda_runs import simulated
from test_routines import CASES, program_of

from mxc.compiler.error import TargetError
from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.targets.cpu.target import cpu_target
from mxc.compiler.targets.cuda.blocks import GPU, Blocks
from mxc.compiler.targets.cuda.code import compile_kernel, toolchain
from mxc.compiler.targets.cuda.kernels import grid_of, source_of
from mxc.compiler.targets.cuda.routines import threads_of

PROGRAM = """
import numpy as np
from cuda_runs import run
from test_cuda_routines import kernels
from mxc.compiler.kernel.routines import spec

for kernel, arrays in kernels({dtypes}, {first}):
    found, right = [a.copy() for a in arrays], [a.copy() for a in arrays]
    run(kernel, found)
    spec.run(kernel, right)
    # a running sum of float16 that is read again is rounded at each step
    tolerance = 4e-3 if "float16" in kernel.buffers else 1e-6
    for position in kernel.writes():
        np.testing.assert_allclose(found[position], right[position], tolerance, tolerance, err_msg=kernel.routine)
"""


def kernels(dtypes: tuple[str, ...], first: bool) -> list:
    """Routines with their arrays, as operators' cases run them. first: one of each routine alone."""
    import numpy as np
    from programs import DEFINITIONS

    found, seen = [], set()
    for case, dtype in CASES:
        if dtype not in dtypes:
            continue
        program = program_of(case, dtype, cpu_target())

        def keep(kernel, arrays) -> None:
            key = kernel.routine if isinstance(kernel, RoutineKernel) else ""
            if key and not (first and key in seen):
                seen.add(key)
                found.append((kernel, [np.array(a) for a in arrays]))
            DEFINITIONS[type(kernel)](kernel, arrays)

        program.run({f"x{i}": a for i, a in enumerate(case.arrays(dtype))}, run=keep)
    return found


def test_each_routine() -> None:
    simulated(PROGRAM.format(dtypes=("float32",), first=True))


@pytest.mark.slow
def test_every_case() -> None:
    simulated(PROGRAM.format(dtypes=("float32", "float64", "float16"), first=False))


def sort(dtype: str, rows: int, n: int, k: int, ascending: bool) -> RoutineKernel:
    """As operators make it."""
    top = 0 if "float" in dtype else 255 if dtype == "uint8" else -1
    constants = (("ascending", ascending), ("real", dtype), ("top", top))
    return RoutineKernel("sort", "argsort", constants, (dtype, "int32"), (rows, n, k, min(n, 2 * k + 32)), 1)


SORTS = [("float32", 2, 65, 65), ("float32", 1, 300, 300), ("float64", 3, 128, 10), ("float16", 2, 129, 129),
         ("uint8", 2, 256, 7), ("int8", 1, 200, 200), ("int64", 2, 257, 3), ("int32", 1, 100, 100)]


@pytest.mark.parametrize("cases", [SORTS[:1], pytest.param(SORTS[1:], marks=pytest.mark.slow)], ids=["one", "all"])
def test_long_rows_are_sorted_by_blocks(cases: list) -> None:
    """As one thread does it: equal numbers by their places, NaN last, also among what a row is filled up with."""
    simulated(f"""
import numpy as np
from cuda_runs import run
from test_cuda_routines import sort
from mxc.compiler.kernel.routines import spec

rng = np.random.default_rng(0)
for dtype, rows, n, k in {cases}:
    for ascending in (True, False):
        kernel = sort(dtype, rows, n, k, ascending)
        data = rng.integers(0 if dtype == "uint8" else -5, 6, rows * n).astype(dtype)
        if "float" in dtype:
            data[rng.random(data.size) < 0.1] = np.nan
            data[3:7] = np.inf, -np.inf, -0.0, 0.0
        else:
            data[:2], data[7:9] = np.iinfo(dtype).max, np.iinfo(dtype).min
        found, right = np.zeros(rows * k, "int32"), np.zeros(rows * k, "int32")
        run(kernel, [data, found])
        spec.run(kernel, [data.copy(), right])
        np.testing.assert_array_equal(found, right, err_msg=str((dtype, n, k, ascending)))
kernel = sort("float32", 5, 70, 70, True)  # a block goes on with further rows
data, found, right = rng.random(350).astype("float32"), np.zeros(350, "int32"), np.zeros(350, "int32")
run(kernel, [data, found], most=2)
spec.run(kernel, [data, right])
np.testing.assert_array_equal(found, right)
""")


def test_blocks_of_a_sort() -> None:
    """A block for each row; fewer where their scratch memory would be too large."""
    total = 1 << 20  # 1,000,000 numbers, filled up
    grid = grid_of(sort("float32", 3, 1_000_000, 10, True), GPU)
    assert grid.blocks == 3 and grid.integers == (total, 3 * 4 * total, 3 * 4 * total)
    assert grid_of(sort("float32", 100, 1_000_000, 10, True), GPU).blocks == GPU.scratch // (8 * total)
    assert grid_of(sort("float32", 100, 64, 10, True), GPU).integers[0] == 100  # threads: a row is short


def some_routine(name: str) -> RoutineKernel:
    return next(kernel for kernel, _ in kernels(("float32",), True) if kernel.routine == name)


def test_threads_have_room_for_their_scratch_memory() -> None:
    kernel = some_routine("argsort")
    sizes = dict(zip(("rows", "n", "k", "room"), kernel.extents, strict=True))
    assert threads_of(kernel, GPU) == sizes["rows"]
    each = 2 * sizes["room"] * 8
    small = Blocks(threads=8, tile=(16, 8, 16), each=(4, 4), most_threads=8, scratch=each)
    assert threads_of(kernel, small) == 1
    assert grid_of(kernel, small).integers[0] == 1 and grid_of(kernel, small).scratch >= each


def test_source() -> None:
    text = source_of(some_routine("argsort"), GPU)
    assert "def kernel(data, order, values, keys, ids):" in text
    assert "keys[keys_at + filled] = key" in text and "for unit in range(thread, rows, threads):" in text


@pytest.mark.slow
def test_code_for_every_routine() -> None:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    for kernel, _ in kernels(("float32",), True):
        assert b".text.mxc_kernel" in compile_kernel(kernel, "mxc_kernel", "sm_90").cubin, kernel.routine
