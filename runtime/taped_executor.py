"""Executors of graphs that are no single plan: arrays are kept in parts (arguments, gradients, or what operators make),
or nodes are on several devices.

A run is that of a `SegmentedOp` or a `PlacedOp`, recorded by a tape of the executor's own where gradients are wanted;
backward takes them from that tape. What programs see is as of `GraphExecutor`: every run writes the same outputs.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.graph.placement import place_nodes
from mxc.compiler.passes.infer import infer
from mxc.compiler.passes.infer_storage import infer_storage
from mxc.runtime import tape
from mxc.runtime.array import Array, semantics
from mxc.runtime.context import Context
from mxc.runtime.executor import BoundArrays, Monitor
from mxc.runtime.executor_memory import Memory
from mxc.runtime.placed import PlacedOp
from mxc.runtime.segments import SegmentedOp
from mxc.runtime.sparse_array import like, zeros

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget


class TapedExecutor(ABC):
    """A graph on arrays, of the shapes that inference confirms; see GraphExecutor, whose arguments it takes.

    Raises MXNetError when arrays do not fit the graph or each other.
    """

    def __init__(self, graph: Graph, context: Context, arrays: BoundArrays[Array], memory: Memory | None = None,
                 compile: Callable[..., Any] | None = None, groups: Mapping[str, Context] | None = None,
                 blocks: Mapping[int, Array] | None = None, typed: Graph | None = None):
        self.context, self.groups = context, groups or {}
        self.args, self.aux = dict(arrays.args), dict(arrays.aux)
        self.grads = {name: arrays.grads.get(name) for name in self.args}
        self.grad_req = {name: "null" if grad is None else arrays.grad_req.get(name, "null")
                         for name, grad in self.grads.items()}
        self.memory, self.compiler = memory if memory is not None else Memory(context), compile
        self.blocks: dict[int, Array] = {}
        self.monitor: Monitor | None = None
        self.monitor_all = False
        known = {**self.args, **self.aux}
        shapes, dtypes = {name: a.shape for name, a in known.items()}, {name: a.dtype for name, a in known.items()}
        self.source = graph
        self.graph = typed if typed is not None and typed.has_facts(shapes, dtypes) else infer(graph, shapes, dtypes,
                                                                                             semantics.np_shape)
        self._check_gradients()
        self._op, make = self._prepared(known)
        made: dict[Entry, Array] = {}
        for entry in self.graph.outputs:
            if entry not in made:
                made[entry] = known[entry.node.name] if entry.node.is_variable else make(entry)
        self.outputs = [made[entry] for entry in self.graph.outputs]
        self._own: dict[str, Array] = {}  # the arguments and states of the last run, with their places in its tape
        self._heads: list[Array] = []
        self._read: dict[bool, set[int]] = {}  # outputs whose head gradient backward reads, by mode
        self._mode: bool | None = None  # that of the last forward run; None: there was none

    def _check_gradients(self) -> None:
        for name, grad in self.grads.items():
            arg = self.args[name]
            if self.grad_req[name] not in tape.REQUESTS:
                raise MXNetError(f"grad_req of argument {name!r} is {self.grad_req[name]!r}; expected "
                                 f"{', '.join(tape.REQUESTS)}")
            if self.grad_req[name] == "null" or grad is None:
                continue
            if (grad.shape, grad.dtype) != (arg.shape, arg.dtype):
                raise MXNetError(f"the gradient array of argument {name!r} is {grad.dtype} {grad.shape}; it must be as "
                                 f"the argument: {arg.dtype} {arg.shape}")

    @abstractmethod
    def _prepared(self, known: Mapping[str, Array]) -> tuple[SegmentedOp | PlacedOp, Callable[[Entry], Array]]:
        """What runs the graph on arrays of these names, and what makes the array of an output."""

    @property
    def wants_gradients(self) -> bool:
        return any(mode != "null" for mode in self.grad_req.values())

    # -- running

    def forward(self, is_train: bool, values: Mapping[str, Array | np.ndarray] | None = None) -> None:
        """Compute the outputs from the arguments as they are now, or from `values`, which are written to the arguments
        of those names first."""
        for name, value in (values or {}).items():
            if isinstance(value, Array):
                self.args[name].copy_from(value)
            else:
                self.args[name].assign(value)
        self._heads, self._mode = self._run(is_train), is_train
        for entry, made, output in zip(self.graph.outputs, self._heads, self.outputs, strict=True):
            if not entry.node.is_variable:
                output.copy_from(made)

    def _run(self, is_train: bool) -> list[Array]:
        self._own = {name: array.plain() for name, array in {**self.args, **self.aux}.items()}
        for name, grad in self.grads.items():
            if grad is not None and self.grad_req[name] != "null":
                tape.mark(self._own[name], grad, self.grad_req[name])
        with tape.mode(self.wants_gradients, is_train):
            return self._op(list(self._own.values()), is_train, None if self.monitor is None else self._watch)

    def _watch(self, node: Node, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        monitor, op = self.monitor, node.op
        assert monitor is not None and op is not None
        taken, made = op.watched_names(node.params)
        for name, entry, array in zip(taken, node.inputs, inputs, strict=True) if self.monitor_all else ():
            if entry.node.is_variable:
                monitor(entry.node.name, array.plain())
            monitor(f"{node.name}_{name}", array.plain())
        for name, array in zip(made, outputs, strict=False):
            if name:
                monitor(f"{node.name}_{name}", array.plain())

    def backward(self, heads: Sequence[Array | None] = (), is_train: bool = True) -> None:
        """Compute the gradients that are wanted, and in training mode the new auxiliary states.

        heads: the gradients with respect to the outputs. Loss outputs need none; more than needed are ignored.
        Raises MXNetError when one is missing or of a wrong shape, and when no forward has run.
        """
        if not self.wants_gradients:
            return
        if self._mode is None:
            raise MXNetError("backward needs what forward computes, and no forward has run: call "
                             "forward(is_train=True) first")
        from mxc.runtime.backward import backward  # this import loads the compiler's passes

        made = self._heads if is_train or not self._mode else self._run(False)
        leaves = {name: leaf for name, array in self._own.items() if (leaf := tape.leaf_of(array)) is not None}
        for leaf in leaves.values():
            leaf.fresh = False
        flowing = self._flowing(heads, is_train)
        reached = [i for i, array in enumerate(made) if tape.entry_of(array) is not None]
        if any(isinstance(entry.node, tape.RecordedOperator) for i in reached if (entry := made[i].entry) is not None):
            backward([made[i] for i in reached], [flowing[i] for i in reached], True, is_train)
        for name, leaf in leaves.items():
            if not leaf.fresh and leaf.grad is not None and self.grad_req[name] == "write":
                grad = leaf.grad
                grad.copy_from(zeros(grad.stype, grad.shape, grad.dtype, grad.context))

    def _flowing(self, heads: Sequence[Array | None], is_train: bool) -> list[Array | None]:
        """The head gradient of each output; None where none is read."""
        from mxc.compiler.graph.names import head_position
        from mxc.compiler.passes.gradient import differentiate

        if is_train not in self._read:
            joint, known = differentiate(self.graph, self.grad_req, is_train), {*self.args, *self.aux}
            self._read[is_train] = {head_position(n.name) for n in joint.variables if n.name not in known}
        found: list[Array | None] = []
        for i, output in enumerate(self.outputs):
            head = heads[i] if i < len(heads) and i in self._read[is_train] else None
            if i in self._read[is_train] and head is None:
                raise MXNetError(f"backward needs a head gradient for output {i} ({self.output_name(i)!r}): it is not "
                                 "the output of a loss operator. Pass out_grads, or make it a loss with MakeLoss")
            if head is not None and head.shape != output.shape:
                raise MXNetError(f"the head gradient of output {i} ({self.output_name(i)!r}) has the shape "
                                 f"{head.shape}; the output has {output.shape}")
            found.append(head)
        return found

    def output_name(self, position: int) -> str:
        """NODE_OUTPUT, or the name of the variable that the output is."""
        return output_name(self.graph.outputs[position])

    def release(self, names: Collection[str]) -> set[str]:
        """See `GraphExecutor`. Nothing is prepared here, so every array is read in each run, and none is given back."""
        return set()

    def compiled(self, is_train: bool = False) -> NoReturn:
        """Raises MXNetError: there are several plans."""
        raise MXNetError("a graph whose arrays are kept in parts, or whose nodes are on several devices, has no plan "
                         "of its own: its stretches have")

    def compiled_for(self, target: KernelTarget, is_train: bool = False) -> NoReturn:
        """Raises MXNetError, as `compiled`."""
        self.compiled(is_train)


class SparseExecutor(TapedExecutor):
    """An executor of a graph in which arrays are kept in parts. Raises MXNetError where nodes are in groups, too."""

    def _prepared(self, known: Mapping[str, Array]) -> tuple[SegmentedOp, Callable[[Entry], Array]]:
        if self.groups:
            raise MXNetError("arrays that are kept in parts are on one device: bind without group2ctx")
        stypes = infer_storage(self.graph, {name: array.stype for name, array in known.items()})

        def make(entry: Entry) -> Array:
            stype = stypes[self.graph.ids[entry.node]][entry.index]
            return like(stype, self.graph.shape(entry), self.graph.dtype(entry), self.context)

        return SegmentedOp(self.graph, list(known), "executor"), make


class PlacedExecutor(TapedExecutor):
    """An executor of a graph whose groups of nodes are on several devices, of which some are GPUs. Raises MXNetError as
    `place_nodes`, TargetError where there is no such device."""

    def _prepared(self, known: Mapping[str, Array]) -> tuple[PlacedOp, Callable[[Entry], Array]]:
        places = place_nodes(self.graph, self.groups, {name: array.context for name, array in known.items()})
        for place in set(places.values()):
            place.require()

        def make(entry: Entry) -> Array:
            return Array.empty(self.graph.shape(entry), self.graph.dtype(entry), places[entry.node])

        return PlacedOp(self.graph, list(known), places, "executor"), make
