"""Which generator makes code of typed source: the translator of our own (translate.py), or Numba (targets/numba/)."""
from __future__ import annotations

from importlib import metadata

from mxc.compiler import env
from mxc.compiler.error import SettingError, TargetError, nearest

VARIABLE = "MXC_CODEGEN"
LLVM, NUMBA = "llvm", "numba"
HOME = "mxc.compiler.targets.numba.generate"  # imports Numba; by its name, for it is made of what is here
GENERATORS = {LLVM: "mxc's own translator", NUMBA: "Numba"}


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
    try:
        return {"codegen": generator, "numba": metadata.version("numba")}
    except metadata.PackageNotFoundError:
        raise TargetError(f"{VARIABLE}: {generator} is not installed: pip install {generator}, or unset the "
                          "variable") from None
