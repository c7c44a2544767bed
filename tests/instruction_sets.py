"""The instruction sets that kernels are tested for: what each is printed and compiled for, and what runs its code here.

A test of kernels has a parameter `instructions` (see conftest.py), one of RUNNING: a set that this machine's CPU has,
or one that an emulator here has. It makes its cases for `instructions.isa` and runs kernels with `instructions.run`.
"""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import aarch64
import bochs
import llvmlite.binding as llvm
import numpy as np

from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.ir import ChainKernel, Kernel
from mxc.compiler.targets.cpu.build import codegen
from mxc.compiler.targets.cpu.build.jobs import Job, job_of
from mxc.compiler.targets.cpu.build.load import host_features, initialise
from mxc.compiler.targets.cpu.build.loaded import load_functions
from mxc.compiler.targets.cpu.build.worker import module_of
from mxc.compiler.targets.cpu.machine import isa as isa_module
from mxc.compiler.targets.cpu.machine.isa import Isa
from mxc.compiler.targets.cpu.machine.levels import LEVELS
from mxc.compiler.targets.cpu.target import CpuTarget
from mxc.compiler.targets.launch import symbol

MACHINE = platform.machine().replace("arm64", "aarch64")  # macOS says the former
GUARD = 0xA5  # in the bytes behind a kernel's scratch memory
Portions = Sequence[tuple[int, int]]  # stretches of units


class Processor(Protocol):
    """What runs code. missing(): why it cannot, "" when it can."""

    def missing(self) -> str: ...

    def load(self, symbol: str, code: bytes) -> int:
        """The address of the function `symbol` of object code."""

    def run(self, address: int, arrays: Sequence[np.ndarray], values: Sequence[int], scratch: np.ndarray,
            portions: Portions) -> None:
        """Call a kernel with the addresses of arrays, then values, for each of the stretches of units."""


class Here:
    """This machine's CPU. features: LLVM's, that it has to have; every one of aarch64 has NEON, said or not."""

    def __init__(self, machine: str, features: str):
        self.machine, self.features = machine, set(features.split(","))

    def missing(self) -> str:
        lacks = self.features - set(host_features().split(",")) if self.machine == "x86_64" else set()
        return "this CPU lacks it" if self.machine != MACHINE or lacks else ""

    def load(self, symbol: str, code: bytes) -> int:
        return load_functions([code], [symbol])[symbol]

    def run(self, address: int, arrays: Sequence[np.ndarray], values: Sequence[int], scratch: np.ndarray,
            portions: Portions) -> None:
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(address)
        args = np.array([*(a.ctypes.data for a in arrays), *values], np.int64)
        for first, last in portions:
            function(args.ctypes.data, first, last, scratch.ctypes.data)


