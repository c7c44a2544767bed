"""Graphs that are called as operators: compiled once for each set of shapes, dtypes and modes, then run as one piece of
work. Hybridised blocks of Gluon are such.

Other than an executor's, every call's outputs are new arrays, and what a recorded call keeps for its gradients is its
own: a call takes one of the op's places (a memory and the plans bound there) and gives it back when nobody can ask for
its gradients any more. So several calls may be recorded before the first backward. The tables of a bound plan keep the
addresses of all arrays that are the same as in the call before; those of the others are written into them.

In the tape a call is one step (`Kept` is what it keeps), whose gradient is the backward part of the same plan. As in an
executor, auxiliary states change in backward. A gradient that is itself recorded is a call of another `CachedOp`, of
the graph of the gradients.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.graph.purity import static_names
from mxc.compiler.ops.operator import InputSpec, Kind, Operator, Params
from mxc.compiler.passes.infer import infer
from mxc.compiler.plan import Buffer
from mxc.compiler.system.forks import Lock
from mxc.runtime import engine, node_calls, random, tape
from mxc.runtime.array import Array, semantics
from mxc.runtime.context import Context, current_context
from mxc.runtime.context import gpu as gpu_context
from mxc.runtime.executor import has_empty_arrays
from mxc.runtime.executor_memory import Memory
from mxc.runtime.executor_plan import BoundPlan

if TYPE_CHECKING:
    from mxc.compiler.api import Compiled

Draws = tuple[tuple[int, int], tuple[int, int]]  # seed and offset: of the kernels, and of what Python runs
Fact = tuple[tuple[int, ...], str]  # shape and dtype
Watch = Callable[[Node, list[Array], list[Array]], None]  # a node, its inputs, its outputs
FORMS_KEPT = 64  # sets of shapes, dtypes and modes that an op remembers
_NONE = Params()


class CachedOp:
    """A graph as an operator on arrays.

    inputs: names of the variables, in the order in which calls give their arrays; one that the graph does not read is
    allowed. learned: those that are parameters of a model: what an inference call makes of these alone, as packed
    weights, is kept from call to call. name: for people. pools: what ops that are never recorded may share.
    Raises MXNetError for a variable of the graph that is not among the inputs.
    """

    def __init__(self, graph: Graph, inputs: Sequence[str], learned: Sequence[str] = (), name: str = "cached_op",
                 pools: Pools | None = None):
        self.graph, self.inputs, self.learned, self.name = graph, tuple(inputs), frozenset(learned), name
        self.read = {node.name for node in graph.variables}
        missing = sorted(self.read.difference(self.inputs))
        if missing:
            raise MXNetError(f"{name}: no array is given for {', '.join(missing)}")
        self._pools: Pools = {} if pools is None else pools
        self._forms: dict[Hashable, _Form] = {}

    def __call__(self, arrays: Sequence[Array], is_train: bool | None = None, draws: Draws | None = None,
                 targets: Sequence[Array | None] | None = None) -> list[Array]:
        """The outputs, as new arrays, of the graph on `arrays`; recorded when the thread records.

        is_train: None for this thread's mode. draws: those of another call, to draw the same random numbers.
        targets: of each output where it is to go, if it is computed and no input, or None: arrays that share no memory
        with any that is given. The results tell where the outputs went.
        Raises MXNetError when the arrays do not fit the graph.
        """
        state = tape.state
        train = state.training if is_train is None else is_train
        if len(arrays) != len(self.inputs):
            raise MXNetError(f"{self.name} takes {len(self.inputs)} arrays ({', '.join(self.inputs)}), "
                             f"got {len(arrays)}")
        wanted = tuple([i for i, a in enumerate(arrays) if a.entry is not None and tape.entry_of(a) is not None
                        and self.inputs[i] in self.read]) if state.recording else ()
        form = self._form(arrays, train, wanted)
        return self.node_by_node(arrays, train) if form.is_empty else form.call(arrays, draws, targets)

    def run(self, arrays: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write the outputs of inference to `outputs`, here and now: in the middle of work that reads `arrays` and
        writes these. The graph draws no random numbers, and none of its outputs is an input. An op is either called or
        run so. Raises MXNetError where no plan can be made."""
        form = self._form(arrays, False, ())
        pool = self.pool_of(arrays[0].context.computing)
        place = pool.take()
        try:
            form.run(place, arrays, outputs)
        finally:
            pool.give_back(place)

    def _form(self, arrays: Sequence[Array], is_train: bool, wanted: tuple[int, ...]) -> _Form:
        gpu = (arrays[0].context if arrays else current_context().home).gpu_number
        key = (gpu, is_train, wanted, semantics.np_shape, tuple([(a.shape, a.dtype) for a in arrays]))
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= FORMS_KEPT:
                self._forms.clear()
                self._pools.clear()
            form = self._forms[key] = _Form(self, arrays, is_train, wanted, gpu)
        return form

    def node_by_node(self, arrays: Sequence[Array], is_train: bool, watch: Watch | None = None) -> list[Array]:
        """The outputs, computed operator by operator, each recorded when the thread records. watch: is told every
        operator's node with its inputs and outputs."""
        given, values = dict(zip(self.inputs, arrays, strict=True)), dict[Entry, Array]()
        for node in self.graph.nodes:
            inputs = [values[entry] for entry in node.inputs]
            made = [given[node.name]] if node.is_variable else node_calls.apply(node, inputs, is_train)
            values.update((Entry(node, i), array) for i, array in enumerate(made))
            if watch is not None and not node.is_variable:
                watch(node, inputs, made)
        return [values[entry] for entry in self.graph.outputs]

    def pool_of(self, context: Context) -> _Pool:
        """The places on a device."""
        found = self._pools.get(context)
        if found is None:
            found = self._pools[context] = _Pool(context)
        return found


