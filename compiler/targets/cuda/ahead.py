"""An NVIDIA GPU as a target of compilation ahead of time: code for its loop kernels and those of a program's
functions, made on a machine without one."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from mxc.compiler.cache import Cache, open_cache
from mxc.compiler.cache_files import entry_key
from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.ir import CallKernel, FunctionKernel, Kernel, LoopKernel, RoutineKernel
from mxc.compiler.kernel.text import code_text
from mxc.compiler.kernel.value_text import walk
from mxc.compiler.targets.cuda.code import CudaCode, capability, compile_kernel, source_of, toolchain_versions
from mxc.compiler.targets.cuda.loops import THREADS
from mxc.compiler.targets.launch import LaunchConfig, LoadedKernels, sources_digest, symbol
from mxc.compiler.targets.preferences import Joins, Preferences, Recomputing, Reductions, Spreading

if TYPE_CHECKING:
    from mxc.compiler.plan import Plan
    from mxc.compiler.targets.protocol import KernelTarget

# Not measured: the CPU's figures, until a GPU is there to measure its own on.
UNMEASURED = Preferences(recomputing=Recomputing(worth_bytes=1 << 14, most_nodes=24),
                         spreading=Spreading(fewest_rows=8, small_space=1 << 16),
                         reductions=Reductions(few=16, long=1 << 15, part=1 << 13), joins=Joins(shortest=4096))


@dataclass
class CudaLibrary(LoadedKernels):
    """Compiled code that is not loaded. codes: the kernels' code, by key. missing: has the library kernels and
    routines. hits, misses: how many of the kernels with code came from the cache, and how many did not."""

    codes: dict[str, CudaCode] = field(default_factory=dict)


class CudaTarget:
    """An architecture, such as `sm_90`. Matrix operators stay on plain arrays: nothing is packed or put in blocks.

    Raises TargetError for what is no architecture, or when the extra `cuda` is not installed.
    """

    name = "cuda"
    plans: dict[str, Plan] | None = None  # a plan for it goes into an artifact, and is made once
    prefers = UNMEASURED

    def __init__(self, arch: str, cache: Cache | None = None):
        capability(arch)
        self.arch = arch
        self.cache = cache if cache is not None else open_cache()
        self.parts = {"target": f"cuda:{arch}", "mxc": sources_digest(), **toolchain_versions()}

    def tile(self, dtype: str) -> tuple[int, int]:
        """There is no register tile, so weights are not packed."""
        return 0, 0

    def lanes(self, dtype: str) -> int:
        """There are no arrays in blocks of channels."""
        return 1

    def lacks(self, kernel: Kernel) -> str:
        """The template or routine of a kernel that is neither a loop kernel nor a program's function; "" for these, but
        for what computes with bfloat16."""
        if isinstance(kernel, LoopKernel) and any(v.dtype == "bfloat16" for v in walk(kernel.roots())):
            return f"{kernel.name} of bfloat16"
        if isinstance(kernel, LoopKernel | FunctionKernel):
            return ""
        return kernel.template if isinstance(kernel, CallKernel) else (
            kernel.routine if isinstance(kernel, RoutineKernel) else kernel.name)

    def launch(self, kernel: Kernel) -> LaunchConfig:
        """How `kernel` is launched. units: how many blocks of THREADS threads it has; each point of the domain has a
        thread, or in reductions a block."""
        points = prod(kernel.domain) if isinstance(kernel, LoopKernel) else 1
        reduces = isinstance(kernel, LoopKernel) and kernel.accumulators
        text = code_text(kernel) + (f"{kernel.numbers}\n" if isinstance(kernel, FunctionKernel) else "")
        return LaunchConfig(entry_key(text, self.parts), points if reduces else -(-points // THREADS), 0,
                            kernel.values())

    def load(self, kernels: Mapping[str, Kernel]) -> CudaLibrary:
        """The code of loop kernels and functions among `kernels` (by the key of their launch), from the cache or
        compiled. Raises MXNetError when one does not compile."""
        library = CudaLibrary()
        for key, kernel in kernels.items():
            if self.lacks(kernel):
                library.missing[key] = self.lacks(kernel)
                continue
            assert isinstance(kernel, LoopKernel | FunctionKernel)
            stored = self.cache.get(key) if self.cache is not None else None
            if stored is not None:
                library.codes[key] = CudaCode.from_bytes(stored)
                library.hits += 1
                continue
            library.codes[key] = code = compile_kernel(kernel, symbol(key), self.arch)
            library.misses += 1
            if self.cache is not None:
                self.cache.put(key, self.parts, code.to_bytes())
        return library

    def load_known(self, keys: Sequence[str]) -> CudaLibrary | None:
        """Gives None: plans for this target are not stored, so nobody has keys without kernels."""
        return None

    def source(self, kernel: Kernel) -> str:
        """The numba.cuda source of a loop kernel. Raises MXNetError for a kernel without one."""
        return source_of(_compiled(kernel))

    def assembly(self, kernel: Kernel) -> str:
        """The PTX of a loop kernel. Raises MXNetError for a kernel without it."""
        return compile_kernel(_compiled(kernel), "kernel", self.arch).ptx


def _compiled(kernel: Kernel) -> LoopKernel | FunctionKernel:
    if not isinstance(kernel, LoopKernel | FunctionKernel):
        raise MXNetError(f"{kernel.name}: this target has no code for library kernels")
    return kernel


if TYPE_CHECKING:  # mypy compares them
    _: type[KernelTarget] = CudaTarget
