"""A program's own functions over whole arrays as numba.cuda source: one thread runs the function.

Numba checks no indices on a GPU, and its kernels cannot raise: the status stays 0, so such code is for functions whose
kernels have run on the CPU.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from mxc.compiler.functions.reference import without_errors
from mxc.compiler.kernel.ir import FunctionKernel


def function_source(kernel: FunctionKernel) -> str:
    """`def kernel(b0, b1, ..., values)`, which makes the outputs zeros and calls `function` on `array(buffer, shape)`.
    Numbers are names number0, number1, ... of its module."""
    count = len(kernel.buffers)
    lines = [f"def kernel({', '.join(f'b{i}' for i in range(count))}, values):", "    if cuda.grid(1) == 0:"]
    lines += [f"        e{i} = values[{i}]" for i in range(len(kernel.extents()))]
    for i, places in enumerate(kernel.pattern()):
        lines.append(f"        a{i} = array(b{i}, ({''.join(f'e{p}, ' for p in places)}))")
        if i >= kernel.inputs:
            axes = ", ".join(f"i{k}" for k in range(len(places)))
            lines += [f"{' ' * (8 + 4 * k)}for i{k} in range(e{p}):" for k, p in enumerate(places)]
            lines.append(f"{' ' * (8 + 4 * len(places))}a{i}[{axes or '()'}] = 0")
    passed = [f"a{kernel.arrays.index(name)}" for name in kernel.function.arrays]
    passed += [f"number{i}" for i in range(len(kernel.numbers))]
    lines += [f"        b{count - 1}[0] = 0", f"        function({', '.join(passed)})"]
    return "\n".join([*lines, ""])


def entry(kernel: FunctionKernel, cuda: Any, array: Callable[..., Any] | None) -> Any:
    """The function that the source defines. cuda: Numba's module. array: makes an array of a buffer and a shape; None:
    as the simulator does, which runs the function as Python."""
    device = cuda.jit(device=True, inline="always")
    function = kernel.function.made(device) if array is not None else kernel.function.made(device, without_errors)
    space: dict[str, Any] = {f"number{i}": number for i, number in enumerate(kernel.numbers)}
    space |= {"cuda": cuda, "array": array or _shaped, "function": device(function)}
    exec(compile(function_source(kernel), f"<{kernel.name}>", "exec"), space)
    return space["kernel"]


def _shaped(buffer: Any, shape: tuple[int, ...]) -> Any:
    return buffer[:prod(shape)].reshape(shape)
