"""Routines (operators/*/kernel.py) as typed source (see translate.py): arguments, then the function's lines."""
from __future__ import annotations

import numpy as np

from mxc.compiler.kernel.ir import RoutineKernel, computing_dtype
from mxc.compiler.kernel.routines import spec
from mxc.compiler.targets.routine_body import body

ALIGNMENT = 64  # elements: the size of each scratch array is rounded up to a multiple of so many


def routine_source(kernel: RoutineKernel) -> str:
    """Typed source: constants, then `def kernel(args, first, last, scratch)`."""
    declared = spec.find(kernel.routine)
    lines = [f"{name} = {computing_dtype(str(value)) if value in spec.DTYPES else repr(value)}"
             for name, value in kernel.constants]
    lines += ["", "def kernel(args, first, last, scratch):"]
    arrays = (*declared.inputs, *declared.outputs)
    lines += [f"    {name} = buffer{i}(args, {i})" for i, name in enumerate(arrays)]
    lines += [f"    {name} = integer(args, {len(arrays) + i})" for i, name in enumerate(declared.integers)]
    for i, ((name, _, _), offset) in enumerate(zip(declared.scratch, _offsets(kernel), strict=False)):
        lines.append(f"    {name} = scratch{i}(scratch, {offset})")
    return "\n".join([*lines, body(declared.function, dict(kernel.constants)), ""])


def _offsets(kernel: RoutineKernel) -> list[str]:
    """Expressions of the byte offset of each scratch array, and of where they end."""
    found, counts = ["0"], [count for _, _, count in spec.find(kernel.routine).scratch]
    for (_, dtype, _), count in zip(spec.scratch(kernel), counts, strict=True):
        size = ALIGNMENT * np.dtype(dtype).itemsize
        found.append(f"{found[-1]} + ({count} + {ALIGNMENT - 1}) // {ALIGNMENT} * {size}")
    return found


def scratch_bytes(kernel: RoutineKernel) -> int:
    """Private memory of a thread, by the expressions that the source has."""
    return spec.evaluate(_offsets(kernel)[-1], spec.numbers(kernel))
