"""numba.cuda source of loop kernels, run in Numba's simulator in a process of its own."""
from __future__ import annotations

from cuda_runs import simulated
from kernel_cases import F, every_kernel, pointwise

from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import apply, axis, load
from mxc.compiler.targets.cuda.loops import loop_source

SOURCE = """
def kernel(b0, b1, values):
    n0 = values[0]
    points = n0
    size = 1
    for point in range(cuda.grid(1), points, cuda.gridsize(1)):
        rest = point
        i0 = umod(rest, n0)
        rest = udiv(rest, n0)
        t0 = b0[i0]
        t1 = float32(exp_(t0))
        b1[i0] = t1
"""
PROGRAM = """
import numpy as np
from cuda_cases import CASES, LONG
from kernel_cases import arrays_for, compare, expected
from cuda_runs import run

for kernel in CASES + LONG:
    arrays = arrays_for(kernel, 2000)
    for array in arrays:
        if array.dtype.kind == "f":
            array[~np.isfinite(array)] = 2
    want = expected(kernel, arrays)
    run(kernel, arrays, most=2)
    compare(kernel, arrays, want)
"""


def test_source() -> None:
    assert loop_source(canonical(pointwise("e", (F, F), [apply("exp", load(0, axis(0), F))])), 128) == SOURCE


def test_simulator_against_interpreter() -> None:
    simulated(PROGRAM)


def test_every_kernel_prints() -> None:
    for kernel in every_kernel():
        compile(loop_source(kernel, 128), kernel.name, "exec")
