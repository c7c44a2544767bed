"""Kernels' typed source (targets/cpu/emit/loops.py, routines.py) to LLVM IR by Numba."""
from __future__ import annotations

import llvmlite.binding as llvm
from numba.core import types
from numba.core.errors import NumbaError

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cpu.build.codegen import LLVM, VARIABLE
from mxc.compiler.targets.cpu.build.jobs import Job
from mxc.compiler.targets.cpu.build.load import initialise, optimised
from mxc.compiler.targets.cpu.emit.interleave import hinted
from mxc.compiler.targets.cpu.machine.isa import fitting
from mxc.compiler.targets.numba.lowering import RAISES, kernel_wrapper, lowered
from mxc.compiler.targets.numba.words import PREFIX, definitions, function_of

ARGUMENTS = (types.voidptr, types.int64, types.int64, types.voidptr)  # args, first, last, scratch


SIMPLE = 1  # the level of LLVM's optimisation that makes loops as short as they can be, and none of them vectors


def generated(job: Job, features: str) -> str:
    """LLVM IR of a job in typed source, not optimised, that defines its symbol for CPUs with `features` (LLVM's names).
    Raises MXNetError naming the kernel for what Numba does not compile."""
    try:
        kernel = function_of(job.text, "kernel", job.buffers, [dtype for dtype, _ in job.scratch])
        found = lowered(kernel, ARGUMENTS, types.none)
    except (NumbaError, MXNetError, SyntaxError, NameError, TypeError, ValueError, KeyError) as error:
        raise _refusal(job, str(error)) from error
    initialise()
    module = llvm.parse_assembly(found.text + kernel_wrapper(found, job.symbol))
    called = [f.name for f in module.functions if f.is_declaration and f.name.startswith(f"{PREFIX}.")]
    more = definitions(called, fitting(features), len(job.buffers) + len(job.scratch))
    for text in (more, *job.functions):
        module.link_in(llvm.parse_assembly(text))
    for function in module.functions:
        if not function.is_declaration and function.name != job.symbol:
            function.linkage = "internal"
    return str(module)


def module_of(job: Job, target: llvm.TargetMachine, features: str) -> llvm.ModuleRef:
    """The LLVM module of a job, ready for code generation by the `target` machine. Raises MXNetError naming the kernel
    for what does not compile, and for code that may raise an exception: kernels have nobody to tell."""
    text = generated(job, features)
    if not job.short:
        text = hinted(str(optimised(text, target, SIMPLE)))
    module = optimised(text, target, short=job.short)
    if any(function.name == RAISES for function in module.functions):
        raise _refusal(job, "its code may raise an exception, which a kernel cannot")
    return module


def _refusal(job: Job, reason: str) -> MXNetError:
    return MXNetError(f"kernel {job.name}: Numba makes no code of it ({VARIABLE}={LLVM}, or none, has mxc's own "
                      f"translator do that): {reason}\n{job.text}")
