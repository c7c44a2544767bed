"""Operators that a program writes in Python: the registry of their classes, and how graphs and eager calls run them.

A graph holds a `CustomOperator` that was made for one node; a plan runs it as a host step and has its id only. The
classes are called with the caller's kind of array, which `wrap` makes of the runtime's.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.graph.gradient_rule import Gradient, loss
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops import table
from mxc.compiler.ops.dtypes import scalar_type
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.operator import InputSpec, Kind, Operator, Params
from mxc.compiler.passes.stated import DTYPE_CODES
from mxc.runtime import engine, tape
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import current_context

Shape = tuple[int, ...]
_CODES = {name: code for code, name in DTYPE_CODES.items()}  # create_operator is told MXNet's numbers of dtypes
registry: dict[str, tuple[Callable[..., Any], Callable[[Array], Any]]] = {}  # op_type -> property class, wrap


def make(attrs: Mapping[str, str]) -> CustomOperator:
    """The operator of a node with these attributes: `op_type`, and what its property class is made with.

    Raises MXNetError when op_type is missing or was not registered.
    """
    if "op_type" not in attrs:
        raise MXNetError("operator Custom: the required attribute op_type, the name that the operator was registered "
                         "under, is missing")
    name = attrs["op_type"]
    if name not in registry:
        raise MXNetError(f"Cannot find custom operator {name}{nearest(name, list(registry))}: register its property "
                         "class with mx.operator.register first")
    given = {k: v for k, v in attrs.items() if k != "op_type" and not (k.startswith("__") and k.endswith("__"))}
    prop_class, wrap = registry[name]
    return CustomOperator(name, prop_class(**given), wrap)


table.made["Custom"] = make


class CustomOperator(Operator):
    """One use of a custom operator: `prop` says what it is like and makes the object that computes."""

    def __init__(self, op_type: str, prop: Any, wrap: Callable[[Array], Any]):
        super().__init__("Custom", Kind.OPAQUE, tuple(InputSpec(n) for n in prop.list_arguments()),
                         outputs=tuple(prop.list_outputs()), aux=tuple(prop.list_auxiliary_states()))
        self.op_type, self.prop, self.wrap = op_type, prop, wrap
        if not self.outputs:
            raise MXNetError(f"list_outputs of custom operator {op_type} gives no names: there must be an output")
        heads, ins = list(range(len(self.outputs))), list(range(len(self.inputs)))
        numbered = heads, [len(heads) + i for i in ins], [len(heads) + len(ins) + i for i in heads]
        self.needs_heads = bool(set(heads) & set(prop.declare_backward_dependency(*numbered)))
        self.computes: tuple[object, Any] = (None, None)  # what the object was made for, and the object

    @property
    def signature(self) -> str:
        return f"{len(self.inputs)} {len(self.outputs)} {len(self.aux)} {self.needs_heads}"

    def rule(self, role: str) -> Callable | None:
        rules: dict[str, Callable] = {"shape": self._shapes, "dtype": self._dtypes,
                                      "grad": _gradient if self.needs_heads else _gradient_of_a_loss}
        return rules.get(role)

    def _shapes(self, params: Params, ins: list[Shape | None], outs: list[Shape | None]) -> tuple[list, list]:
        count = len(self.inputs)
        known = all(s is not None and 0 not in s for s in ins[:count])
        if all(s is None for s in ins[:count]) and count:
            return ins, outs
        try:
            found = self.prop.infer_shape([list(s or ()) for s in ins[:count]])
        except Exception as error:
            if not known:
                return ins, outs  # a function that needs all shapes
            raise self._failed("infer_shape", error) from error
        lists = self._three(found, "infer_shape")
        try:
            of_inputs, of_outputs, of_states = ([tuple(operator.index(n) for n in s) for s in each] for each in lists)
        except TypeError as error:
            raise self._failed("infer_shape", error) from error
        return [*(s or None for s in of_inputs), *of_states], [s or (None if not known else (1,)) for s in of_outputs]

    def _dtypes(self, params: Params, ins: list[str | None], outs: list[str | None]) -> tuple[list, list]:
        count = len(self.inputs)
        some = next((d for d in ins[:count] if d is not None), None)
        if some is None and count:
            return ins, outs
        try:
            found = self.prop.infer_type([scalar_type(d or some or "float32") for d in ins[:count]])
        except Exception as error:
            raise self._failed("infer_type", error) from error
        lists = [[dtype_name(d) for d in each] for each in self._three(found, "infer_type")]
        return [*lists[0], *lists[2]], lists[1]

    def _three(self, found: Any, what: str) -> list[list[Any]]:
        """What an inference function gives for inputs, outputs and states. Raises MXNetError for a wrong number."""
        try:
            lists = [list(each) for each in found]
        except TypeError:
            lists = []
        if not 2 <= len(lists) <= 3:
            raise MXNetError(f"{what} of custom operator {self.op_type} must return 2 or 3 lists, for inputs, outputs "
                             f"and auxiliary states, got {found!r}")
        lists += [[] for _ in range(3 - len(lists))]
        for each, names, kind in zip(lists, ([s.name for s in self.inputs], self.outputs, self.aux),
                                     ("inputs", "outputs", "auxiliary states"), strict=True):
            if len(each) != len(names):
                raise MXNetError(f"{what} of custom operator {self.op_type} gives {len(each)} entries for "
                                 f"{len(names)} {kind} ({', '.join(names) or 'none'})")
        return lists

    def _failed(self, what: str, error: Exception) -> MXNetError:
        return MXNetError(f"{what} of custom operator {self.op_type}: {error!r}")

    def computing(self, inputs: Sequence[np.ndarray]) -> Any:
        """The object that computes for inputs of these shapes and dtypes, made on the current device: the same one for
        forward and backward."""
        facts = [(a.shape, dtype_name(a.dtype)) for a in inputs]
        if self.computes[0] != facts:
            made = self.prop.create_operator(current_context(), [list(a.shape) for a in inputs],
                                              [_CODES[dtype] for _, dtype in facts])
            if made is None:
                raise MXNetError(f"create_operator of custom operator {self.op_type} gives None instead of a CustomOp")
            self.computes = facts, made
        return self.computes[1]

    def reference(self, params: Params, inputs: Sequence[np.ndarray], out_dtypes: Sequence[str], is_train: bool = False,
                  rng: object = None) -> list[np.ndarray]:
        """All outputs; the object may change the auxiliary states."""
        count = len(self.inputs)
        shapes = self._shapes(params, [a.shape for a in inputs], [None] * len(self.outputs))[1]
        outs = [Array.empty(s, d, zeroed=True) for s, d in zip(shapes, out_dtypes, strict=True)]
        ins, aux = self._arrays(inputs[:count]), self._arrays(inputs[count:])
        with tape.mode(False, is_train):
            self.computing(inputs[:count]).forward(is_train, ["write"] * len(outs), self._wrapped(ins),
                                                   self._wrapped(outs), self._wrapped(aux))
        self._keep(inputs[count:], aux)
        return [a.numpy() for a in outs]

    def _arrays(self, values: Sequence[np.ndarray]) -> list[Array]:
        return [Array.of(v) for v in values]

    def _wrapped(self, arrays: Sequence[Array]) -> list[Any]:
        return [self.wrap(a) for a in arrays]

    def _keep(self, states: Sequence[np.ndarray], changed: Sequence[Array]) -> None:
        for state, array in zip(states, changed, strict=True):
            np.copyto(state, array.numpy())


class CustomBackward(Operator):
    """The gradient of one use: it takes what flows into the outputs, the inputs, the outputs and the states."""

    def __init__(self, forward: CustomOperator, asked: Sequence[bool]):
        heads = tuple(InputSpec(f"head_{name}") for name in forward.outputs)
        outs = tuple(InputSpec(f"out_{name}") for name in forward.outputs)
        super().__init__("_backward_Custom", Kind.OPAQUE, (*heads, *forward.inputs, *outs), aux=forward.aux,
                         outputs=tuple(f"grad_{s.name}" for s in forward.inputs))
        self.forward, self.asked = forward, list(asked)

    def rule(self, role: str) -> Callable | None:
        first = len(self.forward.outputs)
        last = first + len(self.forward.inputs)
        return (lambda params, ins, outs: (ins, ins[first:last])) if role in ("shape", "dtype") else None

    def reference(self, params: Params, inputs: Sequence[np.ndarray], out_dtypes: Sequence[str], is_train: bool = False,
                  rng: object = None) -> list[np.ndarray]:
        """What flows into each input; zeros where nothing is asked for."""
        op = self.forward
        ends = np.cumsum([len(op.outputs), len(op.inputs), len(op.outputs), len(op.aux)])
        parts = [op._arrays(inputs[end - n:end]) for end, n in
                 zip(ends, (len(op.outputs), len(op.inputs), len(op.outputs), len(op.aux)), strict=True)]
        values = inputs[ends[0]:ends[1]]
        grads = [Array.of(np.zeros_like(v)) for v in values]
        heads, ins, outs, aux = (op._wrapped(p) for p in parts)
        with tape.mode(False, is_train):
            op.computing(values).backward(["write" if a else "null" for a in self.asked], heads, ins, outs,
                                          op._wrapped(grads), aux)
        op._keep(inputs[ends[2]:], parts[3])
        return [g.numpy() for g in grads]


def _gradient(g: Gradient) -> list[Entry | None]:
    op = g.node.op
    assert isinstance(op, CustomOperator)
    heads = [g.grad(i) for i in range(len(g.outputs))]
    node = Node(CustomBackward(op, g.asked), f"{g.node.name}_backward",
                inputs=[*heads, *g.inputs, *g.outputs, *g.aux])
    return list(g.builder.add(node))


@loss
def _gradient_of_a_loss(g: Gradient) -> list[Entry | None]:
    g.out_grads = [None] * len(g.outputs)
    return _gradient(g)


def call(attrs: Mapping[str, str], inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a custom operator on arrays, auxiliary states last, recorded while recording.

    Raises MXNetError for a wrong number of inputs, and for a description that does not fit.
    """
    op = make(attrs)
    node = Node(op, "custom", dict(attrs))
    names = [*op.input_names(node.params), *op.aux]
    if len(inputs) != len(names):
        raise MXNetError(f"Operator Custom expects {len(names)} inputs ({', '.join(names)}), but got {len(inputs)} "
                         "instead.")
    return apply(node, inputs)


def apply(node: Node, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a node of a custom operator, or of its gradient, computed in the caller's thread. What it raises
    comes where they are waited for, as an MXNetError whose cause it is."""
    op = node.op
    assert op is not None
    shapes, dtypes = infer_node(node, [a.shape for a in inputs], [a.dtype for a in inputs])
    training, where = tape.state.training, inputs[0].context.computing if inputs else current_context()
    with where:
        if isinstance(op, CustomOperator):
            op.computing([a.layout for a in inputs[:len(op.inputs)]])  # what it raises is raised here, as in MXNet
        try:
            values = op.reference(node.params, [a.data for a in inputs], dtypes, training)
            results = [Array.of(v, d, where) for v, d in zip(values, dtypes, strict=True)]
        except Exception as error:
            results = [Array.empty(s, d, where) for s, d in zip(shapes, dtypes, strict=True)]
            engine.fail("Custom", error, [a.variable for a in results])
    for state in inputs[len(op.inputs):]:
        state.touched()
    if tape.state.recording:
        tape.record(op, node.params, inputs, results, training)
    return results