class _Place:
    """A memory, and the plans that are bound in it, by form."""

    def __init__(self, context: Context):
        self.memory = Memory(context)
        self.bound: dict[_Form, _Bound] = {}


class _Pool:
    """The places of an op on one device that no recorded call keeps. The runs in a place are in the program's order, so
    one whose last run is pending is free as well; but for a call inside of other work, which must not wait for what was
    pushed behind that work: such calls have places of their own."""

    def __init__(self, context: Context):
        self.context, self._lock = context, Lock()
        self._free: list[_Place] = []

    def take(self) -> _Place:
        with self._lock:
            return self._free.pop() if self._free else _Place(self.context)

    def give_back(self, place: _Place) -> None:
        with self._lock:
            self._free.append(place)


Pools = dict[Context, _Pool]


class _Form:
    """A `CachedOp` on arrays of given shapes and dtypes, in one mode. wanted: the inputs whose gradients may be asked
    for; without any the plan has no backward part. gpu: the number of the GPU that they are on, or -1. facts: of the
    outputs. sources: of each output the input that it is, or -1, and the first of the outputs that are equal."""

    def __init__(self, op: CachedOp, arrays: Sequence[Array], is_train: bool, wanted: tuple[int, ...], gpu: int):
        other = next((a for a in arrays if a.context.gpu_number != gpu), None)
        if other is not None:
            raise MXNetError(f"{op.name} takes arrays of one device: the first is on {arrays[0].context}, another one "
                             f"on {other.context}; copy one of them, as .as_in_context({other.context}) does")
        self._target = gpu_context(gpu).target() if gpu >= 0 else None
        self.op, self.is_train, self.wanted = op, is_train, wanted
        read = [(name, a) for name, a in zip(op.inputs, arrays, strict=True) if name in op.read]
        self._shapes, self._dtypes = {name: a.shape for name, a in read}, {name: a.dtype for name, a in read}
        self.graph = infer(op.graph, self._shapes, self._dtypes, semantics.np_shape)
        self.is_empty, outputs = has_empty_arrays(self.graph), self.graph.outputs
        self.facts = [(self.graph.shape(e), self.graph.dtype(e)) for e in outputs]
        self.positions = {name: i for i, name in enumerate(op.inputs)}
        self.sources = [(self.positions[e.node.name], -1) if e.node.is_variable else (-1, outputs.index(e))
                         for e in outputs]
        self._token = object()  # stands for this form where tapes are compared; the form itself would be kept alive
        self._operator = CachedOperator(self)
        self._lock, self._compiled, self._gradients = Lock(), None, None  # type: Lock, Compiled | None, CachedOp | None

    def call(self, arrays: Sequence[Array], draws: Draws | None, targets: Sequence[Array | None] | None) -> list[Array]:
        """The outputs; see CachedOp."""
        context = arrays[0].context.computing if arrays else current_context().home
        pool = self.op.pool_of(context) if not engine.is_inside() else None
        place = pool.take() if pool is not None else _Place(context)
        try:
            bound = self._bound_in(place, arrays)
            written: list[Array] = []  # as an executor's: the input itself, one array for equal outputs
            for i, ((shape, dtype), (given, first)) in enumerate(zip(self.facts, self.sources, strict=True)):
                target = targets[i] if targets else None
                written.append(arrays[given] if given >= 0 else written[first] if first < i else
                               Array.empty(shape, dtype, context) if target is None else target)
            if draws is None:
                draw = random.take(context) if bound.plan.draws or bound.plan.has_hosts else (0, 0)
                draws = draw, random.take(context) if bound.plan.draws and bound.plan.has_hosts else draw
            bound.forward(arrays, written, draws)
            results = [array.copied() if given >= 0 else tape.plain(array)
                       for array, (given, _) in zip(written, self.sources, strict=True)]
            if self.wanted:
                kept = Kept(self, bound, pool, place, arrays, written, draws)
                place = None  # type: ignore[assignment]  # it goes with the recorded step
                tape.record(self._operator, _NONE, arrays, results, self.is_train, self._token, kept)
            return results
        finally:
            if place is not None and pool is not None:
                pool.give_back(place)

    def run(self, place: _Place, arrays: Sequence[Array], outputs: Sequence[Array]) -> None:
        """See CachedOp."""
        self._bound_in(place, arrays).run(arrays, outputs)

    def _bound_in(self, place: _Place, arrays: Sequence[Array]) -> _Bound:
        found = place.bound.get(self)
        if found is None or not found.fits(arrays):
            with self._lock:
                if self._compiled is None:
                    self._compiled = self._compile()
            found = place.bound[self] = _Bound(self, self._compiled, place.memory, arrays)
        return found

    def _compile(self) -> Compiled:
        from mxc.compiler.api import compile_graph  # only now: what is known to the cache needs no passes

        keeps = not self.wanted and not self.is_train and static_names(self.graph) <= self.op.learned
        return compile_graph(self.graph, self._shapes, self._dtypes, dict.fromkeys(self.names(), "write"),
                             self.is_train, self._target, keeps)

    def names(self) -> list[str]:
        """The names of the wanted inputs."""
        return [self.op.inputs[i] for i in self.wanted]

    def gradient_op(self) -> CachedOp:
        """The gradients of the wanted inputs as an op: of the inputs, then of what flows into each output."""
        if self._gradients is None:
            from mxc.compiler.graph.names import head_position
            from mxc.compiler.passes.gradient import differentiate

            names = self.names()
            joint = differentiate(self.graph, dict.fromkeys(names, "write"), self.is_train, again=True)
            sought = {s.name: e for s, e in zip(joint.sinks, joint.outputs, strict=True) if s.kind == "grad"}
            made = Graph([sought[name] for name in names])
            heads = {head_position(n.name): n.name for n in made.variables if n.name not in self.positions}
            own = [heads.get(i, f"_mxc_no_head_{i}") for i in range(len(self.facts))]
            self._gradients = CachedOp(made, [*self.op.inputs, *own], (), f"{self.op.name}_backward")
        return self._gradients


