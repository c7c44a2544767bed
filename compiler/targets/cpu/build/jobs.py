"""What the compiling process gets: kernels as source text, so that other processes can do it too."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, FunctionKernel, Kernel, LoopKernel, RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.ops.functions import ScalarFunction, find
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.build import codegen
from mxc.compiler.targets.cpu.build.codegen import LLVM
from mxc.compiler.targets.cpu.emit import chain
from mxc.compiler.targets.cpu.emit.loops import loop_source
from mxc.compiler.targets.cpu.emit.routines import routine_source
from mxc.compiler.targets.cpu.emit.skeletons import has_short_loops, scratch_layout
from mxc.compiler.targets.cpu.machine.isa import Isa


@dataclass(frozen=True)
class Job:
    """One kernel to compile into an object that defines `symbol`.

    language: "typed" (loops.py, routines.py; see translate.py) or "llvm" (IR text of the library). buffers: dtypes of a
    typed source's buffers. scratch: dtype and byte offset of its scratch buffers. short: whether its innermost loops
    have few, constant steps. generator: what makes code of typed source (codegen.py). functions: LLVM IR text of the
    functions of the running program that it calls.
    """

    symbol: str
    name: str
    language: str
    text: str
    buffers: tuple[str, ...] = ()
    scratch: tuple[tuple[str, int], ...] = ()
    short: bool = False
    generator: str = LLVM
    functions: tuple[str, ...] = ()


def job_of(kernel: Kernel, symbol: str, isa: Isa | None = None, generator: str = LLVM,
           function_text: Callable[[ScalarFunction, str], str] | None = None, cpu: tuple[str, str] = ("", "")) -> Job:
    """The job that compiles `kernel` (a loop kernel: in canonical form) for CPUs that run `isa` (None: this one).
    function_text: gives the LLVM IR of a function of the running program for a dtype (None: Numba does). cpu: LLVM's
    names of the CPU and its features ("": this one)."""
    functions: tuple[str, ...] = ()
    if isinstance(kernel, (CallKernel, LoopKernel)):
        called = {(v.op, v.dtype): added for v in ir.walk(kernel.roots()) if (added := find(v.op)) is not None}
        text_of = function_text or codegen.native_text
        functions = tuple(text_of(function, dtype) for (_, dtype), function in called.items())
    if isinstance(kernel, CallKernel):
        return Job(symbol, kernel.name, "llvm", library.source(kernel, symbol, isa), functions=functions)
    if isinstance(kernel, ChainKernel):
        return Job(symbol, kernel.name, "llvm", chain.source(kernel, symbol))
    if isinstance(kernel, FunctionKernel):
        part = codegen.numba_part("array_functions", kernel.function.source.operator)
        return Job(symbol, kernel.name, "llvm", part.source(kernel, symbol, *cpu))
    if isinstance(kernel, RoutineKernel):
        scratch = tuple((dtype, 0) for _, dtype, _ in spec.scratch(kernel))  # the source has the offsets
        return Job(symbol, kernel.name, "typed", routine_source(kernel), kernel.buffers, scratch,
                   generator=generator)
    scratch = tuple(scratch_layout(kernel)[0])
    return Job(symbol, kernel.name, "typed", loop_source(kernel), kernel.buffers, scratch, has_short_loops(kernel),
               generator, functions)
