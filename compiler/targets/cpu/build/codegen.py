"""Which generator makes code of typed source: the translator of our own (translate.py), or Numba (targets/numba/)."""
from __future__ import annotations

import importlib
import textwrap
from importlib import metadata
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import SettingError, TargetError, nearest
from mxc.compiler.system import env

if TYPE_CHECKING:
    from mxc.compiler.ops.functions import ScalarFunction

VARIABLE = "MXC_CODEGEN"
LLVM, NUMBA = "llvm", "numba"
GENERATORS = {LLVM: "mxc's own translator", NUMBA: "Numba"}
ADVICE = "`python -c 'import numba'` tells all, `pip install --force-reinstall numba` mends an installation"
LONGEST = 300  # at most so many characters of an error of Numba's import are quoted: some explain for pages


def numba_part(name: str, operator: str = "") -> Any:
    """A module of targets/numba/. It is imported by its name and late, because it imports this package, and Numba.

    operator: the operator of the running program that Numba is to compile; "" where MXC_CODEGEN asks for Numba. Raises
    TargetError that says what needs Numba, and why it is not there, when it cannot be imported.
    """
    fault = numba_fault()
    if fault:
        raise _lacking(fault, ADVICE, operator)
    return importlib.import_module(f"mxc.compiler.targets.numba.{name}")


def numba_fault() -> str:
    """Why Numba cannot be imported, which is tried; "" where it can."""
    try:
        importlib.import_module("numba")  # first of all: after an import that failed, parts may be there
        importlib.import_module("mxc.compiler.targets.numba.lowering")
    except Exception as error:  # whatever a broken package raises
        reason = textwrap.shorten(str(error), LONGEST, placeholder="...") or type(error).__name__
        return f"Numba cannot be imported ({reason})"
    return ""


def numba_version(operator: str = "") -> str:
    """Numba's version, without importing it; operator: see `numba_part`. Raises TargetError if it is not installed."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        raise _lacking("Numba is not installed", "pip install numba", operator) from None


def native_text(function: ScalarFunction, dtype: str) -> str:
    """LLVM IR of a native function of the running program, from targets/numba/functions.py, whose errors it raises.
    Raises TargetError when Numba is not there."""
    assert function.source is not None
    return str(numba_part("functions", function.source.operator).native_text(function, dtype))


def _lacking(fault: str, advice: str, operator: str) -> TargetError:
    if operator:
        return TargetError(f"{fault}, and operator {operator} is compiled by it: {advice}")
    return TargetError(f"{fault}, and {VARIABLE}={NUMBA} has it make the code of kernels: {advice}; without {VARIABLE} "
                       "mxc's own translator does")


def chosen() -> str:
    """The generator that MXC_CODEGEN asks for. Raises SettingError when it names none."""
    name = env.text(VARIABLE, LLVM) or LLVM
    if name not in GENERATORS:
        raise SettingError(f"{VARIABLE}: there is no code generator {name!r}; expected "
                           f"{' or '.join(GENERATORS)}, or nothing for {LLVM}{nearest(name, GENERATORS)}")
    return name


def parts(generator: str) -> dict[str, str]:
    """What the code of kernels depends on because of the generator, labelled. Imports no Numba. Raises TargetError
    when it is not installed."""
    if generator == LLVM:
        return {}
    return {"codegen": generator, "numba": numba_version()}