class _Bound:
    """The plan of a form in one memory. The arrays that prepare steps read, and auxiliary states, are those that it was
    made with (`fits`); any other may be a new one in each call."""

    def __init__(self, form: _Form, compiled: Compiled, memory: Memory, arrays: Sequence[Array]):
        self.form, self.memory = form, memory
        where = memory.context if memory.context.gpu_number >= 0 else None
        self.seed = Array.of(np.zeros(2, np.int64), context=where)
        prepared = {i for step in compiled.plan.steps_of("prepare") for i in step.reads}
        inputs: list[tuple[int, int]] = []  # position of the buffer, and of the input
        self._fixed: list[tuple[int, Array]] = []
        self._aux: list[int] = []
        places: dict[str, dict[str, int]] = {"output": {}, "gradient": {}, "head": {}}
        for position, buffer in enumerate(compiled.plan.buffers):
            if buffer.pool in ("argument", "aux"):
                given = form.positions[buffer.name]
                if buffer.pool == "aux" or position in prepared:
                    self._fixed.append((given, arrays[given]))
                    self._aux += [given] if buffer.pool == "aux" else []
                else:
                    inputs.append((position, given))
            elif buffer.pool in places:
                places[buffer.pool][buffer.name] = position
        self._inputs, self._places = inputs, places
        self._passing = [position for position, given in inputs if form.op.inputs[given] not in form.op.learned]
        self._passing += [position for pool in places.values() for position in pool.values()]
        changing = {*(position for position, _ in inputs), *(p for pool in places.values() for p in pool.values())}
        with memory.lock:
            self.plan = BoundPlan(compiled, partial(self._find, arrays), memory, form.is_train, changing=changing)

    def _find(self, arrays: Sequence[Array], buffer: Buffer) -> Array | None:
        if buffer.pool == "seed":
            return self.seed
        if buffer.pool in self._places:
            return None  # each call has its own
        return arrays[self.form.positions[buffer.name]]

    def fits(self, arrays: Sequence[Array]) -> bool:
        """Whether it is bound to those of these arrays that it cannot be given anew."""
        return all(arrays[given] is array for given, array in self._fixed)

    def forward(self, arrays: Sequence[Array], outputs: Sequence[Array], draws: Draws) -> None:
        """Push the forward part. outputs: the arrays for them; an input that is one stays as it is."""
        plan, keeps = self.plan, bool(self.form.wanted)
        made = (a.variable for a, (given, _) in zip(outputs, self.form.sources, strict=True) if given < 0)
        writes = [*{*made, self.memory.variable, *plan.states}]
        work = partial(self._run_forward, arrays, outputs, draws, keeps)
        self._push(work, {a.variable for a in arrays}, writes, "forward")

    def _push(self, work: Callable[[], None], reads: set[engine.Variable], writes: list[engine.Variable],
              phase: str) -> None:
        engine.is_inside()
        engine.complete((engine.place(work, reads.difference(writes), writes, phase, self.plan.small[phase],
                                      brief=self.plan.brief[phase]),))

    def run(self, arrays: Sequence[Array], outputs: Sequence[Array]) -> None:
        """The forward part, here and now, of a graph that draws nothing."""
        self._run_forward(arrays, outputs, ((0, 0), (0, 0)), keeps=False)

    def _run_forward(self, arrays: Sequence[Array], outputs: Sequence[Array], draws: Draws, keeps: bool) -> None:
        plan = self.plan
        now: dict[int, Array] = {i: arrays[given] for i, given in self._inputs if plan.arrays[i] is not arrays[given]}
        now.update((position, outputs[int(name)]) for name, position in self._places["output"].items())
        plan.rebind(now)
        self.seed.memory[:] = draws[0]
        try:
            plan.run("forward", draws[1])
        finally:
            if not keeps:
                self._let_go()

    def _let_go(self) -> None:
        """Keep no array alive that passed through a call."""
        for position in self._passing:
            self.plan.arrays[position] = None

    def backward(self, kept: Kept, heads: Sequence[Array], gradients: Mapping[str, Array], again: bool) -> None:
        """Push the backward part. heads: what flows into each output. gradients: the arrays for them, by input. again:
        the arena has not, or no longer, what forward stored there."""
        outputs = [Array.empty(a.shape, a.dtype, a.context) if again else a for a in kept.outputs]
        places, found = self._places, dict[int, Array]()
        for name, position in places["gradient"].items():
            found[position] = gradients[name]
        for name, position in places["head"].items():
            found[position] = heads[int(name)]

        def work() -> None:
            if again:
                self._run_forward(kept.arrays, outputs, kept.draws, keeps=True)
            self.plan.rebind(found)
            try:
                self.plan.run("backward", kept.draws[1])
            finally:
                self._let_go()

        reads = {a.variable for a in (*kept.arrays, *heads, *kept.outputs)}
        states = [kept.arrays[given].variable for given in self._aux] if self.form.is_train else []
        writes = [*{*(g.variable for g in gradients.values()), self.memory.variable, *self.plan.states, *states}]
        self._push(work, reads, writes, "backward")


