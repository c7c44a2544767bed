"""Native functions of the running program as LLVM IR that kernels call: optimised for any CPU, without vectors."""
from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.ops.functions import ScalarFunction

_CALLED = re.compile(r"^declare .*?@\"?([\w.$]+)\"?\(", re.MULTILINE)
# A function must not refer to functions whose names begin so: what it means if it does, and which parts of its text may
# be the reason, likely ones first.
_LISTS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr, ast.Call)
_WHY: dict[str, tuple[str, tuple[type[ast.AST], ...]]] = {
    "NRT_": ("it allocates memory (for a list, an array or a text)", _LISTS),
    "Py": ("it needs Python as it runs", (ast.Call,)), "numba_gil": ("it needs Python as it runs", (ast.Call,)),
    "numba_unpickle": ("it may raise an error", (ast.Subscript, ast.Call)),
    "mxc_raises": ("it may raise an error", (ast.Subscript, ast.Call))}


def native_text(function: ScalarFunction, dtype: str) -> str:
    """A module that defines the function for numbers of float32 or float64 as `mxc_function_NAME_DTYPE`, which refers
    to the C library's functions alone.

    Raises MXNetError that quotes the user's line where Numba cannot compile it, or it does more than to compute.
    """
    from mxc.compiler.system import interrupts
    from mxc.compiler.targets.cpu.build.image import LinkError, c_function
    from mxc.compiler.targets.cpu.build.load import machine, optimised
    from mxc.compiler.targets.numba.scalar import scalar_text

    assert function.source is not None
    with interrupts.held():
        text = str(optimised(scalar_text(function, dtype), machine(), 1))
    for name in _CALLED.findall(text):
        why, kinds = next((why for start, why in _WHY.items() if name.startswith(start)), ("", ()))
        try:
            if not why and not name.startswith("llvm."):
                c_function(name)
        except LinkError:
            why = f"it calls {name}, which kernels have not"
        if why:
            nodes = [n for s in function.source.statements for n in ast.walk(s)]
            raise function.source.error(f"{why}; expected a function that only computes, and always gives a number",
                                        next((n for kind in kinds for n in nodes if isinstance(n, kind)), None))
    return text
