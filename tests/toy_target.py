"""The smallest target: its code of a kernel is the kernel's Python definition, its memory a device's that it makes up.

docs/adding-a-target.md goes through it. `run_plan` is what a runtime for such a device does with a plan.
"""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel import interpret, interpret_calls, interpret_chain
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, FunctionKernel, Kernel, LoopKernel, RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.kernel.text import kernel_text
from mxc.compiler.targets.launch import LaunchConfig, LoadedKernels
from mxc.compiler.targets.preferences import Preferences

if TYPE_CHECKING:
    from mxc.compiler.api import Compiled
    from mxc.compiler.cache import Cache
    from mxc.compiler.plan import Plan
    from mxc.compiler.targets.protocol import KernelTarget, Launcher, Memory

DEFINITIONS: dict[type, Callable[..., None]] = {
    LoopKernel: interpret.run, CallKernel: interpret_calls.interpret, RoutineKernel: spec.run,
    ChainKernel: interpret_chain.interpret}
NOTHING = Preferences()  # no transformation that a target has to ask for
Row = tuple[int, Sequence[int], int]


class ToyMemory:
    """Blocks of bytes. An address is the number of a block, from 1 on, times SIZE, plus the offset in it."""

    SIZE, alignment = 1 << 40, 64

    def __init__(self) -> None:
        self.blocks: dict[int, np.ndarray] = {}
        self.count = 0

    def allocate(self, nbytes: int, holder: str = "") -> int:
        self.count += 1
        self.blocks[self.count] = np.full(nbytes, 0xFF, np.uint8)  # as floats NaN: what nobody wrote is seen
        return self.count * self.SIZE

    def release(self, address: int) -> None:
        del self.blocks[address // self.SIZE]

    def write(self, address: int, values: np.ndarray) -> None:
        self.view(address, "uint8")[:values.nbytes] = np.ascontiguousarray(values).view(np.uint8).ravel()

    def read(self, address: int, values: np.ndarray) -> None:
        values.reshape(-1).view(np.uint8)[:] = self.view(address, "uint8")[:values.nbytes]

    def view(self, address: int, dtype: str) -> np.ndarray:
        """What lies from an address on."""
        rest = self.blocks[address // self.SIZE][address % self.SIZE:]
        return rest[:len(rest) // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize].view(dtype)


class ToyLauncher:
    """Runs rows one by one. The address of a kernel is its place among those that were loaded, from 1 on."""

    def __init__(self) -> None:
        self.memory = ToyMemory()
        self.kernels: list[Kernel] = []

    def table(self, rows: Sequence[Row], scratch: int = 0, stride: int = 0) -> list[Row]:
        return [(address, list(arguments), units) for address, arguments, units in rows]

    def put(self, table: list[Row], row: int, argument: int, address: int) -> None:
        table[row][1][argument] = address  # type: ignore[index]  # lists, as `table` made them

    def run(self, table: list[Row]) -> None:
        for address, arguments, _ in table:
            kernel = self.kernels[address - 1]
            arrays = [self.memory.view(at, dtype) for at, dtype in zip(arguments, kernel.buffers, strict=False)]
            DEFINITIONS[type(kernel)](kernel, arrays)

    def bound(self, table: list[Row], quick: bool = False) -> Callable[[], None]:
        return lambda: self.run(table)


class ToyTarget:
    """See `KernelTarget`. rows, columns, vector: of register tiles and of blocks of channels; 0 and 1 for none."""

    name = "toy"
    cache: Cache | None = None
    plans: dict[str, Plan] | None = None

    def __init__(self, prefers: Preferences = NOTHING, rows: int = 0, columns: int = 0, vector: int = 1):
        self.prefers, self.rows, self.columns, self.vector = prefers, rows, columns, vector
        self.parts: dict[str, str] = {}
        self.launcher = ToyLauncher()
        self.addresses: dict[str, int] = {}

    def tile(self, dtype: str) -> tuple[int, int]:
        return self.rows, self.columns

    def lanes(self, dtype: str) -> int:
        return self.vector

    def lacks(self, kernel: Kernel) -> str:
        return kernel.function.source.operator if isinstance(kernel, FunctionKernel) else ""

    def launch(self, kernel: Kernel) -> LaunchConfig:
        """Definitions have their extents in them, so the key is of the whole kernel."""
        return LaunchConfig(hashlib.sha256(f"{kernel_text(kernel)}{kernel.values()}".encode()).hexdigest(), 1, 0, ())

    def load(self, kernels: Mapping[str, Kernel]) -> LoadedKernels:
        missing = {key: lacking for key, kernel in kernels.items() if (lacking := self.lacks(kernel))}
        for key, kernel in kernels.items():
            if key not in self.addresses and key not in missing:
                self.launcher.kernels.append(kernel)
                self.addresses[key] = len(self.launcher.kernels)
        addresses = {key: self.addresses[key] for key in kernels if key not in missing}
        return LoadedKernels(addresses, hits=len(addresses), missing=missing, launcher=self.launcher)

    def load_known(self, keys: Sequence[str]) -> LoadedKernels | None:
        return None

    def source(self, kernel: Kernel) -> str:
        if self.lacks(kernel):
            raise MXNetError(f"{kernel.name}: this target has no code for {self.lacks(kernel)}")
        return kernel_text(kernel)

    def assembly(self, kernel: Kernel) -> str:
        return self.source(kernel)


if TYPE_CHECKING:  # what mypy compares with the protocol
    _: tuple[KernelTarget, Launcher, Memory] = ToyTarget(), ToyLauncher(), ToyMemory()


def run_plan(compiled: Compiled, given: Mapping[tuple[str, str], np.ndarray], phases: Sequence[str],
             ) -> dict[tuple[str, str], np.ndarray]:
    """The buffers of a plan that have names, after its phases, by pool and name. given: what they hold before: all of
    them but outputs. The kernels, and the memory that they work on, are those of the library's launcher."""
    plan, library = compiled.plan, compiled.library
    launcher = library.launcher
    assert launcher is not None and launcher.memory is not None
    memory = launcher.memory
    whole = {"arena": memory.allocate(plan.arena_bytes), "prepared": memory.allocate(plan.prepared_bytes)}
    places = [whole[b.pool] + b.offset if b.pool in whole else memory.allocate(b.nbytes) for b in plan.buffers]
    named = {i: (b.pool, b.name) for i, b in enumerate(plan.buffers) if b.pool not in whole}
    for i, name in named.items():
        if name in given:
            memory.write(places[i], given[name])
    for phase in phases:
        rows = [(library.address(step.kernel), [*(places[i] for i in step.buffers), *step.numbers(library.address)],
                 step.units) for step in plan.steps_of(phase)]
        launcher.run(launcher.table(rows))
    made = {name: np.empty(plan.buffers[i].shape, plan.buffers[i].dtype) for i, name in named.items()}
    for i, name in named.items():
        memory.read(places[i], made[name])
    for address in {*whole.values(), *(places[i] for i in named)}:
        memory.release(address)
    return made