class Kept:
    """What a recorded call keeps until its gradients were taken, or nobody can ask for them: its place, its arrays, and
    what it drew."""

    def __init__(self, form: _Form, bound: _Bound, pool: _Pool | None, place: _Place, arrays: Sequence[Array],
                 outputs: Sequence[Array], draws: Draws):
        self.form, self._bound, self._pool, self._place = form, bound, pool, place
        self.arrays, self.outputs, self.draws = list(arrays), list(outputs), draws
        self._is_used = False  # backward overwrites what forward left in the arena

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.give_back(self._place)

    def gradients(self, inputs: Sequence[Array], heads: Sequence[Array], targets: Sequence[Array | None],
                  ) -> list[Array]:
        """The gradients of the wanted inputs; recorded, as functions of inputs and heads, when the thread records.

        inputs, heads: the call's inputs, and what flows into each of its outputs. targets: where each gradient is to
        go; None for a new array. Those that are read here are left alone, so the results tell where they went.
        """
        form = self.form
        if tape.state.recording:
            return form.gradient_op()([*inputs, *heads], form.is_train, self.draws)
        read = {a.variable for a in (*self.arrays, *heads, *self.outputs)}
        results = [target if target is not None and target.variable not in read else
                   Array.empty(a.shape, a.dtype, a.context.computing)
                   for target, a in zip(targets, (self.arrays[i] for i in form.wanted), strict=True)]
        self._bound.backward(self, heads, dict(zip(form.names(), results, strict=True)), self._is_used)
        self._is_used = True
        return results


