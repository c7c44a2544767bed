"""Routines (kernel/routines/) as Numba source: the function's own lines between a head that names its arguments."""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable

import numpy as np

from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.kernel.routines import spec

ALIGNMENT = 64  # bytes, of each scratch array


@functools.cache
def body(function: Callable[..., None]) -> str:
    """The lines of a routine's function behind its docstring."""
    text = inspect.getsource(function)
    definition = ast.parse(text).body[0]
    assert isinstance(definition, ast.FunctionDef)
    statements = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
    lines = text.splitlines()
    before = definition.body[0].end_lineno if statements is not definition.body else statements[0].lineno - 1
    return "\n".join(lines[before:definition.end_lineno])


def routine_source(kernel: RoutineKernel) -> str:
    """Numba source: constants, then `def kernel(args, first, last, scratch)`."""
    declared = spec.find(kernel.routine)
    lines = [f"{name} = {spec.converted(value) if value in spec.DTYPES else repr(value)}"
             for name, value in kernel.constants]
    lines += ["", "def kernel(args, first, last, scratch):"]
    arrays = (*declared.inputs, *declared.outputs)
    lines += [f"    {name} = buffer{i}(args, {i})" for i, name in enumerate(arrays)]
    lines += [f"    {name} = integer(args, {len(arrays) + i})" for i, name in enumerate(declared.integers)]
    offset = "0"
    counts = [count for _, _, count in declared.scratch]
    for i, (name, dtype, _) in enumerate(spec.scratch(kernel)):
        lines.append(f"    {name} = scratch{i}(scratch, {offset})")
        offset = f"{offset} + ({counts[i]} + {ALIGNMENT - 1}) // {ALIGNMENT} * {ALIGNMENT * np.dtype(dtype).itemsize}"
    return "\n".join([*lines, body(declared.function), ""])


def scratch_bytes(kernel: RoutineKernel) -> int:
    """Private memory of a thread: each array's count rounded up as the printed offsets are."""
    arrays = spec.scratch(kernel)
    return sum(-(-count // ALIGNMENT) * ALIGNMENT * np.dtype(dtype).itemsize for _, dtype, count in arrays)