@dataclass(frozen=True, eq=False)
class InstructionSet:
    """isa: what kernels are printed for. cpu, features: what LLVM compiles them for, of machines `machine`. emulator:
    where this machine lacks the set. effort: LLVM's in code generation. code: its generator."""

    name: str
    isa: Isa
    cpu: str
    features: str
    machine: str = "x86_64"
    emulator: Processor | None = None
    effort: int = 3
    code: str = codegen.LLVM

    def __str__(self) -> str:
        return self.name

    @functools.cached_property
    def here(self) -> Processor:
        return Here(self.machine, self.features)

    @functools.cached_property
    def processor(self) -> Processor | None:
        """What runs the set's code; None where nothing does."""
        return next((p for p in (self.here, self.emulator) if p is not None and not p.missing()), None)

    @property
    def is_emulated(self) -> bool:
        return self.processor is not None and self.processor is not self.here

    @property
    def missing(self) -> str:
        """Why nothing here runs the set's code."""
        assert self.processor is None
        return "; ".join(p.missing() for p in (self.here, self.emulator) if p is not None)

    @functools.cached_property
    def target(self) -> CpuTarget:
        """For passes and launches."""
        target = CpuTarget(self.cpu, self.features)
        target.isa = self.isa
        return target

    @functools.cached_property
    def generator(self) -> llvm.TargetMachine:
        """LLVM's code generator. Raises RuntimeError where LLVM was built without the machine's."""
        initialise()
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        triple = llvm.get_process_triple() if self.machine == MACHINE else f"{self.machine}-unknown-linux-gnu"
        return llvm.Target.from_triple(triple).create_target_machine(
            cpu=self.cpu, features=self.features, opt=self.effort, reloc="pic")

    def object_of(self, job: Job) -> bytes:
        job = dataclasses.replace(job, generator=self.code)
        return bytes(self.generator.emit_object(module_of(job, self.generator, self.features)))

    def address(self, kernel: Kernel) -> int:
        """Of the kernel's code, which is compiled when it is first asked for."""
        return self.compiled(job_of(kernel, symbol(self.target.launch(kernel).key), self.isa))

    def compiled(self, job: Job) -> int:
        assert self.processor is not None
        if job.symbol not in self._addresses:
            self._addresses[job.symbol] = self.processor.load(job.symbol, self.object_of(job))
        return self._addresses[job.symbol]

    @functools.cached_property
    def _addresses(self) -> dict[str, int]:
        return {}

    def run(self, kernel: Kernel, arrays: Sequence[np.ndarray], portions: Portions | None = None) -> None:
        """Run a kernel (a loop kernel in canonical form): all units, the second half of them first, or the portions;
        and check that its scratch memory is large enough."""
        launch = self.target.launch(kernel)
        values = list(launch.values)
        if isinstance(kernel, ChainKernel):
            calls = {id(call.stores): call for call, _ in kernel.calls()}
            code = {self.target.launch(call).key: call for call in calls.values()}
            for position, key in launch.calls:
                values[position] = self.address(code[key])
        half = launch.units // 2
        halves = [(half, launch.units), (0, half)][:2 if half else 1]  # runners call no kernel for no units
        self.call(self.address(kernel), arrays, values, launch.scratch_bytes, portions or halves)

    def call(self, address: int, arrays: Sequence[np.ndarray], values: Sequence[int], scratch_bytes: int,
             portions: Portions) -> None:
        assert self.processor is not None
        memory = np.full(scratch_bytes + 192, GUARD, np.uint8)
        scratch = memory[-memory.ctypes.data % 64 :][: scratch_bytes + 64]
        self.processor.run(address, arrays, values, scratch, portions)
        assert (scratch[scratch_bytes:] == GUARD).all(), "scratch memory is too small"


V2, V3, V4 = (LEVELS[f"x86-64-v{n}"] for n in (2, 3, 4))
# As AVX-512's kernels, but no wider than what an AVX2 machine's LLVM makes of their vectors, two registers of each;
# nothing is printed as assembly. What blocks of 16 lanes do so is tested where there is no AVX-512.
WIDE = dataclasses.replace(isa_module.AVX512, name="wide", rows=6, features="")
SETS = (
    InstructionSet(V2.name, isa_module.PLAIN, V2.name, V2.features),
    InstructionSet("AVX2", isa_module.AVX2, V3.name, V3.features),
    InstructionSet("16-lanes-on-AVX2", WIDE, V3.name, V3.features, effort=0),
    InstructionSet("AVX-512", isa_module.AVX512, V4.name, V4.features, emulator=bochs.Bochs()),
    InstructionSet("AVX-512 VNNI", isa_module.AVX512_VNNI, V4.name, f"{V4.features},+avx512vnni"),
    InstructionSet("AVX-512 BF16", isa_module.AVX512_BF16, V4.name, f"{V4.features},+avx512vnni,+avx512bf16"),
    InstructionSet("AMX", isa_module.AMX, V4.name, f"{V4.features},{isa_module.AMX.features}"),
    InstructionSet("NEON", isa_module.NEON, "generic", "+neon", "aarch64", emulator=aarch64.Qemu()),
)
OWN = next((each for each in SETS if each.isa is isa_module.native()), SETS[0])  # the widest that this machine has
NUMBA = dataclasses.replace(OWN, name="Numba", code=codegen.NUMBA)
RUNNING = (*(each for each in SETS if each.processor is not None), NUMBA)


def filled(w: Window, lanes: int) -> Window:
    """The window with as many more channels and filters of each group (depthwise: groups) as fill blocks of `lanes`."""
    def up(count: int) -> int:
        return -(-count // lanes) * lanes

    if w.channels == w.filters == 1:
        return dataclasses.replace(w, groups=up(w.groups))
    return dataclasses.replace(w, channels=up(w.channels), filters=up(w.filters))


def report() -> list[str]:
    """Lines on which sets are tested and which this machine lacks, for people."""
    here = [each.name for each in RUNNING if not each.is_emulated]
    emulated = [each.name for each in RUNNING if each.is_emulated]
    lines = [f"instruction sets: {', '.join(here)} run here" + (
        f"; emulated, in the slow tests: {', '.join(emulated)}" if emulated else "")]
    return lines + [f"instruction sets: {each.name} does not run here, its kernels are compiled only ({each.missing})"
                    for each in SETS if each.processor is None]
