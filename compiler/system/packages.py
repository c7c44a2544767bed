"""Whether the packages are there that the compiler needs. Where only artifacts run they may be left out."""
from __future__ import annotations

from importlib.util import find_spec

_NEEDED = {"llvmlite": "llvmlite", "yaml": "pyyaml"}  # the packages by the module that is imported


def compiler_lacks() -> list[str]:
    """The packages without which nothing can be compiled, nor a graph be read, of those that are not there."""
    return [package for module, package in _NEEDED.items() if find_spec(module) is None]
