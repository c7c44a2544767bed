"""The lowered program: launches of kernels over storages, before the storages have addresses."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from mxc.compiler.graph.graph import NOWHERE, Origin, Shape
from mxc.compiler.graph.phases import BACKWARD, FORWARD, PREPARE
from mxc.compiler.kernel.canonical import REMEMBERED
from mxc.compiler.kernel.ir import (
    CallKernel,
    ChainKernel,
    FunctionKernel,
    Kernel,
    LoopKernel,
    RoutineKernel,
    Store,
    Value,
    walk,
)
from mxc.compiler.kernel.routines import spec
from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.plan import Loop

K = TypeVar("K", bound=Kernel)


@dataclass(eq=False)
class Storage:
    """One array in memory. pool, name, node: as in plan.Buffer. Compared by identity."""

    pool: str
    dtype: str
    shape: Shape
    name: str = ""
    node: int | None = None

    @cached_property
    def nbytes(self) -> int:
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize


@dataclass(eq=False)
class Launch:
    """One kernel over storages (in the order of the kernel's buffers), a loop, or a host step. The latter two have no
    kernel: the first `inputs` storages are read, and the others are written. host: of a host step, the node's id.
    origin: the nodes of the model's graph that it came from."""

    phase: str
    label: str
    kernel: Kernel | None
    storages: list[Storage]
    host: int | None = None
    inputs: int = 0
    loop: Loop | None = None
    origin: Origin = NOWHERE
    reads: list[Storage] = field(init=False)
    writes: list[Storage] = field(init=False)

    @property
    def kernels(self) -> list[Kernel]:
        """The launch's kernel, and the kernels that this one calls."""
        if self.kernel is None:
            return []
        return [self.kernel, *(call for call, _ in self.kernel.calls())] if isinstance(self.kernel, ChainKernel) else [
            self.kernel]

    def __post_init__(self) -> None:
        if self.kernel is not None:
            assert len(self.storages) == len(self.kernel.buffers), (self.label, len(self.storages), self.kernel)
            self.reads = [self.storages[i] for i in sorted(self.kernel.reads())]
            self.writes = [self.storages[i] for i in sorted(self.kernel.writes())]
        else:
            self.reads, self.writes = self.storages[:self.inputs], self.storages[self.inputs:]


def can_share(launch: Launch, old: Storage, new: Storage) -> bool:
    """True when the launch may write `new` into the memory of `old`, which it reads for the last time.

    That is so when every load of `old` is at the very index at which `new` is stored, unguarded, and happens before
    that store at each point of the kernel's iteration space; a routine says so itself.
    """
    kernel = launch.kernel
    if kernel is None or isinstance(kernel, ChainKernel | FunctionKernel):
        return False
    if old.nbytes != new.nbytes or numpy_dtype(old.dtype).itemsize != numpy_dtype(new.dtype).itemsize:
        return False
    old_slots = {i for i, s in enumerate(launch.storages) if s is old}
    if isinstance(kernel, RoutineKernel):
        (slot,), declared = [i for i, s in enumerate(launch.storages) if s is new], spec.find(kernel.routine)
        return all(declared.may_overwrite(slot, i) for i in old_slots)
    stores = [s for s in kernel.stores if launch.storages[s.buffer] is new]
    if len(stores) != 1 or old in launch.writes:
        return False
    if isinstance(kernel, CallKernel) and any(slot < kernel.operands for slot in old_slots):
        return False
    store, accesses = stores[0], _accesses(kernel)
    loads = [v for slot in old_slots for v in accesses.loads.get(slot, ())]
    if any(len(v.args) > 1 or v.args[0] is not store.index for v in loads):
        return False
    if isinstance(kernel, LoopKernel) and store not in accesses.sweeping and old_slots & accesses.swept:
        return False  # these loads run over the reduced axes once more, after `store`
    return len(kernel.stores) == 1 or bool(old_slots & accesses.read_for[kernel.stores.index(store)])


@dataclass(frozen=True)
class _Accesses:
    """What a kernel's values load. loads: by buffer. read_for: of each store, the buffers that its value loads.
    sweeping: the stores at every point of domain x reduce. swept: the buffers that these load."""

    loads: Mapping[int, list[Value]]
    read_for: list[frozenset[int]]
    sweeping: list[Store]
    swept: frozenset[int]


@functools.lru_cache(REMEMBERED)  # `can_share` asks for the same kernel with each pair of a read and a written storage
def _accesses(kernel: LoopKernel | CallKernel) -> _Accesses:
    loads: dict[int, list[Value]] = {}
    for v in walk(kernel.roots()):
        if v.op == "load":
            loads.setdefault(int(v.data), []).append(v)
    sweeping = [s for s in kernel.stores if isinstance(kernel, LoopKernel) and _sweeps(kernel, s)]
    return _Accesses(loads, [_loaded([s.value]) for s in kernel.stores], sweeping,
                     _loaded([root for s in sweeping for root in (s.index, s.value)]))


def _loaded(roots: Sequence[Value]) -> frozenset[int]:
    """The buffers that are loaded for `roots`."""
    return frozenset(int(v.data) for v in walk(roots) if v.op == "load")


def _sweeps(kernel: LoopKernel, store: Store) -> bool:
    """True for a store at every point of domain x reduce."""
    return any(v.op == "axis" and v.data in range(len(kernel.domain), len(kernel.domain) + len(kernel.reduce))
               for v in walk([store.index, store.value]))


def by_phase(launches: Sequence[Launch]) -> list[Launch]:
    """`launches` sorted by phase, in the order in which phases run; the launches of one phase keep their order."""
    return [launch for phase in (PREPARE, FORWARD, BACKWARD) for launch in launches if launch.phase == phase]


def divided(launches: Sequence[Launch], kind: type[K],
            parts_of: Callable[[K, Sequence[Storage]], Sequence[tuple[Kernel, list[Storage]]]]) -> list[Launch]:
    """`launches`, where each whose kernel is of this kind is divided: `parts_of` makes the parts of its kernel and
    storages. A launch that stays whole is the very same object."""
    result: list[Launch] = []
    for launch in launches:
        parts = parts_of(launch.kernel, launch.storages) if isinstance(launch.kernel, kind) else ()
        result += [replace(launch, kernel=kernel, storages=storages) for kernel, storages in parts] if len(parts) > 1 \
            else [launch]
    return result


def last_uses(launches: Sequence[Launch]) -> dict[Storage, int]:
    """The position of the last launch that reads or writes each storage."""
    last: dict[Storage, int] = {}
    for position, launch in enumerate(launches):
        for storage in (*launch.reads, *launch.writes):
            last[storage] = position
    return last
