"""What executors that were made from each other by `reshape` share: the arena, the threads' scratch memory, locks, and
what was compiled.

Such executors are relatives: they run one at a time, in memory that is large enough for each of them. The engine keeps
their runs in the program's order, as writes of one variable.
"""
from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NoReturn

from mxc.compiler.error import MXNetError
from mxc.compiler.system.forks import Lock
from mxc.runtime import engine, runner
from mxc.runtime.context import Context
from mxc.runtime.device_array import DeviceMemory
from mxc.runtime.storage import MemoryBlock

if TYPE_CHECKING:
    from mxc.compiler.api import Compiled

COMPILED_KEPT = 32  # compiled graphs, one for each shape and mode, that relatives remember


class PreparedStorage:
    """Memory that prepare steps fill; it lives as long as `owner`. seen: the versions that the arrays had which the
    steps read; None where it must be filled (again), because it never was, or because an array's memory may change
    unseen."""

    def __init__(self, address: int, owner: object, seen: list[int] | None = None):
        self.address, self.owner, self.seen = address, owner, seen


class Memory:
    """The memory of relatives. Calls of executors use it with `lock` held, runs use it in work that writes `variable`.

    A call that must wait does so without `lock`, for the work that it waits for may need it: a custom operator may run
    an executor. Such a run is a part of the operator's work, so the engine does not keep it apart from a queued run in
    the same memory. Therefore both hold `turn`, which is taken before `lock`.

    generation: a number that changes whenever the addresses do. holder: says whose values will be in the arena when all
    pushed work is done, so that backward knows whether it finds those of its forward run: any object that stands for a
    run, None for nobody's; whoever pushes a run sets it. is_running: whether a run is in a host step.
    """

    def __init__(self, context: Context):
        self.context, self.lock, self.turn = context, Lock(), Lock()
        self.variable, self.is_running = engine.Variable(), False
        self.generation, self.holder = 0, None  # type: tuple[int, object]
        self._arena: MemoryBlock | DeviceMemory | None = None
        self._scratch: MemoryBlock | DeviceMemory | None = None
        self.scratch_stride = 0
        self._compiled: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._prepared: weakref.WeakValueDictionary[Hashable, PreparedStorage] = weakref.WeakValueDictionary()

    def refuse(self) -> NoReturn:
        """Raises MXNetError: for a run in the middle of a host step of another in this memory."""
        raise MXNetError("an executor cannot run inside of its own run, or of the run of one that it shares memory "
                         "with: bind another one for it")

    @property
    def arena(self) -> int:
        """The arena's address; 0 when nobody needed one."""
        return self._arena.address if self._arena else 0

    @property
    def scratch(self) -> int:
        """The address of the first thread's scratch memory; the next one's is `scratch_stride` further."""
        return self._scratch.address if self._scratch else 0

    @property
    def nbytes(self) -> int:
        """Bytes of arena and scratch memory."""
        return sum(block.nbytes for block in (self._arena, self._scratch) if block)

    def reserve(self, arena: int, scratch: int) -> None:
        """Have at least so many bytes of arena, and of scratch memory for each thread. What they held may be lost."""
        if arena > (self._arena.nbytes if self._arena else 0):
            self._arena = None  # before the larger one is made: the two need not be there at once
            self._arena = self._block(arena, "in a program's arena")
            self.generation += 1
        if scratch > self.scratch_stride:
            self._scratch, self.scratch_stride = None, 0
            threads = runner.num_threads() if self.context.gpu_number < 0 else 1  # a GPU's is of all its threads
            self._scratch = self._block(scratch * threads, "in the scratch memory of routines")
            self.scratch_stride = scratch
            self.generation += 1

    def _block(self, nbytes: int, holder: str) -> MemoryBlock | DeviceMemory:
        return MemoryBlock(nbytes, self.context) if self.context.gpu_number < 0 else (
            DeviceMemory(nbytes, self.context, holder))

    def prepared_storage(self, key: Hashable, nbytes: int) -> PreparedStorage:
        """The memory for prepare steps, `nbytes` of it. Plans whose prepare steps do the same have equal keys and share
        it; it goes when no plan uses it any more."""
        found = self._prepared.get(key)
        if found is None:
            block = self._block(nbytes, "in prepared parameters")
            found = self._prepared[key] = PreparedStorage(block.address, block)
        return found

    def compiled(self, key: Hashable, make: Callable[[], Compiled]) -> Compiled:
        """What `make` gives, remembered under `key`."""
        found = self._compiled.get(key)
        if found is None:
            start = time.perf_counter_ns()
            found = self._compiled[key] = make()
            if runner.observer is not None:
                from mxc.runtime import profiler

                profiler.span(profiler.COMPILE, "compile", start, time.perf_counter_ns(), {"nodes": found.plan.nodes})
            if len(self._compiled) > COMPILED_KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return found
