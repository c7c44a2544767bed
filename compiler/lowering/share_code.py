"""Numbers of formulas as arguments, where kernels of one plan differ in nothing else: they then share one code.

A loop that scales an array by 0, 1, 2, ... makes a kernel for each number, and a kernel takes tens of milliseconds to
compile. Where only few kernels are alike, numbers stay part of the code, which is shorter that way.
"""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import INDEX, Accumulator, LoopKernel, Store, Value
from mxc.compiler.lowering.launches import Launch
from mxc.compiler.lowering.stage import lowering_stage

ALIKE = 8  # kernels: so many that differ in numbers alone, or more, share one code
BITS = {"float32": "int32", "float64": "int64", "int32": "", "int64": ""}  # dtype -> the integer that holds its bits


@lowering_stage(needs=("launches",))
def share_code(launches: Sequence[Launch]) -> list[Launch]:
    """Makes numbers of formulas arguments where many kernels differ in nothing else: these share their code."""
    patterns: dict[Hashable, dict[tuple, LoopKernel]] = {}
    for kernel in dict.fromkeys(launch.kernel for launch in launches):
        if isinstance(kernel, LoopKernel):
            pattern, numbers = _pattern(kernel)
            patterns.setdefault(pattern, {}).setdefault(numbers, kernel)
    alike = {pattern for pattern, found in patterns.items() if len(found) >= ALIKE}
    if not alike:
        return list(launches)
    made = {}
    for kernel in dict.fromkeys(launch.kernel for launch in launches):
        if isinstance(kernel, LoopKernel) and _pattern(kernel)[0] in alike:
            made[kernel] = _with_arguments(kernel)
    return [replace(launch, kernel=made[launch.kernel]) if launch.kernel in made else launch for launch in launches]


def _is_number(v: Value) -> bool:
    return v.op == "const" and v.dtype in BITS


def _pattern(kernel: LoopKernel) -> tuple[Hashable, tuple]:
    """(pattern, numbers) of a kernel: kernels with equal patterns differ in their numbers alone."""
    places: dict[int, int] = {}
    steps: list[Hashable] = []
    numbers = []
    for v in ir.walk(kernel.roots()):
        places[id(v)] = len(places)
        data = v.data
        if v.op == "const":
            data = None if v.dtype in BITS or (v.dtype == INDEX and data not in (0, 1)) else repr(data)
            if v.dtype in BITS:
                numbers.append(repr(v.data))
        steps.append((v.op, v.dtype, data, *[places[id(a)] for a in v.args]))
    accumulators = tuple((a.combine, places[id(a.body)]) for a in kernel.accumulators)
    stores = tuple((s.buffer, s.mode, places[id(s.index)], places[id(s.value)]) for s in kernel.stores)
    pattern = kernel.buffers, len(kernel.domain), len(kernel.reduce), accumulators, stores, tuple(steps)
    return pattern, tuple(numbers)


def _argument(v: Value) -> Value:
    """The number `v` as a value that is made of a constant index, which the code gets as a run-time integer."""
    if not BITS[v.dtype]:
        return ir.cast(ir.const(int(v.data), INDEX), v.dtype)
    bits = np.asarray(v.data, v.dtype).view(BITS[v.dtype]).item()
    return ir.make("bitcast", (ir.cast(ir.const(bits, INDEX), BITS[v.dtype]),), v.dtype)


def _with_arguments(kernel: LoopKernel) -> LoopKernel:
    done: dict[int, Value] = {}
    for v in ir.walk(kernel.roots()):
        args = tuple(done[id(a)] for a in v.args)
        done[id(v)] = _argument(v) if _is_number(v) else v if args == v.args else ir.make(v.op, args, v.dtype, v.data)
    return replace(
        kernel, accumulators=tuple(Accumulator(a.combine, done[id(a.body)]) for a in kernel.accumulators),
        stores=tuple(Store(s.buffer, done[id(s.index)], done[id(s.value)], s.mode) for s in kernel.stores))
