"""The CPU as a target: what a kernel's launch looks like, and kernels' code from the cache or the compiler."""
from __future__ import annotations

import functools
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mxc.compiler.cache import Cache, Claims, open_cache
from mxc.compiler.cache_files import entry_key
from mxc.compiler.error import MXNetError
from mxc.compiler.system import env, progress
from mxc.compiler.system.forks import Lock
from mxc.compiler.targets.cpu.build import codegen
from mxc.compiler.targets.cpu.build.loaded import load_functions
from mxc.compiler.targets.cpu.machine import host, levels
from mxc.compiler.targets.launch import LaunchConfig, LoadedKernels, sources_digest, symbol

if TYPE_CHECKING:
    from mxc.compiler.kernel.ir import Kernel
    from mxc.compiler.ops.functions import ScalarFunction
    from mxc.compiler.plan import Plan
    from mxc.compiler.targets.cpu.build.jobs import Job
    from mxc.compiler.targets.cpu.machine.isa import Isa
    from mxc.compiler.targets.cpu.machine.limits import Limits
    from mxc.compiler.targets.preferences import Preferences

POLL = 0.02  # seconds between looks at what another process compiles
PATIENCE = 30.0  # seconds without anything new from other processes, after which this one compiles what is missing


@dataclass
class Built:
    """Object code by key. misses: how many were compiled. seconds: how long that took."""

    objects: dict[str, bytes] = field(default_factory=dict)
    misses: int = 0
    seconds: float = 0.0


