"""What targets share about the code of kernels: how it is launched and called, what of it is loaded, and a digest of
the sources that print it."""
from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mxc.compiler.error import MXNetError

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import Launcher


@dataclass(frozen=True)
class LaunchConfig:
    """How a kernel is launched. key: that of its code. units: how many units of work it has. scratch_bytes: the scratch
    memory that each thread needs. values: the run-time integers, which its code gets behind the buffers. calls: the
    positions of those integers that are addresses of other kernels' code, with the keys of these."""

    key: str
    units: int
    scratch_bytes: int
    values: tuple[int, ...]
    calls: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class DeviceCode:
    """A GPU's kernel, as files have it. name: of the kernel, for errors. buffers, scratch: the dtypes of its buffers
    and of a routine's private arrays. arch: that of the machine code `cubin`; ptx: the same, for newer devices."""

    name: str
    buffers: tuple[str, ...]
    scratch: tuple[str, ...]
    arch: str
    cubin: bytes
    ptx: bytes


@dataclass
class LoadedKernels:
    """The code of kernels.

    addresses: those of loaded kernels, by key. hits: how many came from this process, the cache or an artifact. misses:
    how many were compiled, which took compile_seconds. missing: for each key that the target has no code for, the name
    of what it lacks. launcher: what runs the code; None: the threads of runtime/runner.py call it, as functions with
    the ABI of kernel/ir.py.
    """

    addresses: dict[str, int] = field(default_factory=dict)
    hits: int = 0
    misses: int = 0
    compile_seconds: float = 0.0
    load_seconds: float = 0.0
    missing: dict[str, str] = field(default_factory=dict)
    launcher: Launcher | None = None

    def address(self, key: str) -> int:
        """Where the function of `key` starts. Raises MXNetError when it is not in this library."""
        if key not in self.addresses:
            lacking = f": the target has no code for {self.missing[key]}" if key in self.missing else ""
            raise MXNetError(f"no kernel {key} was loaded{lacking}")
        return self.addresses[key]


@functools.cache
def sources_digest() -> str:
    """A digest of the code that makes kernels: entries that another version made are not used."""
    from mxc.compiler.system import sources  # only now: artifacts are run without it

    return sources.digest("functions", "kernel", "targets") + sources.digest("operators", suffixes=("kernel.py",))


def symbol(key: str) -> str:
    """The name of the function of `key` in its code."""
    return "mxc_" + key.replace("-", "_")
