"""Python functions to LLVM IR by Numba: typed and lowered as Numba does it, not optimised, and not loaded.

What is left to do, LLVM's passes and code generation, is the CPU target's (targets/cpu/build/load.py), so both ways of
making kernels end in the same object code. The compilation uses Numba's own typing and lowering of the CPU, with a code
library whose passes are left out: `numba.core.codegen` says what they would do.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numba.core import codegen, compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from mxc.compiler.system import forks

forks.take(global_compiler_lock, first=True)  # under which LLVM's is taken

RAISES = "mxc_raises"  # is called where a function would raise: if optimised code still calls it, that may happen

# Numba's own way to flags, a pass over its modules, is lost where NUMBA_DUMP_LLVM is set: they are printed before it.
_ARITHMETIC = re.compile(r"= f(?:add|sub|mul|div)\b")
_WRAPPING = re.compile(r"(= (?:add|sub|mul|shl))(?: nuw| nsw)+\b")  # Numba promises that integers do not overflow


class Lowered(NamedTuple):
    """LLVM IR in which all is internal. name: the function's. returns: the Numba type of its result. The function has
    Numba's calling convention: `i32 name(ptr result, ptr exception, arguments...)`, which gives 0 for success."""

    text: str
    name: str
    returns: Any


class _Library(codegen.AOTCodeLibrary):
    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(codegen.AOTCPUCodegen):
    _library_class = _Library


@functools.cache
def _context() -> Any:
    """Numba's context of the CPU, with code libraries that are left as they are."""
    return cpu_target.target_context.subtarget(_internal_codegen=_Codegen("mxc"))


def flags() -> Any:
    """Numba's flags, which say how functions are compiled."""
    found: Any = compiler.Flags()
    found.no_compile = found.no_cpython_wrapper = found.no_cfunc_wrapper = found.nrt = True
    found.error_model = "numpy"  # a division by 0 raises nothing; of integers it gives 0
    return found


def lowered(function: Callable[..., Any], arguments: Sequence[types.Type],
            returns: types.Type | None = None) -> Lowered:
    """`function` for arguments of these Numba types. Raises numba.core.errors.NumbaError where it has no types or
    cannot be lowered."""
    with global_compiler_lock:
        result = compiler.compile_extra(cpu_target.typing_context, _context(), function, tuple(arguments), returns,
                                        flags(), {})
        result.library.finalize()  # which links the functions that it calls
        text = result.library.get_llvm_str()
    text = re.sub(r"= common (dso_local |local_unnamed_addr )*global ", "= internal global ", text)
    text = re.sub(r"^define (linkonce_odr |dso_local |hidden )*", "define internal ", text, flags=re.MULTILINE)
    text = _WRAPPING.sub(r"\1", _ARITHMETIC.sub(r"\g<0> contract", text))
    return Lowered(text, result.fndesc.llvm_func_name, result.signature.return_type)


def kernel_wrapper(found: Lowered, symbol: str) -> str:
    """LLVM IR to append to `found.text`: the function `symbol` of the kernels' ABI, which calls a function of (args,
    first, last, scratch)."""
    parameters = "ptr noundef %args, i64 noundef %first, i64 noundef %last, ptr noundef %scratch"
    return f"""
define void @{symbol}({parameters}) {{
  %result = alloca ptr
  %exception = alloca ptr
  %status = call i32 @{found.name}(ptr %result, ptr %exception, ptr %args, i64 %first, i64 %last, ptr %scratch)
  %raised = icmp ne i32 %status, 0
  br i1 %raised, label %bad, label %good
bad:
  call void @{RAISES}()
  ret void
good:
  ret void
}}
declare void @{RAISES}()
"""
