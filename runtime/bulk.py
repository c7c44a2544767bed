"""Bulks: large operators that a program calls one by one, outside of recording and training, gathered until somebody
needs what they make. What comes again and again, as the predictions of a model that is not hybridised, then runs as one
plan, in which operators share kernels and values that nobody holds any more are never written.

A bulk is one piece of the engine's work that grows. It runs when other work needs an array that it makes, or writes one
that it reads, when a thread waits for anything, or when the program has called no operator for some milliseconds. What
it reads has no work pending when it is added, so a bulk waits for nothing, and no error of other work is its own.

A value that no operator of the bulk reads is computed though nobody holds it, for programs that are timed, or run once
to warm up, drop their results.
"""
from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops import table
from mxc.compiler.system.forks import Lock
from mxc.runtime import engine, tape
from mxc.runtime.array import Array
from mxc.runtime.cached_op import CachedOp, Pools
from mxc.runtime.context import Context
from mxc.runtime.eager import Specialization
from mxc.runtime.engine_work import GrowingWork
from mxc.runtime.gradient_plans import RUNS
from mxc.runtime.storage import MemoryBlock

MOST_STEPS = 1024  # operators of a bulk: more than those of the largest networks of the model zoos
STRUCTURES_KEPT = 32  # of a network: one for each set of shapes that it is called with, and their parts

# Where a step finds an input: ~n is leaf n, v >= 0 the value v; with a shape it is that value in another shape.
Source = int | tuple[int, tuple[int, ...]]
Owner = weakref.ref[MemoryBlock | np.ndarray]
Call = tuple[Specialization, tuple[Source, ...]]
# A call, the leaves that no step before it reads, and the owners of what it makes.
Step = tuple[Call, Sequence[Array], Sequence[Owner]]


class _Thread(threading.local):
    """bulk: the one that this thread adds to."""

    bulk: Bulk | None = None


_thread = _Thread()


def add(special: Specialization, inputs: Sequence[Array]) -> list[Array] | None:
    """The visible outputs of an operator that may be gathered (`can_gather`), which this thread's bulk will make. None
    where it is to run by itself: it neither is long nor reads what the bulk makes, or something is in its way."""
    bulk = _thread.bulk
    if bulk is not None and bulk.work.is_open:
        return bulk.add(special, inputs)
    if not special.is_long:
        return None
    bulk = Bulk(inputs[0].context.computing)
    if not engine.begin(bulk.work):
        return None
    _thread.bulk = bulk
    return bulk.add(special, inputs)


class Bulk:
    """Operators of one thread on one device. Values are what they make, numbered in order; leaves are the arrays that
    they read and that others made. All that a run needs is in the work's steps, since a run may begin while the thread
    is about to add one."""

    def __init__(self, context: Context):
        self.context = context
        self.work = GrowingWork("operators")
        self.work.call = partial(_run, self.work, context)
        self._leaves: dict[int, int] = {}  # their numbers by id: while the bulk is open they are alive
        # of each variable the value, and its address, bytes, shape and dtype
        self._places: dict[engine.Variable, tuple[int, int, int, tuple[int, ...], str]] = {}

    def add(self, special: Specialization, inputs: Sequence[Array]) -> list[Array] | None:
        """See `add`."""
        if inputs[0].context is not self.context and inputs[0].context.computing != self.context:
            return None
        sources: list[Source] = []
        leaves: list[Array] = []
        reads: list[engine.Variable] = []
        numbers, is_related = self._leaves, special.is_long
        for array in inputs:
            place = self._places.get(array.variable)
            if place is not None:
                value, address, nbytes, shape, dtype = place
                memory = array.memory
                if array.dtype != dtype or memory.nbytes != nbytes or array.address != address:
                    return None  # a part of it
                is_related = True
                sources.append(value if memory.shape == shape else (value, memory.shape))
                continue
            number = numbers.get(id(array), -1)
            if number < 0:
                number = len(numbers) + next((i for i, leaf in enumerate(leaves) if leaf is array), len(leaves))
                if number == len(numbers) + len(leaves):
                    leaves.append(array)
            sources.append(~number)
            reads.append(array.variable)
        if not is_related:
            return None
        results = [Array.empty(shape, dtype, self.context) for shape, dtype in special.results]
        variables = [result.variable for result in results]
        step: Step = (special, tuple(sources)), leaves, [weakref.ref(result.owner) for result in results]
        if not engine.extend(self.work, step, reads, variables):
            return None
        for leaf in leaves:
            numbers[id(leaf)] = len(numbers)
        for result in results:
            memory = result.memory
            self._places[result.variable] = len(self._places), result.address, memory.nbytes, memory.shape, result.dtype
        if len(self.work.steps) >= MOST_STEPS:
            engine.release(self.work)
        return results


def _run(work: GrowingWork, context: Context) -> None:
    """Make the values that somebody holds, and those that no step reads. After an interrupt it may be called again."""
    steps: Sequence[Step] = work.steps
    calls = tuple([call for call, _, _ in steps])
    leaves = [leaf for _, found, _ in steps for leaf in found]
    owners = [ref() for _, _, refs in steps for ref in refs]
    facts = [fact for (special, _), _, _ in steps for fact in special.results]
    read = {_number(source) for _, sources in calls for source in sources}
    targets = {v: _on(owner, *fact, context) for v, (owner, fact) in enumerate(zip(owners, facts, strict=True))
               if owner is not None or v not in read}
    if len(steps) > 1:
        structure = _network_of(leaves, calls).structure((calls, tuple(targets)))
        if structure.is_due and structure.run(leaves, calls, targets):
            return
    _one_by_one(calls, leaves, targets, context)


def _number(source: Source) -> int:
    """The source without a shape of its own."""
    return source if isinstance(source, int) else source[0]


