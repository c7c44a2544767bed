"""What the executors of one family share: the arena, the threads' scratch memory, a lock and what was compiled.

Executors made from each other by `reshape` are a family: they run one at a time, in the memory of the largest. The
engine keeps their runs in the program's order, as writes of one variable.
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
from mxc.runtime.storage import Block

if TYPE_CHECKING:
    from mxc.compiler.api import Compiled

COMPILED_KEPT = 32  # how many compiled graphs a family remembers: one per shape and mode


class Prepared:
    """Memory that prepare steps fill, which `owner` keeps. seen: the versions of the arrays that they read then; None:
    it must be filled again, as it never was or an array's memory may change unseen."""

    def __init__(self, address: int, owner: object, seen: list[int] | None = None):
        self.address, self.owner, self.seen = address, owner, seen


class Memory:
    """A family's memory. What a call uses is used with `lock` held, what a run uses in work that writes `variable`.

    A call that must wait does so without `lock`, which work that it waits for may want: a custom operator may run an
    executor. Such a run is a part of the operator's work, so the engine does not keep it from a queued one of the same
    memory: both hold `turn`, which is taken before `lock`.

    generation: changes whenever the addresses do. holder: the run whose values are in the arena when all that was
    pushed is done (any object; None: no run's), set by who pushes. is_running: a run is in a host step.
    """

    def __init__(self, context: Context):
        self.context, self.lock, self.turn = context, Lock(), Lock()
        self.variable, self.is_running = engine.Variable(), False
        self.generation, self.holder = 0, None  # type: tuple[int, object]
        self._arena: Block | None = None
        self._scratch: Block | None = None
        self.scratch_stride = 0
        self._compiled: OrderedDict[Hashable, Compiled] = OrderedDict()
        self._prepared: weakref.WeakValueDictionary[Hashable, Prepared] = weakref.WeakValueDictionary()

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
            self._arena = Block(arena, self.context)
            self.generation += 1
        if scratch > self.scratch_stride:
            self._scratch, self.scratch_stride = None, 0
            self._scratch = Block(scratch * runner.num_threads(), self.context)
            self.scratch_stride = scratch
            self.generation += 1

    def prepared(self, key: Hashable, nbytes: int) -> Prepared:
        """The memory of prepare steps that do the same, as `key` tells, as long as a plan uses it."""
        found = self._prepared.get(key)
        if found is None:
            block = Block(nbytes, self.context)
            found = self._prepared[key] = Prepared(block.address, block)
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
