"""Loads object code into this process: linked by image.py, or by LLVM."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.targets.cpu.build import image


def load_functions(codes: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    """The addresses of the functions `symbols`, which these object codes define between them.

    Code that can be linked into an image is linked so: that takes 0.1 ms for a kernel, where LLVM takes 1.2 ms. LLVM
    loads the rest. Raises TargetError when the code cannot be loaded or does not define a symbol.
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
