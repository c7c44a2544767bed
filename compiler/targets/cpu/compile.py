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

from mxc.compiler.kernel.ir import CallKernel, Kernel, LoopKernel
from mxc.compiler.targets.cpu import vocabulary
from mxc.compiler.targets.cpu.loops import index_dtype, loop_source, scratch_layout

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


def translated(kernel: LoopKernel, symbol: str) -> str:
    """LLVM IR of a canonical loop kernel, not optimised, defining `symbol` with the C ABI."""
    space: dict[str, Any] = dict(vocabulary.names())
    scratch = scratch_layout(kernel)[0]
    count = len(kernel.buffers) + len(scratch)
    for i, dtype in enumerate(kernel.buffers):
        space[f"buffer{i}"] = vocabulary.buffer_at(index_dtype(dtype), i, count)
    for i, (dtype, _) in enumerate(scratch):
        space[f"scratch{i}"] = vocabulary.buffer_at(index_dtype(dtype), len(kernel.buffers) + i, count, scratch=True)
    exec(compile(loop_source(kernel), f"<{kernel.name}>", "exec"), space)
    target = registry.cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()
    result = compiler.compile_extra(target.typing_context, target.target_context, space["kernel"],
                                    (types.int64,) * 4, types.void, flags(), {})
    text = str(result.library._final_module)
    function = result.fndesc.mangled_name
    text = re.sub(rf"^define .*?(i32 @{re.escape(function)}\()", r"define internal \1", text, flags=re.M)
    return text.replace("common global ptr null", "internal global ptr null") + THUNK.format(
        symbol=symbol, function=function)


def optimised(text: str, machine: llvm.TargetMachine, speed: int = 3) -> llvm.ModuleRef:
    """The module of LLVM IR text after LLVM's passes for `machine`."""
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=speed)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = speed > 2
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module


def compile_kernel(kernel: Kernel, symbol: str, machine: llvm.TargetMachine) -> bytes:
    """Object code of one canonical kernel, defining `symbol`."""
    if isinstance(kernel, CallKernel):
        from mxc.compiler.targets.cpu import library

        return machine.emit_object(optimised(library.source(kernel, symbol), machine, 1))
    return machine.emit_object(optimised(translated(kernel, symbol), machine))
