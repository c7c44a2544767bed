"""Launches as text, for people: a line for each."""
from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from mxc.compiler.kernel.ir import CallKernel, ChainKernel, FunctionKernel, LoopKernel
from mxc.compiler.kernel.text import code_text
from mxc.compiler.lowering.launches import Launch, Storage


def launches_text(launches: Sequence[Launch], names: Sequence[str] = ()) -> str:
    """A line for each launch: phase, operators, kernel, and the storages that it reads and writes.

        forward  exp+sum (loop 1c9f2e [2] reduce [3]): argument[x] float32[2, 3] -> output[0] float32[2]

    The digits behind a kernel's kind are a digest of its code, which kernels of equal digits share. A storage between
    launches has the name of the node that makes it: `names` has them by the node's id. #2, #3, ... behind a name tell
    storages apart that would have one name.
    """
    shown = _Storages(names)
    lines = []
    for launch in launches:
        reads, writes = (", ".join(map(shown.text, storages)) for storages in (launch.reads, launch.writes))
        lines.append(f"{launch.phase:8} {launch.label} ({_kernel(launch)}): {reads} -> {writes}")
    return "\n".join([*lines, ""])


def _kernel(launch: Launch) -> str:
    kernel = launch.kernel
    if kernel is None:
        return "host step" if launch.loop is None else f"loop of {launch.loop.length} rounds"
    if isinstance(kernel, ChainKernel):
        return f"chain of {', '.join(dict.fromkeys(call.template for call, _ in kernel.calls()))}"
    # Six digits are few enough to read, and tell the tens of kernels of a program apart.
    digest = hashlib.sha256(code_text(kernel).encode()).hexdigest()[:6]
    if isinstance(kernel, LoopKernel):
        return f"loop {digest} {list(kernel.domain)}{f' reduce {list(kernel.reduce)}' if kernel.reduce else ''}"
    if isinstance(kernel, CallKernel):
        return f"{kernel.template} {digest}"
    if isinstance(kernel, FunctionKernel):
        return f"function {digest}"
    return f"routine {kernel.routine} {digest}"


class _Storages:
    """Makes the text of each storage; no two storages get the same name."""

    def __init__(self, names: Sequence[str]):
        self.names = names
        self.texts: dict[Storage, str] = {}
        self.count: Counter[str] = Counter()

    def text(self, storage: Storage) -> str:
        if storage not in self.texts:
            name = storage.name
            if storage.node is not None:
                name = self.names[storage.node] if self.names else f"node {storage.node}"
            place = f"{storage.pool}[{name}]"
            self.count[place] += 1
            number = f"#{self.count[place]}" if self.count[place] > 1 else ""
            self.texts[storage] = f"{place}{number} {storage.dtype}{list(storage.shape)}"
        return self.texts[storage]
