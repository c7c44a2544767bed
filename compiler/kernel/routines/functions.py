"""Operators that are functions of the program's own over whole arrays, as kernels."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxc.compiler.kernel.ir import FunctionKernel
from mxc.compiler.kernel.routines.rule import RoutineNode

if TYPE_CHECKING:
    from mxc.compiler.functions.arrays import ArrayFunction


def function_kernel(c: RoutineNode, name: str, function: ArrayFunction, arrays: Sequence[str],
                    numbers: Sequence[bool | int | float], usual: Sequence[bool | int | float]) -> FunctionKernel:
    """The kernel of a node. name: of the operator. arrays: names of its inputs, then of its outputs. numbers, usual:
    values of the function's keyword-only parameters, and their defaults."""
    count = len(arrays) - len(c.out_shapes)
    shapes = [*(c.shape(k) for k in range(count)), *c.out_shapes]
    dtypes = [*(c.dtype(k) for k in range(count)), *c.out_dtypes, "int64"]
    return FunctionKernel(name, function, tuple(dtypes), tuple(arrays), tuple(map(tuple, shapes)), count,
                          tuple(numbers), tuple(usual))
