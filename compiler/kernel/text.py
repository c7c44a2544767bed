"""Readable text of kernel values and kernels, for people, golden tests and cache keys.

    kernel scale_add(float32, float32, float32) domain [a0:6] reduce []
      b2[a0] = add(mul(b0[a0], 2.0f4), b1[a0])

Values are written as value_text.py says. Two kernels with the same text (extents and run-time integers shown as `#`,
see `code_text`) have the same code.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import REMEMBERED, fixed
from mxc.compiler.kernel.ir import (
    CallKernel,
    ChainKernel,
    FunctionKernel,
    Kernel,
    LoopKernel,
    RoutineKernel,
    Value,
)
from mxc.compiler.kernel.value_text import Printer, exact


def _routine(kernel: RoutineKernel, extent: Callable[[int], str]) -> str:
    constants = ", ".join(f"{k}={v!r}" for k, v in kernel.constants)
    return (f"routine {kernel.routine}({', '.join(kernel.buffers)}) {{{constants}}} inputs {kernel.inputs} "
            f"extents [{', '.join(map(extent, kernel.extents))}]\n")


def _function(kernel: FunctionKernel, extent: Callable[[int], str]) -> str:
    """The function's arrays. Equal extents have one name, because the code depends on which extents are equal."""
    arrays = [f"{name}:{dtype}[{', '.join(f'n{p}:{extent(n)}' for p, n in zip(places, shape, strict=True))}]"
              for name, dtype, places, shape in zip(kernel.arrays, kernel.buffers, kernel.pattern(), kernel.shapes,
                                                    strict=False)]
    numbers = ", ".join(type(number).__name__ for number in kernel.numbers)
    return (f"function {kernel.function.digest}({', '.join(arrays)}) inputs {kernel.inputs} numbers [{numbers}] usual "
            f"{list(kernel.usual)}\n")


def _text(kernel: LoopKernel | CallKernel, number: Callable[[Value], str], extent: Callable[[int], str]) -> str:
    printer = Printer(kernel.roots(), number)
    lines = []
    if isinstance(kernel, CallKernel):
        params = ", ".join(f"{k}={v!r}" for k, v in kernel.params)
        lines.append(f"call {kernel.template}({', '.join(kernel.buffers)}) {{{params}}} operands {kernel.operands} "
                     f"extents [{', '.join(extent(n) for n in kernel.extents)}]")
    else:
        first = len(kernel.domain)
        known = fixed(kernel)
        axes = [f"a{i}:{n if i in known else extent(n)}" for i, n in enumerate((*kernel.domain, *kernel.reduce))]
        domain, reduce = ", ".join(axes[:first]), ", ".join(axes[first:])
        lines.append(f"kernel ({', '.join(kernel.buffers)}) domain [{domain}] reduce [{reduce}]")
        for i, accumulator in enumerate(kernel.accumulators):
            lines += [f"  {line}" for line in printer.lines([accumulator.body])]
            lines.append(f"  acc{i} = {accumulator.combine} {printer.texts[id(accumulator.body)]}")
    for store in kernel.stores:
        lines += [f"  {line}" for line in printer.lines([store.index, store.value])]
        index, value = printer.texts[id(store.index)], printer.texts[id(store.value)]
        lines.append(f"  b{store.buffer}[{index}] {'+=' if store.mode == 'add' else '='} {value}")
    return "\n".join(lines) + "\n"


def _chain(kernel: ChainKernel) -> str:
    """The head, and a line for each call of each segment: template, extents, and buffer[offset + step * image] for each
    place."""
    lines = [f"chain({', '.join(kernel.buffers)}) images {kernel.images} private {list(kernel.private)}"]
    for i, segment in enumerate(kernel.segments):
        for call, places in segment:
            where = ", ".join(f"b{p.buffer}[{p.offset} + {p.step} i]" for p in places)
            lines.append(f"  segment {i}: {call.template} {list(call.extents)} on {where}")
    return "\n".join(lines) + "\n"


def kernel_text(kernel: Kernel) -> str:
    """The whole kernel with its extents and constants, its name first."""
    if isinstance(kernel, ChainKernel):
        return f"# {kernel.name}\n{_chain(kernel)}"
    if isinstance(kernel, FunctionKernel):
        return f"# {kernel.name}\n{_function(kernel, str)}"
    text = _routine(kernel, str) if isinstance(kernel, RoutineKernel) else _text(kernel, exact, str)
    return f"# {kernel.name}\n{text}"


def code_text(kernel: Kernel) -> str:
    """What the kernel's code depends on: names left out, extents as `#` (but for those that canonical.py has `fixed`),
    run-time integers numbered `#0`, `#1`, ..."""
    if isinstance(kernel, RoutineKernel):
        return _routine(kernel, lambda n: "#")
    if isinstance(kernel, FunctionKernel):
        return _function(kernel, lambda n: "#")
    if isinstance(kernel, ChainKernel):
        return f"chain({len(kernel.buffers)} buffers)\n"
    return _loop_form(kernel) if isinstance(kernel, LoopKernel) else _form(kernel)


@functools.lru_cache(REMEMBERED)  # layers repeat
def _loop_form(kernel: LoopKernel) -> str:
    return _form(kernel)


def _form(kernel: LoopKernel | CallKernel) -> str:
    places = {id(v): i for i, v in enumerate(ir.run_time_integers(kernel.roots()))}

    def number(v: Value) -> str:
        return f"#{places[id(v)]}" if id(v) in places else exact(v)

    return _text(kernel, number, lambda n: "#")
