"""From kernels to object code. Imports Numba: only the compiling process does so.

Numba translates the printed source to LLVM IR; a few lines of IR give it the plain C ABI of kernel/ir.py; LLVM's -O3
passes and code generation run here, once, so that the object defines one symbol and needs none but the C library's.
"""
from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
from numba.core import compiler, registry, types
from numba.core.compiler import Flags
from numba.core.errors import NumbaError

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.ir import FLOATS
from mxc.compiler.targets.cpu import vocabulary
from mxc.compiler.targets.cpu.half_ir import conversions_for
from mxc.compiler.targets.cpu.interleave import interleaved
from mxc.compiler.targets.cpu.isa import fitting
from mxc.compiler.targets.cpu.jobs import Job
from mxc.compiler.targets.cpu.library.product import product_functions, product_symbol
from mxc.compiler.targets.cpu.load import optimised

THUNK = """
define void @{symbol}(ptr noundef %args, i64 noundef %first, i64 noundef %last, ptr noundef %scratch) {{
  %result = alloca ptr
  %exception = alloca ptr
  %a = ptrtoint ptr %args to i64
  %s = ptrtoint ptr %scratch to i64
  %code = call i32 @{function}(ptr %result, ptr %exception, i64 %a, i64 %first, i64 %last, i64 %s)
  ret void
}}
"""


def flags() -> Flags:
    """Numba's flags: no runtime, no wrappers, no compilation; products and sums may be contracted, nothing else."""
    chosen: Any = Flags()
    chosen.nrt = False
    chosen.no_cpython_wrapper = True
    chosen.no_cfunc_wrapper = True
    chosen.no_compile = True
    chosen.error_model = "numpy"
    chosen.fastmath = {"contract"}
    return chosen


def translated(job: Job) -> str:
    """LLVM IR of a job in Numba source, not optimised, defining its symbol with the C ABI."""
    space: dict[str, Any] = dict(vocabulary.names())
    count = len(job.buffers) + len(job.scratch)
    for i, dtype in enumerate(job.buffers):
        space[f"buffer{i}"] = vocabulary.buffer_at(dtype, i, count)
    for i, (dtype, _) in enumerate(job.scratch):
        space[f"scratch{i}"] = vocabulary.buffer_at(dtype, len(job.buffers) + i, count, scratch=True)
    exec(compile(job.text, f"<{job.name}>", "exec"), space)
    target = registry.cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()
    result = compiler.compile_extra(target.typing_context, target.target_context, space["kernel"],
                                    (types.int64,) * 4, types.void, flags(), {})
    text = str(result.library._final_module)
    function = result.fndesc.mangled_name
    foreign = re.findall(r"^declare [^@]*@(_ZN\S+?)\(", text, flags=re.M)
    if foreign:  # such a function is not in the object: the call would go to address 0
        raise MXNetError(f"kernel {job.name} calls {', '.join(foreign)}, which is no primitive of the target")
    text = re.sub(rf"^define .*?(i32 @{re.escape(function)}\()", r"define internal \1", text, flags=re.M)
    return text.replace("common global ptr null", "internal global ptr null") + THUNK.format(
        symbol=job.symbol, function=function)


def _with_product(text: str, dtype: str, features: str) -> str:
    """The module with the function behind the word `product_`, which it declares."""
    kept = [line for line in text.splitlines() if not (line.startswith("declare") and product_symbol(dtype) in line)]
    functions = product_functions(fitting(features), dtype)
    return "\n".join([*kept, functions.replace("#0", "#7000")])


def module_of(job: Job, machine: llvm.TargetMachine, features: str) -> llvm.ModuleRef:
    """A job in Numba source as LLVM IR that is ready for code generation."""
    text = translated(job)
    for dtype in FLOATS:
        if product_symbol(dtype) in text:
            text = _with_product(text, dtype, features)
    if " half" in text:
        text += conversions_for(machine.triple, features)
    return optimised(text if job.short else interleaved(text), machine, short=job.short)


def compile_source(job: Job, machine: llvm.TargetMachine, features: str) -> bytes:
    """Object code that defines the symbol of a job in Numba source. Raises MXNetError naming the kernel on failure."""
    try:
        return machine.emit_object(module_of(job, machine, features))
    except (NumbaError, RuntimeError) as error:
        raise MXNetError(f"kernel {job.name} does not compile: {error}\n{job.text}") from error
