"""Readable text of kernel values and kernels, for people, golden tests and cache keys.

    kernel scale_add(float32, float32, float32) domain [a0:6] reduce []
      b2[a0] = add(mul(b0[a0], 2.0f4), b1[a0])

Every value that is used more than once gets a line and a name of its own, so the text is as long as the kernel. Two
kernels with the same text (extents and run-time integers shown as `#`, see `form_text`) have the same code.
"""
from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable

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

SHORT = {"float16": "f2", "float32": "f4", "float64": "f8", "uint8": "u1", "int8": "i1", "int32": "i4", "int64": "i8",
         "uint32": "u4", "uint64": "u8", "int16": "i2", "uint16": "u2", "bool": "b", "index": ""}
SHARED = frozenset(["const", "axis", "acc"])  # too short for a name


class _Printer:
    def __init__(self, roots: Iterable[Value], number: Callable[[Value], str]):
        self.number = number
        roots = list(roots)
        uses = Counter(id(a) for v in ir.walk(roots) for a in v.args)
        uses.update(id(r) for r in roots)
        self.shared = {i for i, n in uses.items() if n > 1}
        self.names: dict[int, str] = {}
        self.texts: dict[int, str] = {}

    def lines(self, roots: Iterable[Value]) -> list[str]:
        """Lines naming the shared values under `roots` that have no name yet."""
        result = []
        for v in ir.walk(roots):
            if id(v) in self.texts:
                continue
            text = self.step(v)
            if id(v) in self.shared and v.op not in SHARED:
                self.names[id(v)] = f"t{len(self.names)}"
                result.append(f"{self.names[id(v)]} = {text}")
                text = self.names[id(v)]
            self.texts[id(v)] = text
        return result

    def step(self, v: Value) -> str:
        args = [self.texts[id(a)] for a in v.args]
        if v.op == "const":
            return self.number(v)
        if v.op == "axis":
            return f"a{v.data}"
        if v.op == "acc":
            return f"acc{v.data}"
        if v.op == "load":
            text = f"b{v.data}[{args[0]}]:{SHORT[v.dtype]}"
            return text if len(args) == 1 else f"({text} if {args[1]} else {args[2]})"
        if v.op in ("cast", "bitcast"):
            return f"{v.op}({args[0]}, {v.dtype})"
        return f"{v.op}({', '.join(args)})"


def _exact(v: Value) -> str:
    return f"{v.data!r}{SHORT[v.dtype]}"


def value_text(value: Value) -> str:
    """One value: lines for its shared parts, then itself."""
    printer = _Printer([value], _exact)
    lines = printer.lines([value])
    return "; ".join([*lines, printer.texts[id(value)]]) if printer.texts[id(value)] not in printer.names.values() \
        else "; ".join(lines)


def _routine(kernel: RoutineKernel, extent: Callable[[int], str]) -> str:
    constants = ", ".join(f"{k}={v!r}" for k, v in kernel.constants)
    return (f"routine {kernel.routine}({', '.join(kernel.buffers)}) {{{constants}}} inputs {kernel.inputs} "
            f"extents [{', '.join(map(extent, kernel.extents))}]\n")


def _function(kernel: FunctionKernel, extent: Callable[[int], str]) -> str:
    """Equal extents have one name: the code knows which are equal."""
    arrays = [f"{name}:{dtype}[{', '.join(f'n{p}:{extent(n)}' for p, n in zip(places, shape, strict=True))}]"
              for name, dtype, places, shape in zip(kernel.arrays, kernel.buffers, kernel.pattern(), kernel.shapes,
                                                    strict=False)]
    numbers = ", ".join(type(number).__name__ for number in kernel.numbers)
    return (f"function {kernel.function.digest}({', '.join(arrays)}) inputs {kernel.inputs} numbers [{numbers}] usual "
            f"{list(kernel.usual)}\n")


def _text(kernel: LoopKernel | CallKernel, number: Callable[[Value], str], extent: Callable[[int], str]) -> str:
    printer = _Printer(kernel.roots(), number)
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
    """The head, and the calls of each segment: template, extents, and buffer[offset + step * image] for each place."""
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
    text = _routine(kernel, str) if isinstance(kernel, RoutineKernel) else _text(kernel, _exact, str)
    return f"# {kernel.name}\n{text}"


def form_text(kernel: Kernel) -> str:
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
        return f"#{places[id(v)]}" if id(v) in places else _exact(v)

    return _text(kernel, number, lambda n: "#")
