"""The executor of the runtime: a graph bound to arrays, run forward and backward by compiled plans.

Facts of MXNet 1.9.1 that hold here: every run writes the same output arrays; an output that is an argument, or that
occurs twice, is one array; backward reads the arguments as they are then; after an inference forward, or with
is_train=False, backward goes through the operators in inference mode (the outputs keep what forward wrote); auxiliary
states change in backward, once for each call. In one thing mxc differs: what backward needs of the forward run may be
computed again from the arguments. The pass `recompute` does so, and so does a second backward after one forward,
because the first has overwritten the values.

A run is one piece of the engine's work. A brief run is done when the call returns; others, and those with host steps,
are queued. With a monitor the caller does the run, for the callbacks are called in its thread. The caller also does it
where some array of the graph has no elements (`is_empty`): kernels do not take those, so the references run, node by
node.

Plans are compiled at their first use: "inference", "training" (forward and backward of the joint graph), and
"inference gradient" (the same with the operators in inference mode).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.graph.loop import nodes_inside
from mxc.compiler.graph.placement import place_nodes
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.philox import Draws
from mxc.compiler.passes.infer import infer
from mxc.compiler.plan import Buffer
from mxc.compiler.targets.reference import interpreter
from mxc.runtime import engine, random
from mxc.runtime.array import Array, semantics
from mxc.runtime.context import Context
from mxc.runtime.device_array import check_devices
from mxc.runtime.executor_memory import Memory
from mxc.runtime.executor_plan import BoundPlan

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget

INFERENCE, TRAINING, INFERENCE_GRADIENT = "inference", "training", "inference gradient"
Monitor = Callable[[str, Array], None]
NO_DRAWS = (0, 0), (0, 0)


def has_empty_arrays(graph: Graph) -> bool:
    """Whether some array of a graph with facts has no elements, or is a made () that means "not known" elsewhere."""
    facts = zip(graph.nodes, graph.facts.shape, strict=True)
    return any(0 in (shape or ()) or (shape == () and node.op is not None and not node.inputs)
               for node, shapes in facts for shape in shapes)


class _Forward(NamedTuple):
    """What forward runs do in one mode, remembered. work: what to run, if no random numbers are drawn. writes: the
    variables that they write; they read those of all arguments and states. small, brief: see `engine.place`. draws:
    whether random numbers are drawn. token: stands for such a run in `Memory.holder`."""

    mode: str
    plan: BoundPlan
    work: Callable[[], None]
    writes: Sequence[engine.Variable]
    small: bool
    brief: bool
    draws: bool
    token: object


_Array = TypeVar("_Array")


class BoundArrays(NamedTuple, Generic[_Array]):
    """What a graph is bound to. args, aux: arrays by name. grads: by argument; None, or left out, where no gradient is
    wanted. grad_req: by argument: "write", "add" or "null"."""

    args: Mapping[str, _Array]
    grads: Mapping[str, _Array | None]
    grad_req: Mapping[str, str]
    aux: Mapping[str, _Array]


class GraphExecutor:
    """A graph on arrays, of the shapes that inference confirms.

    memory: that of a relative, to be shared. compile: makes the plans; compiler.api.compile_graph when None. groups:
    the devices of the groups of nodes that `ctx_group` names; without groups all nodes are on `context`. blocks: those
    of a relative. typed: the graph with facts, if it is known.

    args, aux, grads, grad_req: as in BoundArrays; grads and grad_req have every argument. places: the device of each
    node, where there are groups. It says where the outputs are; all devices of the CPU share one memory, so one plan
    runs on several of them. outputs: the arrays that every run writes. blocks: the arrays in which they lie, by
    position; as in MXNet, an output lies in the block of a relative's output where it fits. Raises MXNetError when
    arrays do not fit the graph or each other, or nodes have no place.
    """

    def __init__(self, graph: Graph, context: Context, arrays: BoundArrays[Array], memory: Memory | None = None,
                 compile: Callable[..., Any] | None = None, groups: Mapping[str, Context] | None = None,
                 blocks: Mapping[int, Array] | None = None, typed: Graph | None = None):
        self.context, self.args, self.aux = context, dict(arrays.args), dict(arrays.aux)
        self.grads = {name: arrays.grads.get(name) for name in self.args}
        self.grad_req = {name: "null" if grad is None else arrays.grad_req.get(name, "null")
                         for name, grad in self.grads.items()}
        gradients = {f"the gradient of {name}": array for name, array in arrays.grads.items()}
        check_devices(context, {**arrays.args, **gradients, **arrays.aux})
        self.memory = memory if memory is not None else Memory(context)
        self.monitor: Monitor | None = None
        self.monitor_all = False
        self.compiler = compile
        known = {**self.args, **self.aux}
        self._shapes = {name: array.shape for name, array in known.items()}
        self._dtypes = {name: array.dtype for name, array in known.items()}
        self.source = graph  # without facts: what others remember by the graph holds for all shapes
        if typed is None or not typed.has_facts(self._shapes, self._dtypes):
            typed = infer(graph, self._shapes, self._dtypes, semantics.np_shape)
        self.graph = typed
        self.is_empty = has_empty_arrays(typed)
        self._check_gradients()
        self.places = {} if not groups else place_nodes(self.graph, groups, {n: a.context for n, a in known.items()})
        for place in set(self.places.values()):
            place.require()
        self.blocks: dict[int, Array] = {}
        self.outputs = self._make_outputs(blocks or {})
        self._forward_done = engine.Variable()  # written by forward and read by backward, which fails with it
        self._reads = frozenset(a.variable for a in known.values())
        self._outs = [array.variable for entry, array in zip(self.graph.outputs, self.outputs, strict=True)
                      if not entry.node.is_variable]  # an output that is an argument does not change
        self._writes = [*self._outs, self._forward_done, self.memory.variable]
        self._gradients = [g.variable for name, g in self.grads.items() if g is not None and
                           self.grad_req[name] != "null"]
        self._bound: dict[str, BoundPlan] = {}
        self._forwards: dict[bool, _Forward] = {}
        self._seed = Array.of(np.zeros(2, np.int64), context=context if context.gpu_number >= 0 else None)
        self._last = ""  # the plan that ran forward last
        self._draws = NO_DRAWS  # seed and offset of that run, for kernels and for host steps
        self._token = object()  # this executor, in `Memory.holder`: itself would make a cycle

    # -- binding

    def _check_gradients(self) -> None:
        for name, grad in self.grads.items():
            arg = self.args[name]
            if self.grad_req[name] not in ("write", "add", "null"):
                raise MXNetError(f"grad_req of argument {name!r} is {self.grad_req[name]!r}; "
                                 "expected 'write', 'add' or 'null'")
            wanted = grad is not None and self.grad_req[name] != "null"
            if grad is not None and wanted and (grad.shape, grad.dtype) != (arg.shape, arg.dtype):
                raise MXNetError(f"the gradient array of argument {name!r} is {grad.dtype} {grad.shape}; it must be "
                                 f"as the argument: {arg.dtype} {arg.shape}")
        ends = (n.op for n in nodes_inside(self.graph)
                if n.inputs and n.op is not None and n.op.grad in (None, "refused"))
        if self.wants_gradients and any(not op.differentiable and op.rule("grad") is None for op in ends):
            self._joint(True)  # raises where a gradient is to flow through an operator that has none

    def _make_outputs(self, blocks: Mapping[int, Array]) -> list[Array]:
        """An array for each output; one for equal outputs, the argument itself for an output that is one."""
        made: dict[Any, Array] = {}
        variables = {**self.args, **self.aux}
        used = {array.variable for array in (*variables.values(), *self.grads.values()) if array is not None}
        for i, entry in enumerate(self.graph.outputs):
            if entry.node.is_variable:
                made[entry] = variables[entry.node.name]
            elif entry not in made:
                place = self.places.get(entry.node, self.context)
                shape, dtype, block = self.graph.shape(entry), self.graph.dtype(entry), blocks.get(i)
                if (block is None or (block.dtype, block.context) != (dtype, place) or block.size < math.prod(shape)
                        or block.variable in used):
                    block = Array.empty(shape, dtype, place)
                self.blocks[i], made[entry] = block, block.prefix(shape)
        return [made[entry] for entry in self.graph.outputs]

    @property
    def wants_gradients(self) -> bool:
        return any(mode != "null" for mode in self.grad_req.values())

    def _plan(self, mode: str) -> BoundPlan:
        """The plan of a mode, compiled and bound at its first use."""
        if self.is_empty:
            raise MXNetError("nothing is compiled for a graph in which arrays have no elements: it runs node by node")
        if mode not in self._bound:
            grad_req = {} if mode == INFERENCE else self.grad_req
            facts = (tuple(sorted(d.items())) for d in (self._shapes, self._dtypes, grad_req))
            compiled = self.memory.compiled((self.source, mode, *facts), lambda: self._compiler()(
                self.graph, self._shapes, self._dtypes, grad_req, mode == TRAINING))
            self._bound[mode] = BoundPlan(compiled, self._finder(mode), self.memory, mode == TRAINING)
        return self._bound[mode]

    def _compiler(self) -> Callable[..., Any]:
        if self.compiler is None:
            from mxc.compiler.api import compile_graph  # only now: a bound executor need not compile anything

            self.compiler = partial(compile_graph, target=self.context.target())
        return self.compiler

    def _finder(self, mode: str) -> Callable[[Buffer], Array]:
        """Which array a plan's buffer is. The outputs of the inference gradient plan are its own: running it again
        must not change what forward wrote."""
        own: dict[str, Array] = {}

        def find(buffer: Buffer) -> Array:
            if buffer.pool == "argument":
                return self.args[buffer.name]
            if buffer.pool == "aux":
                return self.aux[buffer.name]
            if buffer.pool == "seed":
                return self._seed
            if buffer.pool == "output" and mode != INFERENCE_GRADIENT:
                return self.outputs[int(buffer.name)]
            if buffer.pool == "gradient":
                grad = self.grads[buffer.name]
                assert grad is not None
                return grad
            key = f"{buffer.pool} {buffer.name}"
            if key not in own:
                own[key] = Array.empty(buffer.shape, buffer.dtype, self.context)
            return own[key]

        return find

    def prepared_values(self) -> dict[int, np.ndarray]:
        """What inference makes of the parameters as they are now: see BoundPlan.prepared_values."""
        made = dict[int, np.ndarray]()
        self._prepared(lambda plan: made.update(plan.prepared_values()))
        return made

    def _prepared(self, work: Callable[[BoundPlan], None]) -> None:
        """Do what prepares inference's plan, as work of the engine, and wait for it."""
        engine.is_inside()
        with self.memory.lock:
            plan = self._plan(INFERENCE)
            self.memory.holder = None
            placed = engine.place(partial(work, plan), self._reads, (self.memory.variable,), "prepare", False,
                                  self.memory.turn, is_queued=False)
        engine.complete((placed,))

    def release(self, names: Collection[str]) -> set[str]:
        """Prepare inference once for all runs, and give back the memory of those of `names`, arguments and auxiliary
        states, that only the prepare steps read. Returns their names: the executor has them no more, runs inference
        alone, and the caller lets go of its arrays of them."""
        if self.is_empty:
            return set()
        gone = set[str]()
        self._prepared(lambda plan: gone.update(plan.settle(names)))
        for name in gone:
            for arrays in (self.args, self.aux):
                arrays.pop(name, None)
        return gone

    def compiled(self, is_train: bool = False) -> Any:
        """What the compiler made for forward in that mode (compiler.api.Compiled): the plan, the kernels, the times."""
        with self.memory.lock:
            return self._plan(TRAINING if is_train else INFERENCE).compiled

    def compiled_for(self, target: KernelTarget, is_train: bool = False) -> Any:
        """As `compiled`, for a target that need not be here (compiler.api.compile_graph)."""
        from mxc.compiler.api import compile_graph

        wanted = self.grad_req if is_train else {}
        facts = (tuple(sorted(d.items())) for d in (self._shapes, self._dtypes, wanted))
        return self.memory.compiled((self.source, target.parts["target"], is_train, *facts), lambda: compile_graph(
            self.graph, self._shapes, self._dtypes, wanted, is_train, target))

    # -- running

    def forward(self, is_train: bool, values: Mapping[str, Array | np.ndarray] | None = None) -> None:
        """Compute the outputs from the arguments as they are now, or from `values`, which are written to the arguments
        of those names first; no other thread's run comes between."""
        if engine.is_inside():
            sources = [v.variable for v in values.values() if isinstance(v, Array)] if values else []
            with self._in_turn(sources):
                self._start_forward(is_train, values)
            return
        placed = self._start_forward(is_train, values)
        if placed:
            engine.complete(placed)

    def _start_forward(self, is_train: bool,
                       values: Mapping[str, Array | np.ndarray] | None) -> Sequence[engine.Placed]:
        memory = self.memory
        with memory.lock:
            if self.monitor is not None or self.is_empty:
                return self._start_watched(is_train, values)
            run, draws = self._forwards.get(is_train) or self._forward(is_train), NO_DRAWS
            copies = [self.args[name].place(value) for name, value in values.items()] if values else ()
            work = run.work
            if run.draws:  # drawn in the program's order; a run that draws none does not advance the generator
                draw = random.take(self.context) if run.plan.draws else (0, 0)
                draws = draw, random.take(self.context) if run.plan.has_hosts else draw
                work = partial(self._run_forward, run.plan, draws)
            memory.holder = None  # until the run has its place: small work may fail here after it wrote a part
            placed = engine.place(work, self._reads, run.writes, "forward", run.small, memory.turn, brief=run.brief)
            memory.holder, self._draws, self._last = run.token, draws, run.mode
        return (*copies, placed) if copies or placed is not None or not run.small else ()

    def _start_watched(self, is_train: bool, values: Mapping[str, Array | np.ndarray] | None) -> list[engine.Placed]:
        placed = [self.args[name].place(value) for name, value in (values or {}).items()]
        memory, draw = self.memory, random.take(self.context)
        memory.holder = None
        placed.append(engine.place(partial(self._run_watched, is_train, draw), self._reads, self._writes, "forward",
                                   False, memory.turn, is_queued=False))
        self._draws, self._last = (draw, draw), TRAINING if is_train else INFERENCE
        return placed

    def _forward(self, is_train: bool) -> _Forward:
        """What `_start_forward` needs, remembered."""
        mode = TRAINING if is_train else INFERENCE
        plan = self._plan(mode)
        made = self._forwards[is_train] = _Forward(
            mode, plan, partial(plan.run, "forward", (0, 0)), [*self._writes, *plan.states], plan.small["forward"],
            plan.brief["forward"], plan.draws or plan.has_hosts, (self._token, mode))
        return made

    @contextmanager
    def _in_turn(self, sources: Sequence[engine.Variable]) -> Iterator[None]:
        """Around a run inside of other work: wait for what it needs before taking locks, and hold the memory's turn."""
        memory = self.memory
        if memory.is_running:
            memory.refuse()
        engine.settle([*sources, *self._reads, *self._writes, *self._gradients])
        with memory.turn:
            yield

    def _run_forward(self, plan: BoundPlan, draws: tuple[tuple[int, int], tuple[int, int]]) -> None:
        self._seed.memory[:] = draws[0]
        plan.run("forward", draws[1])

    def backward(self, heads: Sequence[Array | None] = (), is_train: bool = True) -> None:
        """Compute the gradients that are wanted, and in training mode the new auxiliary states.

        heads: the gradients with respect to the outputs. Loss outputs need none; more than needed are ignored.
        Raises MXNetError when one is missing or of a wrong shape, and when gradients are made of what forward computes
        and none has run.
        """
        if not self.wants_gradients:
            return
        if engine.is_inside():
            with self._in_turn([head.variable for head in heads if head is not None]):
                self._start_watched_backward(heads, is_train)
                self._start_backward(heads, is_train)
        else:
            engine.complete(self._start_watched_backward(heads, is_train))
            engine.complete((self._start_backward(heads, is_train),))

    def _start_backward(self, heads: Sequence[Array | None], is_train: bool) -> engine.Placed:
        with self.memory.lock:
            if not self._last:
                self._check_forward_is_not_needed(is_train)
            mode = self._backward_mode(is_train)
            if self.is_empty:
                return self._start_stepwise_backward(heads, mode == TRAINING)
            plan = self._plan(mode)
            targets = self._heads(plan, heads)
            reads = self._reads | {self._forward_done, *(head.variable for head, _ in targets)}
            writes = [*self._gradients, self.memory.variable, *plan.states]
            # run forward again, with the same seeds, where the arena does not hold what it stored
            again = self.memory.holder != (self._token, mode) or mode == INFERENCE_GRADIENT
            if mode == TRAINING:
                writes += [a.variable for a in self.aux.values()]
                writes += self._outs if again else ()
            draws = self._draws

            def work() -> None:
                for head, target in targets:
                    target.fill(head)
                if again:
                    self._run_forward(plan, draws)
                plan.run("backward", draws[1])

            self.memory.holder = None  # backward overwrites what it has used of forward's values
            small, brief = (known["backward"] and (not again or known["forward"]) for known in (plan.small, plan.brief))
            return engine.place(work, reads, writes, "backward", small, self.memory.turn, brief=brief)

    def _backward_mode(self, is_train: bool) -> str:
        return TRAINING if is_train and self._last == TRAINING else INFERENCE_GRADIENT

    def _start_watched_backward(self, heads: Sequence[Array | None], is_train: bool) -> list[engine.Placed]:
        """Tell the monitor, if there is one, every gradient, computed node by node with the reference. What backward
        gives is computed as ever, after that."""
        monitor = self.monitor
        if monitor is None or not self._last:  # nothing was computed that could be differentiated: backward refuses
            return []
        told: list[tuple[str, Entry]] = []
        with self.memory.lock:
            training = self._backward_mode(is_train) == TRAINING
            joint = self._joint(training, told)
            given = self._given_heads(joint, heads)

            def work() -> None:
                values = self._joint_values(joint, given, training)
                for name, entry in told:
                    monitor(name, Array.of(values[entry], context=self.context))

            reads = self._reads | {self._forward_done, *(head.variable for head in given.values())}
            return [engine.place(work, reads, [self.memory.variable], "backward", False, self.memory.turn,
                                 is_queued=False)]

    def _check_forward_is_not_needed(self, is_train: bool) -> None:
        """Raises MXNetError when a gradient is made of what forward computes."""
        forward = {node for node in self.graph.nodes if node.op is not None}
        for node in self._joint(is_train).nodes:
            needed = next((e.node for e in node.inputs if e.node in forward), None)
            if needed is not None and node not in forward:
                raise MXNetError(f"backward needs a value of {needed!r}, and no forward has run: call "
                                 "forward(is_train=True) first")

    def _joint(self, is_train: bool, told: list[tuple[str, Entry]] | None = None) -> Graph:
        """The graph with gradients; told: see `differentiate`."""
        from mxc.compiler.passes.gradient import differentiate  # only now: a plan that is known needs no passes

        return differentiate(self.graph, self.grad_req, is_train, told=told)

    def _given_heads(self, joint: Graph, heads: Sequence[Array | None]) -> dict[str, Array]:
        """The head gradients that the joint graph reads, by its names for them. Raises MXNetError as `_head`."""
        from mxc.compiler.graph.names import head_position  # only now, as above

        return {node.name: self._head(head_position(node.name), heads, joint.shape(Entry(node)))
                for node in joint.variables if node.name not in self._shapes}

    def _joint_values(self, joint: Graph, given: Mapping[str, Array], is_train: bool) -> interpreter.Values:
        """What the nodes of the joint graph give, with the random numbers of the last forward run."""
        return interpreter.run(joint, {k: a.data for k, a in {**self.args, **given}.items()},
                               {k: a.data for k, a in self.aux.items()}, is_train, Draws(*self._draws[0]))

    def _start_stepwise_backward(self, heads: Sequence[Array | None], is_train: bool) -> engine.Placed:
        joint = self._joint(is_train)
        given = self._given_heads(joint, heads)
        reads = self._reads | {self._forward_done, *(head.variable for head in given.values())}
        aux = [a.variable for a in self.aux.values()] if is_train else []

        def work() -> None:
            values = self._joint_values(joint, given, is_train)
            for sink, entry in zip(joint.sinks, joint.outputs, strict=True):
                target = self.aux.get(sink.name) if sink.kind == "aux" else self.grads.get(sink.name)
                if sink.kind != "output":
                    assert target is not None
                    (dtypes.add if sink.mode == "add" else dtypes.write)(target.data, values[entry])

        self.memory.holder = None
        return engine.place(work, reads, [*self._gradients, *aux, self.memory.variable], "backward", False,
                            self.memory.turn, is_queued=False)

    def _heads(self, plan: BoundPlan, heads: Sequence[Array | None]) -> list[tuple[Array, Array]]:
        """Pairs of a given head gradient and the plan's array for it."""
        pairs = []
        for name in plan.names("head"):
            target = plan.array_of("head", name)
            assert target is not None
            pairs.append((self._head(int(name), heads, target.shape), target))
        return pairs

    def _head(self, i: int, heads: Sequence[Array | None], shape: tuple[int, ...]) -> Array:
        """The head gradient that was given for output i. Raises MXNetError if it does not fit."""
        head = heads[i] if i < len(heads) else None
        if head is None:
            raise MXNetError(f"backward needs a head gradient for output {i} ({self.output_name(i)!r}): it is not "
                             "the output of a loss operator. Pass out_grads, or make it a loss with MakeLoss")
        if head.shape != shape:
            raise MXNetError(f"the head gradient of output {i} ({self.output_name(i)!r}) has the shape "
                             f"{head.shape}; the output has {shape}")
        return head

    def output_name(self, position: int) -> str:
        """NODE_OUTPUT, or the name of the variable that the output is."""
        return output_name(self.graph.outputs[position])

    def _run_watched(self, is_train: bool, draw: tuple[int, int]) -> None:
        """Run node by node with the reference, telling the monitor, if there is one, every value."""
        monitor = self.monitor
        values: interpreter.Values = {}

        def tell(name: str, value: np.ndarray, source: Node) -> None:
            if monitor is not None:
                monitor(name, Array.of(value, context=self.places.get(source, self.context)))

        def watch(node: Node, outputs: list[np.ndarray]) -> None:
            values.update((Entry(node, i), value) for i, value in enumerate(outputs))
            if node.op is None:
                return
            inputs, names = node.op.watched_names(node.params)
            for name, entry in zip(inputs, node.inputs, strict=True) if self.monitor_all else ():
                if entry.node.is_variable:
                    tell(entry.node.name, values[entry], entry.node)
                tell(f"{node.name}_{name}", values[entry], node)
            for name, value in zip(names, outputs, strict=True):
                if name:
                    tell(f"{node.name}_{name}", value, node)

        rng = Draws(*draw)
        with self.context:
            interpreter.run(self.graph, {k: a.data for k, a in self.args.items()},
                            {k: a.data for k, a in self.aux.items()}, is_train, rng, watch)
        for entry, output in zip(self.graph.outputs, self.outputs, strict=True):
            np.copyto(output.data, values[entry])