class CachedOperator(Operator):
    """The operator of recorded calls of one form, for the gradient pass."""

    def __init__(self, form: _Form):
        name, count = form.op.name, len(form.op.inputs)
        super().__init__(name, Kind.OPAQUE, tuple(InputSpec(n) for n in form.op.inputs),
                         outputs=tuple(f"output{i}" for i in range(len(form.facts))))
        facts = [(form._shapes[n], form._dtypes[n]) for n in form.names()]
        self._wanted, self._backward = form.wanted, CachedBackward(name, len(form.facts), count, facts)

    def rule(self, role: str) -> Callable | None:
        return self._grad if role == "grad" else None

    def _grad(self, g: Gradient) -> list[Entry | None]:
        heads = [g.grad(i) for i in range(len(g.outputs))]
        node = Node(self._backward, f"{g.node.name}_backward", inputs=[*heads, *g.inputs, g.outputs[0]])
        made = g.builder.add(node)
        found: list[Entry | None] = [None] * len(g.inputs)
        for entry, position in zip(made, self._wanted, strict=True):
            found[position] = entry
        return found


class CachedBackward(Operator):
    """The gradients of a recorded call: of what flows into each output, the call's inputs, and an output, by which the
    recorded step is found that keeps what forward stored."""

    def __init__(self, name: str, heads: int, inputs: int, facts: Sequence[Fact]):
        names = [*(f"head{i}" for i in range(heads)), *(f"data{i}" for i in range(inputs)), "output"]
        super().__init__(f"_backward_{name}", Kind.OPAQUE, tuple(map(InputSpec, names)),
                         outputs=tuple(f"grad{i}" for i in range(len(facts))))
        self.heads, self._facts = heads, facts

    def rule(self, role: str) -> Callable | None:
        place = {"shape": 0, "dtype": 1}.get(role)
        return None if place is None else lambda params, ins, outs: (ins, [fact[place] for fact in self._facts])

    def call(self, kept: object, arrays: Sequence[Array], targets: Sequence[Array | None]) -> list[Array]:
        """See Kept.gradients. arrays: as of the operator's inputs."""
        assert isinstance(kept, Kept)
        return kept.gradients(arrays[self.heads:-1], arrays[:self.heads], targets)