class CpuTarget:
    """This machine's CPU; `cpu` and `features` (LLVM's names) state another one to compile for. generator: one of
    `codegen.GENERATORS`."""

    name = "cpu"

    def __init__(self, cpu: str = "", features: str = "", cache: Cache | None = None,
                 generator: str = codegen.LLVM):
        import llvmlite  # which imports nothing else

        names = host.llvm_names(cache)
        self.cpu = cpu or names["cpu"]
        self.features = features if cpu else names["features"]
        self.cache, self.generator = cache, generator
        self.parts = {"triple": names["triple"], "cpu": self.cpu, "features": self.features, "mxc": sources_digest(),
                      "llvmlite": llvmlite.__version__, **codegen.parts(generator)}
        self.plans: dict[str, Plan] | None = {}
        self._keys: dict[str, str] = {}
        self._addresses: dict[str, int] = {}
        self._figures: tuple[Preferences, Preferences] | None = None  # all CPUs' figures, and those of this one
        self._lock = Lock()

    @functools.cached_property
    def isa(self) -> Isa:
        """The widest instruction set of library kernels that the CPU has."""
        from mxc.compiler.targets.cpu.machine.isa import fitting

        return fitting(self.features)

    @property
    def prefers(self) -> Preferences:
        """The figures that passes and stages decide by."""
        from mxc.compiler.targets.cpu import preferences

        figures = preferences.FIGURES
        if self._figures is None or self._figures[0] is not figures:
            pays = self.isa.pairs and self.cpu.startswith(preferences.FAST_PAIRS)
            pairs, tiles = figures.pairs if pays else None, figures.tiles if self.isa.tiles else None
            self._figures = figures, replace(figures, pairs=pairs, tiles=tiles)
        return self._figures[1]

    def tile(self, dtype: str) -> tuple[int, int]:
        """(MR, NR): the blocks in which packed rows of `dtype` come."""
        from mxc.compiler.targets.cpu import library

        return library.tile(dtype, self.isa)

    def lanes(self, dtype: str) -> int:
        """Channels of a block in blocked arrays: the elements of a vector of the computing dtype."""
        return self.isa.lanes(dtype)

    def lacks(self, kernel: Kernel) -> str:
        """The template of a library kernel that library/ does not have; "" for all other kernels."""
        from mxc.compiler.kernel.ir import CallKernel
        from mxc.compiler.targets.cpu import library

        return kernel.template if isinstance(kernel, CallKernel) and kernel.template not in library.MODULES else ""

    def launch(self, kernel: Kernel) -> LaunchConfig:
        """How `kernel` is launched. A loop kernel must be canonical (kernel/canonical.py)."""
        # imported only now: a start that finds its plan does not come here
        from mxc.compiler.kernel.ir import CallKernel, ChainKernel, FunctionKernel, LoopKernel, RoutineKernel
        from mxc.compiler.kernel.routines import spec
        from mxc.compiler.kernel.text import code_text
        from mxc.compiler.targets.cpu import library
        from mxc.compiler.targets.cpu.emit import chain, routines, skeletons

        text = code_text(kernel) + (skeletons.variant(kernel) if isinstance(kernel, LoopKernel) else "")
        if isinstance(kernel, FunctionKernel):
            text += f"numba {codegen.numba_version(kernel.function.source.operator)}\n"
        if text not in self._keys:
            self._keys[text] = entry_key(text, self.parts)
        if isinstance(kernel, CallKernel):
            return LaunchConfig(self._keys[text], library.units(kernel, self.isa),
                                library.scratch_bytes(kernel, self.isa), kernel.values())
        if isinstance(kernel, ChainKernel):
            return chain.launch(kernel, self._keys[text], self.launch, self.isa)
        if isinstance(kernel, FunctionKernel):
            return LaunchConfig(self._keys[text], 1, 0, kernel.values())
        if isinstance(kernel, RoutineKernel):
            return LaunchConfig(self._keys[text], spec.units(kernel), routines.scratch_bytes(kernel), kernel.values())
        return LaunchConfig(self._keys[text], skeletons.units(kernel), skeletons.scratch_layout(kernel)[1],
                            kernel.values())

    def load(self, kernels: Mapping[str, Kernel]) -> LoadedKernels:
        """The code of `kernels` (by the key of their launch), in this process. Raises MXNetError when a kernel does not
        compile, TargetError when its code cannot be loaded."""
        with self._lock:
            start = time.perf_counter()
            new = {key: kernel for key, kernel in kernels.items() if key not in self._addresses}
            built = self._build({key: functools.partial(self._job, key, kernel) for key, kernel in new.items()})
            self._keep(built.objects)
            rest = time.perf_counter() - start - built.seconds
            return LoadedKernels({key: self._addresses[key] for key in kernels}, len(kernels) - built.misses,
                                 built.misses, built.seconds, rest)

    def load_known(self, keys: Sequence[str]) -> LoadedKernels | None:
        """The code of the kernels of these keys, like `load`; None when some is neither in this process nor in the
        cache."""
        with self._lock:
            start, built = time.perf_counter(), Built()
            if not all(key in self._addresses or (self.cache is not None and self._found(key, built)) for key in keys):
                return None
            self._keep(built.objects)
            return LoadedKernels({key: self._addresses[key] for key in keys}, len(keys), 0, 0.0,
                                 time.perf_counter() - start)

    def _keep(self, objects: Mapping[str, bytes]) -> None:
        """Load the object code of kernels, by key."""
        loaded = load_functions(list(objects.values()), [symbol(key) for key in objects])
        self._addresses |= {key: loaded[symbol(key)] for key in objects}

    def explain(self, kernels: Mapping[str, Kernel]) -> dict[str, str]:
        """Why there is no code of `kernels` (by the key of their launch): "" for those that need no compilation."""
        there = self.cache.get if self.cache is not None else lambda key: None
        why = self.cache.explain if self.cache is not None else lambda key, parts: "there is no cache"
        return {key: "" if key in self._addresses or there(key) is not None else why(key, self.parts)
                for key in kernels}

    def source(self, kernel: Kernel) -> str:
        """What is compiled for `kernel`: typed source of a loop kernel, LLVM IR of a library kernel."""
        return self._job("", kernel).text

    def assembly(self, kernel: Kernel) -> str:
        """The machine's assembly of `kernel`, which is compiled for it."""
        from mxc.compiler.targets.cpu.build.load import machine
        from mxc.compiler.targets.cpu.build.worker import module_of

        host = machine(self.cpu, self.features)
        return str(host.emit_assembly(module_of(self._job("", kernel), host, self.features)))

    def runner_functions(self) -> dict[str, int]:
        """The addresses of the functions of runner_ir.py, by name."""
        from mxc.compiler.targets.cpu import runner_ir

        return self.functions(runner_ir.runner_source(platform.machine()), list(runner_ir.FUNCTIONS))

    def runner_object(self) -> bytes:
        """The object code of the functions of runner_ir.py."""
        from mxc.compiler.targets.cpu import runner_ir

        return self.object_of(runner_ir.runner_source(platform.machine()))

    def limits(self) -> Limits:
        """Kernels that measure what this machine can do at most."""
        from mxc.compiler.targets.cpu.machine import limits

        addresses = self.functions(limits.source(self.isa), [limits.MULTIPLY, limits.COPY], "limits")
        return limits.Limits(addresses[limits.MULTIPLY], addresses[limits.COPY], self.isa)

    def functions(self, text: str, symbols: Sequence[str], name: str = "runner") -> dict[str, int]:
        """The addresses of the functions that LLVM IR text defines; its object code is cached like that of kernels.
        name: for people."""
        return load_functions([self.object_of(text, name)], symbols)

    def object_of(self, text: str, name: str = "runner") -> bytes:
        """The object code of LLVM IR text."""
        key = entry_key(text, self.parts)

        def job() -> Job:
            from mxc.compiler.targets.cpu.build.jobs import Job  # imports what prints kernels

            return Job(symbol(key), name, "llvm", text)

        return self._build({key: job}, apart=True).objects[key]

    def objects(self, keys: Sequence[str], kernels: Callable[[], Mapping[str, Kernel]]) -> dict[str, bytes]:
        """The object code of the kernels of these keys, which defines `symbol(key)`. kernels: gives them, by key, when
        code is missing. Raises MXNetError when one does not compile."""
        return self._build({key: functools.partial(lambda key: self._job(key, kernels()[key]), key)
                            for key in keys}).objects

    def _job(self, key: str, kernel: Kernel) -> Job:
        from mxc.compiler.targets.cpu.build.jobs import job_of  # only now: it prints kernels

        if self.lacks(kernel):
            raise MXNetError(f"kernel {kernel.name}: the CPU target has no library kernel {self.lacks(kernel)}")
        return job_of(kernel, symbol(key) if key else "kernel", self.isa, self.generator, self.function_text,
                      (self.cpu, self.features))

    def function_text(self, function: ScalarFunction, dtype: str) -> str:
        """LLVM IR of a native function of the running program, from the cache or by Numba. Raises MXNetError that
        quotes the user's line where it does not compile, TargetError when Numba is not there."""
        assert function.source is not None
        if self.cache is None:
            return codegen.native_text(function, dtype)
        parts = self.parts | {"numba": codegen.numba_version(function.source.operator)}
        key = entry_key(f"function {function.name} {dtype}", parts)
        found = self.cache.get(key)
        if found is not None:
            return found.decode()
        text = codegen.native_text(function, dtype)
        self.cache.put(key, parts, text.encode(), f"function {function.name}", self.cache.explain(key, parts))
        return text

    def _build(self, jobs: Mapping[str, Callable[[], Job]], apart: bool = False) -> Built:
        """The object code of `jobs`, by key: from the cache, or compiled and put there. Where several processes miss
        the same code at once, each compiles a part of it and waits for the others' parts. apart: as of compile_jobs."""
        built = Built()
        if self.cache is None:
            self._compile({key: job() for key, job in jobs.items()}, built, None, apart)
            return built
        missing = [key for key in jobs if not self._found(key, built)]
        if not missing:
            return built
        with self.cache.claims() as claims:
            waited = time.monotonic()
            while missing:
                mine = [key for key in missing if claims.take(key)]
                if not mine and time.monotonic() - waited > PATIENCE:
                    mine = missing
                todo = {}
                for key in mine:
                    if not self._found(key, built):
                        todo[key] = jobs[key]()
                    else:  # another process stored it before it let go; a third may wait for it
                        claims.release(key)
                if todo:
                    self._compile(todo, built, claims, apart)
                missing = [key for key in missing if key not in built.objects]
                if mine:
                    waited = time.monotonic()
                elif missing:
                    time.sleep(POLL)
        if built.misses:
            self.cache.tidy()
        return built

    def _found(self, key: str, built: Built) -> bool:
        assert self.cache is not None
        code = self.cache.get(key)
        if code is not None:
            built.objects[key] = code
        return code is not None

    def _compile(self, jobs: Mapping[str, Job], built: Built, claims: Claims | None, apart: bool) -> None:
        """Compile `jobs`, by key, and put their code into `built` and, as soon as it is there, into the cache."""
        from mxc.compiler.targets.cpu.build.worker import compile_jobs

        began = time.perf_counter()
        by_symbol = {job.symbol: key for key, job in jobs.items()}
        reasons = self.cache.reasons(jobs, self.parts) if self.cache is not None else {}
        if env.debug_level() >= 5:
            for key, reason in reasons.items():
                print(f"mxc: {key} ({jobs[key].name}) is not cached: {reason}", file=sys.stderr)
        finished: list[str] = []

        def done(job: Job, code: bytes) -> None:
            key = by_symbol[job.symbol]
            built.objects[key] = code
            if self.cache is not None:
                self.cache.put(key, self.parts, code, job.name, reasons[key])
            if claims is not None:
                claims.release(key)
            finished.append(key)
            progress.report(len(finished), len(jobs), job.name)

        progress.report(0, len(jobs))
        compile_jobs(list(jobs.values()), self.cpu, self.features, done, apart)
        built.misses += len(jobs)
        built.seconds += time.perf_counter() - began


@functools.cache
def cpu_target() -> CpuTarget:
    """The target of this process: this machine's CPU, or the level of CPUs that MXC_CPU asks for, with the generator
    that MXC_CODEGEN asks for and the cache of the environment. Raises TargetError when the CPU has not that level, or
    the generator is not installed."""
    level, generator = levels.chosen(), codegen.chosen()
    if level is None:
        return CpuTarget(cache=open_cache(), generator=generator)
    host.check_level(level)
    return CpuTarget(level.name, level.features, open_cache(), generator)


def cpu_target_of(parts: Mapping[str, str]) -> CpuTarget:
    """The target that code with these parts (`host.host_parts`) was made for, if it runs here: a level of CPUs,
    whatever MXC_CPU asks for now, or else the target of this process."""
    if parts.get("cpu") == host.ANY:
        for level in levels.LEVELS.values():
            if {*parts["features"].split()} == level.flags:
                return CpuTarget(level.name, level.features, open_cache(), codegen.chosen())
    return cpu_target()