def _parameters(special: Specialization, sources: Sequence[Source]) -> Iterator[int]:
    """The leaves that are parameters and states of an operator."""
    for position in special.learned:
        source = sources[position]
        if isinstance(source, int) and source < 0:
            yield ~source


def _on(owner: MemoryBlock | np.ndarray | None, shape: tuple[int, ...], dtype: str, context: Context) -> Array:
    """An array on the memory that an owner has; where it is gone, in memory of its own."""
    if owner is None:
        return Array.empty(shape, dtype, context)
    memory = owner if isinstance(owner, np.ndarray) else np.ndarray(shape, dtype, np.asarray(owner))
    return Array(memory, context, engine.Variable(), dtype)


def _one_by_one(calls: Sequence[Call], leaves: Sequence[Array], targets: Mapping[int, Array], context: Context) -> None:
    """Make the values as without a bulk."""
    last = {_number(source): n for n, (_, sources) in enumerate(calls) for source in sources}
    values, first = dict(targets), 0
    for number, (special, sources) in enumerate(calls):
        inputs = [_at(values, leaves, source) for source in sources]
        results = [targets[v] if v in targets else Array.empty(*fact, context)
                   for v, fact in enumerate(special.results, first)]
        values.update(enumerate(results, first))
        first += len(results)
        steady = special.steady.find(inputs) if special.steady is not None else None
        code, prepared = steady or (special.code(), None)
        special.compute(inputs, results, code, (0, 0), prepared)
        for source in sources:
            if last[_number(source)] == number:
                values.pop(_number(source), None)


def _at(values: Mapping[int, Array], leaves: Sequence[Array], source: Source) -> Array:
    if isinstance(source, tuple):
        return values[source[0]].reshape(source[1])
    return values[source] if source >= 0 else leaves[~source]


class _Network:
    """The bulks whose first parameter is the same array, which goes with it: their structures share memory."""

    def __init__(self) -> None:
        self.pools: Pools = {}
        self._lock = Lock()
        self._structures: OrderedDict[Hashable, _Structure] = OrderedDict()

    def structure(self, key: Hashable) -> _Structure:
        """What is known of bulks of these steps, of which the same values are needed."""
        with self._lock:
            found = self._structures.get(key)
            if found is None:
                found = self._structures[key] = _Structure(self.pools)
                if len(self._structures) > STRUCTURES_KEPT:
                    self._structures.popitem(last=False)
                    self.pools.clear()  # what is bound there of the one that goes is not found otherwise
            self._structures.move_to_end(key)
            return found


_networks: weakref.WeakKeyDictionary[Array, _Network] = weakref.WeakKeyDictionary()
_without_parameters = _Network()
_lock = Lock()


def _network_of(leaves: Sequence[Array], calls: Sequence[Call]) -> _Network:
    first = next((leaf for call in calls for leaf in _parameters(*call)), None)
    if first is None:
        return _without_parameters
    with _lock:
        return _networks.setdefault(leaves[first], _Network())


class _Structure:
    """Operators that ran. Its plan keeps arrays of its own on the parameters' memory, so the program's may go."""

    def __init__(self, pools: Pools):
        self._pools, self._runs, self._lock = pools, 0, Lock()
        self._op: CachedOp | None = None
        self._is_refused = False
        self._learned: dict[int, Array | None] = {}  # by leaf; None: none was given yet

    @property
    def is_due(self) -> bool:
        """Whether it has run often enough, this time included, to be compiled, and can be."""
        self._runs += 1
        return self._runs > RUNS and not self._is_refused

    def run(self, leaves: Sequence[Array], calls: Sequence[Call], targets: Mapping[int, Array]) -> bool:
        """Write the needed values to `targets`. False, with nothing done, where no plan can be made."""
        with self._lock:  # threads may run it at once
            if self._op is None:
                self._op = self._made(calls, list(targets), len(leaves))
                for special, sources in calls:  # what was made of the parameters for each operator by itself
                    first = next(_parameters(special, sources), None)
                    if special.steady is not None and first is not None:
                        special.steady.forget(leaves[first])
            arrays = [self._own(number, leaf) for number, leaf in enumerate(leaves)]
        try:
            self._op.run(arrays, list(targets.values()))
        except MXNetError:
            self._is_refused = True
        return not self._is_refused

    def _own(self, number: int, leaf: Array) -> Array:
        """The array to bind for a leaf: for a parameter the same one as long as that is in the same memory."""
        if number not in self._learned:
            return leaf
        own = self._learned[number]
        if own is None or own.variable is not leaf.variable or own.address != leaf.address:
            own = self._learned[number] = tape.plain(leaf)
        return own

    def _made(self, calls: Sequence[Call], needed: Sequence[int], count: int) -> CachedOp:
        variables = [Node(None, f"leaf{number}") for number in range(count)]
        values: list[Entry] = []
        reshape = table.get("Reshape")

        def at(source: Source) -> Entry:
            if isinstance(source, int):
                return values[source] if source >= 0 else Entry(variables[~source], 0)
            params = reshape.make_params({"shape": source[1]})
            return Entry(Node(reshape, f"shape{len(values)}_{source[0]}", reshape.attrs_of(params), params,
                              [values[source[0]]]))

        for number, (special, sources) in enumerate(calls):
            op, params = special.op, special.params
            node = Node(op, f"{op.name}{number}", op.attrs_of(params), params, [at(source) for source in sources])
            values += [Entry(node, i) for i in range(len(special.results))]
            self._learned.update(dict.fromkeys(_parameters(special, sources)))
        names = [node.name for node in variables]
        return CachedOp(Graph([values[v] for v in needed]), names, [names[number] for number in self._learned],
                        "operators", self._pools)
