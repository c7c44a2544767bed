"""A compiled plan bound to arrays: the tables of addresses that the runner works through."""
from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mxc.compiler import targets
from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import numpy_dtype, write
from mxc.compiler.plan import Buffer, Refusals, Step, layers_text
from mxc.compiler.system import env
from mxc.runtime import costs, device_array, faults, outside, runner
from mxc.runtime.array import Array
from mxc.runtime.device_array import DeviceArray, DeviceMemory
from mxc.runtime.executor_memory import Memory, PreparedStorage
from mxc.runtime.table_rows import Place, TableRows

if TYPE_CHECKING:
    from mxc.compiler.api import Compiled
    from mxc.compiler.ops.philox import Draws
    from mxc.compiler.targets.protocol import Launcher
    from mxc.runtime import artifact

# A piece of a phase: kernels to run in one go, as a table of the launcher's, or one host step.
Segment = Any
IN_MEMORY = ("arena", "prepared", "status")
NOTHING = PreparedStorage(0, None)  # what plans without prepare steps have
TOLD_BYTES = 1 << 20  # of gradients that are finished before somebody is told: a table's run takes some microseconds


class BoundPlan:
    """`compiled` on the arrays that `find` gives for its buffers (all but those of the pools IN_MEMORY): None for
    one that `rebind` will give.

    is_train: the mode of host steps. prepared: the results of the prepare steps, which were made elsewhere; None where
    this plan runs them. It is made with the memory's lock held; `run` is called in work that writes the memory's
    variable.

    small, brief: for each phase, whether it is small or brief work (see `engine.place`); host steps never are.
    has_hosts: whether there are host steps. draws: whether kernels draw random numbers. states: the variables of the
    auxiliary states that host steps may change. changing: positions of buffers that `rebind` gives other arrays.
    """

    def __init__(self, compiled: Compiled | artifact.StoredCode, find: Callable[[Buffer], Array | None],
                 memory: Memory, is_train: bool = False, prepared: PreparedStorage | None = None,
                 changing: Collection[int] = ()):
        self.compiled, self.plan, self.memory, self.is_train = compiled, compiled.plan, memory, is_train
        self._launcher: Launcher = compiled.library.launcher or runner
        self.arrays = [None if b.pool in IN_MEMORY else find(b) for b in self.plan.buffers]
        self._device = self._launcher.memory  # None: the host's
        self._statuses = np.zeros(self.plan.status_bytes // faults.STATUS, np.int64)
        self._own_statuses = DeviceMemory(self.plan.status_bytes, memory.context, "in statuses of kernels") if (
            self._device is not None and self.plan.status_bytes) else None
        # On a GPU a program's own functions raise nothing; what is refused there has to be waited for.
        self._raising = {phase: found for phase in ("prepare", "forward", "backward")
                         if (found := [each for each in faults.raising(self.plan, self.plan.steps_of(phase))
                                       if self._device is None or isinstance(each.faults, Refusals)])}
        self._sent: dict[int, list[tuple[int, bool]]] = {}  # of tables, by id: what they read and write there
        self._is_printed = env.debug_level() >= 2
        # for each segment, besides, the positions of the gradients that are told to be finished behind it
        self._tables: dict[tuple[str, bool, bool], list[tuple[Segment, list[int]]]] = {}
        self._calls: dict[str, Callable[[], None]] = {}  # for each phase that is a single table, what runs it
        self._generation = -1
        # where the addresses of changing arrays stand: a table, its row, the argument of that, and what is added
        self._words: dict[int, list[tuple[Any, int, int, int]]] = {i: [] for i in changing}
        preparing = self.plan.steps_of("prepare")
        reads = {i for step in preparing for i in step.reads}
        self._sources = [a.variable for i in sorted(reads) if (a := self.arrays[i]) is not None]
        self._prepares = bool(preparing)
        expected = {phase: costs.of_phase(self.plan, phase) for phase in ("forward", "backward")}
        on_host = self._device is None
        self.small = {phase: on_host and costs.is_small(cost) for phase, cost in expected.items()}
        self.draws = self.plan.draws
        hosts = [step for step in self.plan.steps if step.host is not None]
        self.has_hosts = bool(hosts)
        # A GPU is only told what to do, which takes less than to hand it over; a host step waits for it.
        self.brief = {phase: costs.is_brief(cost) if on_host else not self.has_hosts
                      for phase, cost in expected.items()}
        self.states = [a.variable for i in {i for step in hosts for i in step.buffers}
                       if (a := self.arrays[i]) is not None and self.plan.buffers[i].pool == "aux"]
        self._prepared = prepared or (memory.prepared_storage(self._preparation(), self.plan.prepared_bytes)
                                      if self._prepares else NOTHING)

    def array_of(self, pool: str, name: str) -> Array | None:
        """The array bound to the buffer of that pool and name; None when the plan has no such buffer."""
        for buffer, array in zip(self.plan.buffers, self.arrays, strict=True):
            if buffer.pool == pool and buffer.name == name:
                return array
        return None

    def names(self, pool: str) -> list[str]:
        """The names of the plan's buffers in a pool."""
        return [b.name for b in self.plan.buffers if b.pool == pool]

    def _preparation(self) -> tuple:
        """A key of what the prepare steps do: equal for plans of relatives that prepare the same arrays in the same
        way. Host steps are never equal to those of another plan."""
        places: list[Hashable] = [(b.pool, b.offset if a is None else a.address)
                                  for b, a in zip(self.plan.buffers, self.arrays, strict=True)]
        for i, buffer in enumerate(self.plan.buffers):
            if buffer.pool == "arena":  # where it lies there differs from plan to plan; who wrote it says what it is
                places[i] = buffer.pool
        made = []
        for number, step in enumerate(self.plan.steps_of("prepare")):
            buffers = tuple(places[i] for i in step.buffers)
            made.append((step.kernel or (id(self.plan), step.host), step.values, buffers))
            for slot, i in enumerate(step.buffers):
                if i in step.writes and self.plan.buffers[i].pool == "arena":
                    places[i] = number, slot
        return tuple(made)

    def run(self, phase: str, draw: tuple[int, int]) -> None:
        """Run one phase; "forward" runs "prepare" first when an array that it reads may have changed.

        draw: seed and offset of the numbers that nodes which Python runs draw.
        Raises MXNetError for what a function of the program's own raises, and inside of a host step of a run in the
        same memory, which this one would overwrite.
        """
        self._reserve()
        if self._prepares and phase == "forward":
            self._prepare(draw)
        call = self._calls.get(phase)
        if call is not None and runner.observer is None and not (outside.listeners and phase == "backward"):
            self._statuses[:] = 0
            call()
            if phase in self._raising:
                faults.check(self._raising[phase], self._statuses, self.compiled)
        else:
            self._run_segments(phase, draw)

    def prepared_values(self) -> dict[int, np.ndarray]:
        """What the prepare steps make of the arrays as they are now and other steps read: by the position in
        Plan.buffers. Call it as `run`, in work that writes the memory's variable. The arrays are views of the plan's
        memory."""
        self._reserve()
        self._prepare((0, 0))
        read = self.plan.read_in_runs
        return {i: self._memory_of(i) for i in sorted(read) if self.plan.buffers[i].pool == "prepared"}

    def settle(self, names: Collection[str]) -> set[str]:
        """Run the prepare steps for the last time, and let go of the arrays of these names, arguments and auxiliary
        states, that no other step reads. Nobody changes them from then on. Returns their names. Call it as `run`."""
        self._reserve()
        self._prepare((0, 0))
        if self._prepares and self._prepared.seen is None:
            return set()  # memory of a parameter may change unseen: it is prepared in each run
        self._prepares, self._sources = False, []
        self._tables = {key: table for key, table in self._tables.items() if key[0] != "prepare"}
        given = {i: b.name for i, b in enumerate(self.plan.buffers) if b.pool in ("argument", "aux")}
        gone = {*names} - {given[i] for i in self.plan.read_in_runs if i in given}
        for i, name in given.items():
            if name in gone:
                self.arrays[i] = None
        return gone

    def _reserve(self) -> None:
        memory = self.memory
        if memory.is_running:
            memory.refuse()
        if self._generation != memory.generation:
            memory.reserve(self.plan.arena_bytes, self.plan.scratch_bytes)
            self._tables, self._calls, self._generation, self._sent = {}, {}, memory.generation, {}
            self._words = {i: [] for i in self._words}

    def rebind(self, arrays: Mapping[int, Array]) -> None:
        """Put arrays of the same shapes and dtypes in the places of those at these positions, which are `changing`.

        To be called as `run`.
        """
        for position, array in arrays.items():
            self.arrays[position] = array
            address = array.address
            for table, row, argument, offset in self._words[position]:
                self._launcher.put(table, row, argument, address + offset)

    def _prepare(self, draw: tuple[int, int]) -> None:
        """Run the prepare steps if an array that they read may have changed."""
        seen, versions = self._prepared.seen, [v.version for v in self._sources]
        if seen is None or seen != versions:
            self._run_segments("prepare", draw)
            self._prepared.seen = None if any(v.volatile for v in self._sources) else versions

    def _run_segments(self, phase: str, draw: tuple[int, int]) -> None:
        steps, observer = self.plan.steps_of(phase), runner.observer
        is_single = self._is_printed or observer is not None  # each kernel is a table of its own, to be timed
        key = phase, is_single, bool(outside.listeners) and phase == "backward"
        if key not in self._tables:
            segments = self._tables[key] = self._segments(steps, is_single, self._finished(steps) if key[2] else {})
            whole = len(segments) == 1 and not isinstance(segments[0][0], Step) and not any(key[1:])
            if whole and self._device is None:
                self._calls[phase] = self._launcher.bound(segments[0][0], self.small.get(phase, False))
        rng: Draws | None = None
        if self.has_hosts:
            from mxc.compiler.ops.philox import Draws  # only now: most plans need no operators

            rng = Draws(*draw)
        raising, own = self._raising.get(phase, ()), self._own_statuses
        self._statuses[:] = 0
        if own is not None and raising:
            own.memory.clear(own.address, own.nbytes)
        names = self.compiled.names if is_single else ()
        for position, (segment, finished) in enumerate(self._tables[key]):
            start = time.perf_counter_ns()
            if isinstance(segment, Step):
                self._check(raising)
                self._run_host(segment, rng)
            else:
                self._run_table(segment)
            if finished:
                outside.announce([a.variable for i in finished if (a := self.arrays[i]) is not None])
            if is_single:
                if self._device is not None:
                    targets.gpus().wait()
                end, step = time.perf_counter_ns(), steps[position]
                moved = costs.moved(self.plan, step)
                layers = step.layers(names)
                if observer is not None:
                    observer(step, layers, moved, start, end)
                if self._is_printed:
                    print(_trace(step, layers, moved, (end - start) / 1e9), file=sys.stderr)
        self._check(raising)

    def _check(self, raising: Sequence[faults.Raising]) -> None:
        """Raise what kernels have refused so far in this run."""
        if raising and self._own_statuses is not None:
            self._own_statuses.memory.read(self._own_statuses.address, self._statuses)
        faults.check(raising, self._statuses, self.compiled)

    def _run_table(self, table: Any) -> None:
        if self._device is None:
            self._launcher.run(table)
            return
        used = [(cast(DeviceArray, self.arrays[place]), writes) for place, writes in self._sent[id(table)]]
        device_array.run(self._launcher, table, used)

    def _segments(self, steps: Sequence[Step], single: bool,
                  finished: Mapping[int, list[int]]) -> list[tuple[Segment, list[int]]]:
        """The steps as tables of consecutive kernels, with host steps between them. single: a table for each kernel.
        finished: see `_finished`; a table ends where something is."""
        segments: list[tuple[Segment, list[int]]] = []
        run: list[Step] = []
        for i, step in enumerate(steps):
            done = finished.get(i, [])
            if step.host is not None:
                if run:
                    segments.append((self._table(run), []))
                    run = []
                segments.append((step, done))
            else:
                run.append(step)
                if single or done:
                    segments.append((self._table(run), done))
                    run = []
        if run:
            segments.append((self._table(run), []))
        return segments

    def _finished(self, steps: Sequence[Step]) -> dict[int, list[int]]:
        """Behind which of the steps which gradients are told to be finished: at least TOLD_BYTES of them together. A
        gradient whose memory another buffer shares is finished with the run."""
        last = {i: number for number, step in enumerate(steps) for i in step.writes}
        arrays = {i: a for i, a in enumerate(self.arrays) if a is not None}
        shared = Counter(a.variable for a in arrays.values())
        found, waiting, nbytes = dict[int, list[int]](), list[int](), 0
        gradients = [i for i in last if self.plan.buffers[i].pool == "gradient" and i in arrays]
        for i in sorted(gradients, key=last.__getitem__):
            if shared[arrays[i].variable] > 1:
                continue
            if nbytes >= TOLD_BYTES and last[i] > last[waiting[-1]]:
                found[last[waiting[-1]]], waiting, nbytes = waiting, [], 0
            waiting.append(i)
            nbytes += arrays[i].nbytes
        return found

    def _table(self, steps: Sequence[Step]) -> Any:
        made = TableRows(self.compiled.library.address, self._words.keys())
        made.add(steps, lambda position: Place(self._address(position), position))
        table = self._launcher.table(made.rows, self.memory.scratch, self.memory.scratch_stride)
        for position, row, argument, offset in made.words:
            self._words[position].append((table, row, argument, offset))
        if self._device is not None:
            used = {i: False for step in steps for i in step.buffers} | {i: True for step in steps for i in step.writes}
            self._sent[id(table)] = [(i, writes) for i, writes in used.items()
                                     if self.plan.buffers[i].pool not in IN_MEMORY]
        return table

    def _address(self, position: int) -> int:
        array, buffer = self.arrays[position], self.plan.buffers[position]
        if array is not None:
            return array.address
        if buffer.pool == "arena":
            return self.memory.arena + buffer.offset
        if self._own_statuses is not None and buffer.pool == "status":
            return self._own_statuses.address + buffer.offset
        if buffer.pool == "status":
            return self._statuses.ctypes.data + buffer.offset
        return self._prepared.address + buffer.offset

    def _run_host(self, step: Step, rng: Draws | None) -> None:
        """Run a host step. Its buffers are the node's inputs, then the outputs; where an input is a view of a buffer,
        the buffer has another shape than the input.

        Raises MXNetError, naming the node, whatever the node raises.
        """
        assert step.host is not None
        from mxc.compiler.graph.graph import Entry
        from mxc.compiler.targets.reference.interpreter import evaluate

        graph = self.compiled.graph
        node = graph.nodes[step.host]
        entries = [*node.inputs, *(Entry(node, i) for i in range(node.num_outputs))]
        memory = [self._memory_of(i) for i in step.buffers]
        if [m.size for m in memory] != [math.prod(graph.shape(e)) for e in entries]:
            raise MXNetError(f"node {node.name!r}: its operator has other inputs or outputs than when it was compiled; "
                             "the program's operator of that name was another one then. Compile the model again")
        values = [m.reshape(graph.shape(e)) for m, e in zip(memory, entries, strict=True)]
        inputs, outputs = values[:len(node.inputs)], values[len(node.inputs):]
        self.memory.is_running = True
        try:
            with self.memory.context:  # what Python makes there is on the device that the run is on
                results = evaluate(node, inputs, self.is_train, rng)
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"node {node.name!r}: {type(error).__name__}: {error}") from error
        finally:
            self.memory.is_running = False
        for target, value in zip(outputs, results, strict=True):
            write(target, value)
        first = len(node.inputs)
        for position, values_there in zip(step.buffers[first:], memory[first:], strict=True):
            if self._device is not None and self.arrays[position] is None:
                self._device.write(self._address(position), values_there)

    def _memory_of(self, position: int) -> np.ndarray:
        array, buffer = self.arrays[position], self.plan.buffers[position]
        if array is not None:
            return array.memory
        dtype = numpy_dtype(buffer.dtype)
        if self._device is not None:
            values = np.empty(buffer.shape, dtype)
            self._device.read(self._address(position), values)
            return values
        interface = {"shape": (buffer.nbytes // dtype.itemsize,), "typestr": f"|V{dtype.itemsize}", "version": 3,
                     "data": (self._address(position), False)}
        return np.asarray(type("Memory", (), {"__array_interface__": interface})()).view(dtype).reshape(buffer.shape)


def _trace(step: Step, layers: Sequence[str], moved: int, seconds: float) -> str:
    """The line of MXC_DEBUG=2 for a step: where it is, operators, layers, microseconds, and GFLOP/s or GB/s."""
    rate = f"{step.flops / seconds / 1e9:.1f} GFLOP/s" if step.flops else f"{moved / seconds / 1e9:.1f} GB/s"
    return f"mxc: {step.phase} {step.label} of {layers_text(layers)}: {seconds * 1e6:.0f} us, {rate}"
