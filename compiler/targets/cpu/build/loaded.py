"""Kernels that were loaded into this process, and object code into it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mxc.compiler.error import MXNetError
from mxc.compiler.targets.cpu.build import image


class Library(NamedTuple):
    """Loaded kernels. hits: came from this process, the cache or an artifact; misses: were compiled, in
    compile_seconds."""

    addresses: dict[str, int]
    hits: int = 0
    misses: int = 0
    compile_seconds: float = 0.0
    load_seconds: float = 0.0

    def address(self, key: str) -> int:
        """Where the function of `key` starts. Raises MXNetError when it is not in this library."""
        if key not in self.addresses:
            raise MXNetError(f"no kernel {key} was loaded")
        return self.addresses[key]


def load_functions(codes: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    """The addresses of the functions `symbols`, which these object codes define between them.

    Code that can be linked into an image is: that takes 0.1 ms for a kernel where LLVM takes 1.2, which loads the rest.
    Raises TargetError when the code cannot be loaded or does not define a symbol.
    """
    if not symbols:
        return {}
    if image.is_native():
        try:
            linked = image.link(codes, symbols)
        except image.LinkError:
            pass  # LLVM knows more forms
        else:
            base = image.load(linked.code, linked.imports)
            return {symbol: base + place for symbol, place in linked.symbols.items()}
    from mxc.compiler.targets.cpu.build.load import load_by_llvm  # imports llvmlite

    return load_by_llvm(codes, symbols)
