"""From the launches of a loop's body to the steps of the loop (`plan.Loop`).

A slice of the data, or of a stacked output, is a part of that array which moves on with every round. A state's home is
the loop's output for it: its first value is copied there. The kernel that makes the new value writes it home at once
where nothing reads the old value any more, or only at the very place that it writes (`can_share`); else it writes it
aside, and a copy at the end of the round brings it home.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mxc.compiler.graph.loop import LoopForm
from mxc.compiler.graph.phases import PREPARE
from mxc.compiler.kernel.ir import FunctionKernel, Kernel, LoopKernel, Store, axis, const
from mxc.compiler.lowering.copy_kernels import copy_kernel
from mxc.compiler.lowering.launches import Launch, Storage, can_share
from mxc.compiler.lowering.plan_memory import plan_memory
from mxc.compiler.plan import Loop, Plan

if TYPE_CHECKING:
    from mxc.compiler.lowering.stage import Program
    from mxc.compiler.targets.protocol import KernelTarget


def plan_loop(form: LoopForm, body: Program, test: Program | None, target: KernelTarget,
              ) -> tuple[Loop, dict[str, Kernel]] | None:
    """The steps of a loop and its kernels by key; None where Python has a part in it, or a test draws random numbers.

    body, test: after all stages but the memory plan; the test's output is an int32.
    """
    programs = [body] if test is None else [test, body]
    launches = [launch for program in programs for launch in program.launches]
    if any((launch.kernel is None and launch.loop is None) or isinstance(launch.kernel, FunctionKernel)
           for launch in launches):  # a function sets its status in every round, and so would hide an earlier fault
        return None
    if test is not None and any(s.pool == "seed" for launch in test.launches for s in launch.storages):
        return None
    return _LoopPlanning(form, body, test, target).run()


class _LoopPlanning:
    def __init__(self, form: LoopForm, body: Program, test: Program | None, target: KernelTarget):
        self.form, self.body, self.test, self.target = form, body, test, target
        self.outside: dict[tuple[int, bool], Storage] = {}
        self.new: dict[Storage, Storage] = {}  # storage of the body or the test -> of the loop
        self.places = {node.name: i for i, node in enumerate(form.variables)}
        self.seed = Storage("prepared", "int64", (2,))
        self.arrays = len(form.variables) + form.stacks + form.states
        self.statuses: dict[Storage, int] = {}

    def run(self) -> tuple[Loop, dict[str, Kernel]]:
        form, first = self.form, len(self.form.variables)
        once = [*self._of(self.body, True), *(self._of(self.test, True) if self.test is not None else [])]
        homes = []
        for i in range(form.states):
            entry = form.body.outputs[form.stacks + i]
            facts = form.body.dtype(entry), form.body.shape(entry)
            homes.append(self._outside(first + form.stacks + i, *facts))
            once.append(_copy(self._outside(form.data + i, *facts), homes[-1]))
        for i, storage in enumerate(self.body.outputs[:form.stacks]):
            self.new[storage] = self._outside(first + i, storage.dtype, storage.shape, moves=True)
            if form.test is not None:
                whole = self._outside(first + i, storage.dtype, (form.length, *storage.shape))
                once.append(Launch(PREPARE, "zeros", _zeros(whole), [whole]))
        if form.streams:
            once.append(_copy(self._outside(first - 1, "int64", (2,)), self.seed))
        copies = []
        for state, (home, made) in enumerate(zip(homes, self.body.outputs[form.stacks:], strict=True)):
            if self._can_go_home(form.variables[form.data + state].name, made):
                self.new[made] = home
            else:
                self.new[made] = Storage("arena", made.dtype, made.shape)
                copies.append(_copy(self.new[made], home))
        flag = None
        tests: list[Launch] = []
        if self.test is not None:
            flag = self.new[self.test.outputs[0]] = Storage("arena", "int32", (1,))
            tests = self._of(self.test, False)
        launches = [self._moved(each) for each in (*once, *tests, *self._of(self.body, False), *copies)]
        return self._planned(launches, len(once), len(tests), flag)

    @staticmethod
    def _of(program: Program, prepare: bool) -> list[Launch]:
        return [launch for launch in program.launches if (launch.phase == PREPARE) == prepare]

    def _outside(self, position: int, dtype: str, shape: tuple[int, ...], moves: bool = False) -> Storage:
        """The step's buffer at that position, or where it `moves`, what a round has of it."""
        key = position, moves
        if key not in self.outside:
            step = Storage("", dtype, shape).nbytes * moves
            start = step * (self.form.length - 1) if self.form.is_reversed else 0
            self.outside[key] = Storage("outside", dtype, shape,
                                        f"{position} {start} {-step if self.form.is_reversed else step}")
        return self.outside[key]

    def _moved(self, launch: Launch) -> Launch:
        return replace(launch, storages=[self._storage(s) for s in launch.storages])

    def _storage(self, storage: Storage) -> Storage:
        if storage in self.new:
            return self.new[storage]
        if storage.pool == "seed":
            return self.seed
        if storage.pool == "status":
            place = self.statuses.setdefault(storage, len(self.statuses))
            return self._outside(self.arrays + place, storage.dtype, storage.shape)
        if storage.pool == "argument":
            form, position = self.form, self.places[storage.name]
            if form.data <= position < form.data + form.states:
                home = len(form.variables) + form.stacks + position - form.data
                return self._outside(home, storage.dtype, storage.shape)
            return self._outside(position, storage.dtype, storage.shape, position < form.data)
        return storage

    def _can_go_home(self, state: str, made: Storage) -> bool:
        """Whether the new value of a state may be written over the old one."""
        launches = self._of(self.body, False)
        writers = [i for i, launch in enumerate(launches) if made in launch.writes]
        readers = [i for i, launch in enumerate(launches)
                   if any(s.pool == "argument" and s.name == state for s in launch.reads)]
        if not readers or readers[-1] < writers[0]:
            return True
        if len(writers) > 1 or readers[-1] > writers[0]:
            return False
        launch = launches[writers[0]]
        old = next(s for s in launch.reads if s.pool == "argument" and s.name == state)
        return can_share(launch, old, made)

    def _planned(self, launches: Sequence[Launch], once: int, tests: int,
                 flag: Storage | None) -> tuple[Loop, dict[str, Kernel]]:
        outputs = [s for s in (flag, self.seed if self.form.streams else None) if s is not None]
        plan = plan_memory(launches, outputs, self.target)
        moves = []
        for i, buffer in enumerate(plan.buffers):
            move = 0
            if buffer.pool == "outside":
                name, start, step = buffer.name.split()
                buffer, move = buffer._replace(name=name, offset=int(start)), int(step)
            elif buffer.pool == "prepared":
                buffer = buffer._replace(pool="arena", offset=plan.arena_bytes + buffer.offset)
            plan.buffers[i] = buffer
            moves.append(move)
        plan.arena_bytes, plan.prepared_bytes = plan.arena_bytes + plan.prepared_bytes, 0
        # a key is a seed and, 8 bytes on, an offset, from which the streams of a round count
        counts = ((plan.outputs[-1], 8, self.form.streams),) if self.form.streams else ()
        loop = Loop(plan, tuple(moves), self.form.length, once, tests, plan.outputs[0] if flag is not None else -1,
                    self.form.stops, counts, len(self.statuses))
        return loop, kernels_of(plan, launches)


def kernels_of(plan: Plan, launches: Sequence[Launch]) -> dict[str, Kernel]:
    """The kernels of launches by key. plan: the plan of these."""
    kernels: dict[str, Kernel] = {}
    for step, launch in zip(plan.steps, launches, strict=True):
        kernels |= dict(zip([step.kernel, *(key for _, key in step.calls)], launch.kernels, strict=False))
    return kernels


def _copy(source: Storage, target: Storage) -> Launch:
    return Launch(PREPARE, "copy", copy_kernel(target.dtype, target.shape, "write"), [source, target])


def _zeros(whole: Storage) -> LoopKernel:
    store = Store(0, axis(0), const(0, whole.dtype))
    return LoopKernel("zeros", (whole.dtype,), (math.prod(whole.shape),), (), (), (store,))
