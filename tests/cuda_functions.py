"""Functions over whole arrays for the CUDA simulator and compiler, and the kernels that they become."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.functions.arrays import ArrayFunction
from mxc.compiler.functions.source import read
from mxc.compiler.kernel.ir import FunctionKernel


def closest(x):
    return math.floor(x + 0.5)


def pairwise(a, b, out, nearest, *, power=2.0, square=False):
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            for k in range(a.shape[1]):
                out[i, j] += abs(a[i, k] - b[j, k]) ** power
            if square:
                out[i, j] *= out[i, j]
            nearest[i, j] = closest(out[i, j]) > 1


SHAPES = (3, 4), (5, 4), (3, 5), (3, 5)
CASES = [FunctionKernel("pairwise", ArrayFunction(read("pairwise", "function", pairwise), ["out", "nearest"]),
                        ("float32", "float64", "float64", "bool", "int64"), ("a", "b", "out", "nearest"), SHAPES, 2,
                        numbers) for numbers in ((2.0, False), (3.0, True))]


def arrays_for(kernel: FunctionKernel) -> list[np.ndarray]:
    """Flat arrays; those that are written hold anything, the status too."""
    rng = np.random.default_rng(1)
    made = [rng.random(math.prod(shape)).astype(dtype) for shape, dtype in zip(kernel.shapes, kernel.buffers,
                                                                               strict=False)]
    return [*made, np.full(1, 7)]


def check(kernel: FunctionKernel, arrays: list[np.ndarray]) -> None:
    """Compare what a run left with the function as Python runs it."""
    shaped = [a.reshape(s) for a, s in zip(arrays, kernel.shapes, strict=False)]
    wanted = [*shaped[:2], *(np.zeros_like(a) for a in shaped[2:])]
    kernel.function.run(wanted, kernel.numbers)
    for found, right in zip(shaped, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-6)
    assert arrays[-1][0] == 0 and wanted[2].all()
