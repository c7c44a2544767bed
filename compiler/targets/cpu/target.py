"""The CPU as a target: what a kernel's launch looks like, and kernels' code from the cache or the compiler."""
from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from mxc.compiler import env
from mxc.compiler.cache import Cache, entry_key, open_cache
from mxc.compiler.error import MXNetError
from mxc.compiler.forks import Lock
from mxc.compiler.kernel.ir import CallKernel, Kernel, RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.kernel.text import form_text
from mxc.compiler.targets.cpu import library, loop_forms, routines


@dataclass(frozen=True)
class Launch:
    """key: of the kernel's code. units: independent pieces of work. scratch_bytes: of each thread."""

    key: str
    units: int
    scratch_bytes: int


@dataclass
class Library:
    """Loaded kernels. hits: came from this process or the cache; misses: were compiled, in compile_seconds."""

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


class CpuTarget:
    """This machine's CPU; `cpu` and `features` (LLVM's names) state another one to compile for."""

    name = "cpu"

    def __init__(self, cpu: str = "", features: str = "", cache: Cache | None = None):
        import llvmlite
        import llvmlite.binding as llvm

        from mxc.compiler.targets.cpu.isa import fitting
        from mxc.compiler.targets.cpu.load import host_features

        self.cpu = cpu or llvm.get_host_cpu_name()
        self.features = features if cpu else host_features()
        self.isa = fitting(self.features)
        self.cache = cache
        self.parts = {
            "triple": llvm.get_process_triple(), "cpu": self.cpu, "features": self.features, "mxc": sources_digest(),
            "numba": metadata.version("numba"), "llvmlite": llvmlite.__version__,
        }
        self._keys: dict[str, str] = {}
        self._addresses: dict[str, int] = {}
        self._lock = Lock()

    def tile(self, dtype: str) -> tuple[int, int]:
        """(MR, NR): the blocks in which packed rows of `dtype` come."""
        return library.tile(dtype, self.isa)

    def lanes(self, dtype: str) -> int:
        """Channels of a block in blocked arrays: the elements of a vector of the computing dtype."""
        return self.isa.lanes(dtype)

    def launch(self, kernel: Kernel) -> Launch:
        """How `kernel` is launched. A loop kernel must be canonical (kernel/canonical.py)."""
        form = form_text(kernel)
        if form not in self._keys:
            self._keys[form] = entry_key(form, self.parts)
        if isinstance(kernel, CallKernel):
            return Launch(self._keys[form], library.units(kernel, self.isa), library.scratch_bytes(kernel, self.isa))
        if isinstance(kernel, RoutineKernel):
            return Launch(self._keys[form], spec.units(kernel), routines.scratch_bytes(kernel))
        return Launch(self._keys[form], loop_forms.units(kernel), loop_forms.scratch_layout(kernel)[1])

    def load(self, kernels: Mapping[str, Kernel]) -> Library:
        """The code of `kernels` (by the key of their launch), in this process. Raises MXNetError when a kernel does not
        compile, TargetError when its code cannot be loaded."""
        from mxc.compiler.targets.cpu.load import load_objects

        with self._lock:
            start = time.perf_counter()
            objects: dict[str, bytes] = {}
            missing: dict[str, Kernel] = {}
            for key, kernel in kernels.items():
                if key in self._addresses:
                    continue
                code = self.cache.get(key) if self.cache is not None else None
                if code is None:
                    missing[key] = kernel
                else:
                    objects[key] = code
            read = time.perf_counter()
            if missing:
                objects |= self._compile(missing)
            compiled = time.perf_counter()
            loaded = load_objects({symbol(key): code for key, code in objects.items()})
            self._addresses |= {key: loaded[symbol(key)] for key in objects}
            ended = time.perf_counter()
            return Library({key: self._addresses[key] for key in kernels}, len(kernels) - len(missing), len(missing),
                           compiled - read, ended - compiled + read - start)

    def source(self, kernel: Kernel) -> str:
        """What is compiled for `kernel`: Numba source of a loop kernel, LLVM IR of a library kernel."""
        from mxc.compiler.targets.cpu.jobs import job_of

        return job_of(kernel, "kernel", self.isa).text

    def assembly(self, kernel: Kernel) -> str:
        """The machine's assembly of `kernel`, which is compiled for it."""
        from mxc.compiler.targets.cpu.jobs import job_of
        from mxc.compiler.targets.cpu.load import machine, optimised

        job, host = job_of(kernel, "kernel", self.isa), machine(self.cpu, self.features)
        if job.language == "llvm":
            return str(host.emit_assembly(optimised(job.text, host, 0)))
        from mxc.compiler.targets.cpu.compile import module_of  # imports Numba

        return str(host.emit_assembly(module_of(job, host, self.features)))

    def functions(self, text: str, symbols: Sequence[str]) -> dict[str, int]:
        """The addresses of the functions that LLVM IR text defines; its object code is cached as that of kernels."""
        from mxc.compiler.targets.cpu.load import load_functions, machine, optimised

        key = entry_key(text, self.parts)
        code = self.cache.get(key) if self.cache is not None else None
        if code is None:
            generator = machine(self.cpu, self.features)
            code = generator.emit_object(optimised(text, generator, 0))
            if self.cache is not None:
                self.cache.put(key, self.parts, code)
        return load_functions([code], symbols)

    def _compile(self, kernels: Mapping[str, Kernel]) -> dict[str, bytes]:
        from mxc.compiler.targets.cpu.jobs import job_of
        from mxc.compiler.targets.cpu.worker import compile_jobs

        self._explain(kernels)
        jobs = [job_of(kernel, symbol(key), self.isa) for key, kernel in kernels.items()]
        objects = compile_jobs(jobs, self.cpu, self.features)
        made = {key: objects[symbol(key)] for key in kernels}
        if self.cache is not None:
            for key, code in made.items():
                self.cache.put(key, self.parts, code)
        return made

    def _explain(self, kernels: Mapping[str, Kernel]) -> None:
        if env.debug_level() >= 5 and self.cache is not None:
            for key, kernel in kernels.items():
                print(f"mxc: {key} ({kernel.name}) is not cached: {self.cache.explain(key, self.parts)}",
                      file=sys.stderr)


def symbol(key: str) -> str:
    """The name of the function of `key` in its object."""
    return "mxc_" + key.replace("-", "_")


@functools.cache
def sources_digest() -> str:
    """A digest of the code that makes kernels: entries that another version made are not used."""
    root = Path(__file__).resolve().parents[2]
    total = hashlib.sha256()
    for folder in ("kernel", "targets"):
        for path in sorted((root / folder).rglob("*.py")):
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


@functools.cache
def cpu_target() -> CpuTarget:
    """The target of this process: this machine's CPU, with the cache of the environment."""
    return CpuTarget(cache=open_cache())
