"""Which generator makes code of typed source: the translator of our own (translate.py), or Numba (targets/numba/)."""
from __future__ import annotations

import importlib
from importlib import metadata
from typing import Any

from mxc.compiler import env
from mxc.compiler.error import SettingError, TargetError, nearest

VARIABLE = "MXC_CODEGEN"
LLVM, NUMBA = "llvm", "numba"
GENERATORS = {LLVM: "mxc's own translator", NUMBA: "Numba"}


def numba_part(name: str) -> Any:
    """A module of targets/numba/, which is found by its name: it is made of what is here, and imports Numba. Raises
    TargetError when Numba cannot be imported."""
    try:
        importlib.import_module("numba")
    except ImportError as error:  # it is missing, or does not go with the installed NumPy
        raise TargetError(f"Numba, which has to compile it, cannot be imported ({error}): pip install --upgrade numba"
                          ) from None
    return importlib.import_module(f"mxc.compiler.targets.numba.{name}")


def chosen() -> str:
    """The generator that MXC_CODEGEN asks for. Raises SettingError for what is none."""
    name = env.text(VARIABLE, LLVM) or LLVM
    if name not in GENERATORS:
        raise SettingError(f"{VARIABLE}: there is no code generator {name!r}{nearest(name, GENERATORS)}; expected "
                           f"{' or '.join(GENERATORS)}, or nothing for {LLVM}")
    return name


def parts(generator: str) -> dict[str, str]:
    """What the code of kernels depends on because of the generator, labelled. Imports no Numba. Raises TargetError
    when it is not installed."""
    if generator == LLVM:
        return {}
    return {"codegen": generator, "numba": numba_version()}


def numba_version() -> str:
    """Numba's version, without importing it. Raises TargetError when it is not installed."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        raise TargetError("Numba, which this kernel's code is made by, is not installed: pip install numba") from None
