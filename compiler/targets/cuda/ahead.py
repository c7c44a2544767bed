"""An NVIDIA GPU as a target of compilation ahead of time: code for its kernels, made on a machine without one."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mxc.compiler.cache import Cache, open_cache
from mxc.compiler.cache_files import entry_key
from mxc.compiler.kernel.ir import CallKernel, FunctionKernel, Kernel, LoopKernel, RoutineKernel
from mxc.compiler.kernel.text import code_text
from mxc.compiler.kernel.value_text import walk
from mxc.compiler.targets.cuda import estimate, sorting
from mxc.compiler.targets.cuda.blocks import GPU, Blocks
from mxc.compiler.targets.cuda.code import CudaCode, capability, compile_kernel, toolchain_versions
from mxc.compiler.targets.cuda.kernels import grid_of, lacks, scratch_dtypes, source_of
from mxc.compiler.targets.cuda.loops import form
from mxc.compiler.targets.cuda.nvidia.forms import library_of
from mxc.compiler.targets.cuda.resources import resources
from mxc.compiler.targets.launch import DeviceCode, LaunchConfig, LoadedKernels, sources_digest, symbol
from mxc.compiler.targets.preferences import Depths, Joins, Preferences, Recomputing, Reductions, Spreading

if TYPE_CHECKING:
    from mxc.compiler.plan import Plan
    from mxc.compiler.targets.protocol import CodeTarget

# Not measured: the CPU's figures, until a GPU is there to measure its own on; and an A100's 108 multiprocessors.
UNMEASURED = Preferences(recomputing=Recomputing(worth_bytes=1 << 14, most_nodes=24),
                         spreading=Spreading(fewest_rows=8, small_space=1 << 16),
                         reductions=Reductions(few=16, long=1 << 15, part=1 << 13),
                         depths=Depths(tile=GPU.tile[:2], few=108, blocks=216, part=256, step=GPU.tile[2]),
                         joins=Joins(shortest=4096))


@dataclass
class CudaLibrary(LoadedKernels):
    """Compiled code that is not loaded. codes: the kernels' code, by key. missing: what there is no
    code for. hits, misses: how many of the kernels with code came from the cache, and how many did not."""

    codes: dict[str, CudaCode] = field(default_factory=dict)


class CudaTarget:
    """An architecture, such as `sm_90`. Matrix operators stay on plain arrays: nothing is packed or put in blocks.

    Raises TargetError for what is no architecture, or when the extra `cuda` is not installed.
    """

    name = "cuda"
    plans: dict[str, Plan] | None = None  # a plan for it goes into an artifact, and is made once
    prefers = UNMEASURED
    blocks: Blocks = GPU

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
        """The template or routine that there is no code for, or bfloat16 in what it computes; "" where there is
        code."""
        if isinstance(kernel, LoopKernel) and any(v.dtype == "bfloat16" for v in walk(kernel.roots())):
            return f"{kernel.name} of bfloat16"
        if isinstance(kernel, CallKernel) and "bfloat16" in kernel.buffers:
            return f"{kernel.template} of bfloat16"
        return lacks(kernel)

    def launch(self, kernel: Kernel) -> LaunchConfig:
        """How `kernel` is launched. units: how many blocks of threads it has. scratch_bytes: of all threads."""
        text = code_text(kernel) + (f"{kernel.numbers}\n" if isinstance(kernel, FunctionKernel) else "")
        if lacks(kernel):
            return LaunchConfig(entry_key(text, self.parts), 1, 0, kernel.values())
        if isinstance(kernel, CallKernel):  # of what is decided for the CPU's templates, little is in the code
            text = f"{kernel.buffers}\n{source_of(kernel, self.blocks)}"
        text += f"{form(kernel)}\n" if isinstance(kernel, LoopKernel) else ""
        text += "by blocks\n" if isinstance(kernel, RoutineKernel) and sorting.has_form(kernel) else ""
        grid = grid_of(kernel, self.blocks)
        return LaunchConfig(entry_key(text, self.parts), grid.blocks, grid.scratch,
                            (*kernel.values(), *grid.integers))

    def load(self, kernels: Mapping[str, Kernel]) -> CudaLibrary:
        """The code of `kernels` (by the key of their launch), from the cache or compiled. Raises MXNetError when one
        does not compile."""
        library = CudaLibrary()
        for key, kernel in kernels.items():
            if lacking := self.lacks(kernel):
                library.missing[key] = lacking
                continue
            stored = self.cache.get(key) if self.cache is not None else None
            if stored is not None:
                library.codes[key] = CudaCode.from_bytes(stored)
                library.hits += 1
                continue
            library.codes[key] = code = compile_kernel(kernel, symbol(key), self.arch, self.blocks)
            library.misses += 1
            if self.cache is not None:
                self.cache.put(key, self.parts, code.to_bytes())
        return library

    @property
    def machine(self) -> str:
        """The GPU that `seconds` is about. Raises TargetError where there is none for the architecture."""
        return estimate.machine(self.arch).name

    def seconds(self, moved: int, flops: int, blocks: int) -> float:
        """How long a kernel may take; see estimate.py."""
        return estimate.seconds(estimate.machine(self.arch), moved, flops, blocks)

    def library(self, kernel: Kernel, values: Sequence[int]) -> str:
        """The library of NVIDIA's that may take a kernel's place in a launch with these integers, for people; "" for
        none. Where it is there, sums in parts are whole, and an epilogue that it has not is a kernel of its own."""
        return library_of(kernel, values) if isinstance(kernel, CallKernel) else ""

    def usage(self, code: CudaCode) -> dict[str, Any]:
        """What a kernel takes of the GPU: see resources.py. limit: what keeps more threads from running at a time."""
        found = resources(code.cubin)
        share, limit = found.occupancy(self.blocks.threads, self.arch)
        return {**vars(found), "occupancy": share, "limit": limit}

    def stored(self, library: LoadedKernels, kernels: Mapping[str, Kernel]) -> dict[str, DeviceCode]:
        """See CodeTarget."""
        assert isinstance(library, CudaLibrary)
        return {key: DeviceCode(kernels[key].name, kernels[key].buffers, scratch_dtypes(kernels[key]), self.arch,
                                code.cubin, code.ptx.encode()) for key, code in library.codes.items()}

    def load_known(self, keys: Sequence[str]) -> CudaLibrary | None:
        """Gives None: plans for this target are not stored, so nobody has keys without kernels."""
        return None

    def source(self, kernel: Kernel) -> str:
        """The numba.cuda source of a kernel. Raises MXNetError for a kernel without one."""
        return source_of(kernel, self.blocks)

    def assembly(self, kernel: Kernel) -> str:
        """The PTX of a kernel. Raises MXNetError for a kernel without it."""
        return compile_kernel(kernel, "kernel", self.arch, self.blocks).ptx


if TYPE_CHECKING:  # mypy compares them
    _: type[CodeTarget] = CudaTarget
