"""Native functions of the running program (ops/functions.py) as LLVM IR, typed and lowered by Numba."""
from __future__ import annotations

import ast
import re
from typing import Any

import numba
from numba.core import types

from mxc.compiler.error import MXNetError
from mxc.compiler.functions import typed
from mxc.compiler.functions.formula import wrong_count
from mxc.compiler.ops.functions import ScalarFunction
from mxc.compiler.targets.numba.lowering import RAISES, lowered

KINDS = {"float32": "float", "float64": "double"}
_LINE = re.compile(r'File "[^"\n]*", line (\d+)')
_INTERNAL = re.compile(r" (?:for|of variable) '\$[^']*'.*|: %\".*|\. Raised from .*")  # names that no user has written
_NOISE = re.compile(r"^(Failed in |During: |- Resolution|There are \d|\s*$|File |\s*def |<source|\^|This error)")


def scalar_text(function: ScalarFunction, dtype: str) -> str:
    """LLVM IR, not optimised, that defines `mxc_function_NAME_DTYPE` of as many numbers of the dtype as the function
    has arguments. Where it would raise an error it calls RAISES.

    Raises MXNetError that quotes the user's line where Numba cannot type or lower the function.
    """
    source = function.source
    assert source is not None
    text = typed.rewritten(source, function.kinds, function.part, "mxc_scalar")
    kind = getattr(types, dtype)
    inlined = numba.njit(inline="always", error_model="numpy")
    main = text.main
    try:
        built = typed.build(text, {typed.TYPE: kind, typed.INTEGER: types.int64, **typed.ROUNDERS},
                            lambda f: f if f.__name__ == main else inlined(f))
        found = lowered(built, [kind] * function.count)
    except (MXNetError, RecursionError, MemoryError):
        raise
    except Exception as error:  # Numba has errors of many kinds for what it does not know
        raise _readable(function, error) from None
    if found.returns != kind:
        raise source.error(f"it returns {found.returns}; expected a number")
    word = KINDS[dtype]
    names = [f"{word} %a{i}" for i in range(function.count)]
    return found.text + f"""
define {word} @mxc_function_{function.name}_{dtype}({', '.join(names)}) {{
  %result = alloca {word}
  %exception = alloca ptr
  store {word} 0.0, ptr %result
  %status = call i32 @{found.name}({', '.join(['ptr %result', 'ptr %exception', *names])})
  %raised = icmp ne i32 %status, 0
  br i1 %raised, label %bad, label %good
bad:
  call void @{RAISES}()
  br label %good
good:
  %number = load {word}, ptr %result
  ret {word} %number
}}
declare void @{RAISES}()
"""


def _readable(function: ScalarFunction, error: Any) -> MXNetError:
    """An error of Numba in one sentence, with the user's line."""
    source = function.source
    assert source is not None
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    returned = next((n for s in source.statements for n in ast.walk(s) if isinstance(n, ast.Return)), None)
    count = re.search(r"wrong tuple length.*got (\d+)", text) or re.search(r"failed to unpack", text)
    if count is not None and function.part is not None:
        return source.error(wrong_count(int(count[1]) if count.groups() else 0, function.part[1]), returned)
    if re.search(r"Function\((float32|float64)\)", text):  # the conversion of what it returns
        return source.error("it computes what is no number; expected a function that always gives a number", returned)
    numbers = [int(n) for n in _LINE.findall(text)]
    where = next((n for n in reversed(numbers) if source.tree.lineno <= n <= (source.tree.end_lineno or n)), None)
    return source.error(f"Numba cannot compile it: {_reason(text)}", where)


def _reason(text: str) -> str:
    """The sentence of Numba's message that says most."""
    missing = re.search(r"Unknown attribute '(\w+)' of type (?:Module\(<module '(\w+)'|(\w+))", text)
    if missing is not None:
        return f"it knows no {missing[1]} of {missing[2] or missing[3]}"
    call = re.search(r"No implementation of function.*?>>> ([^\n]+)", text, re.DOTALL)
    if call is not None:
        return f"it has no {call[1].strip()}"
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if not _NOISE.match(line)]
    return _INTERNAL.sub("", told[0] if told else lines[0]).rstrip(":.")
