"""Runs graphs node by node with the operators' NumPy references: slow, and what the other targets are compared with."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.error import ArgumentIndexError, MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.graph.loop import LoopOperator, slice_shape
from mxc.compiler.ops.dtypes import dtype_name, numpy_dtype
from mxc.compiler.ops.infer import Shape, infer_node
from mxc.compiler.ops.philox import Draws

if TYPE_CHECKING:  # mypy compares this module with the protocol
    from mxc.compiler.targets.protocol import GraphTarget
    from mxc.compiler.targets.reference import interpreter

    _: GraphTarget = interpreter

Values = dict[Entry, np.ndarray]
name = "reference"  # of the target that this module is: see `GraphTarget` in targets/protocol.py


def evaluate(node: Node, inputs: list[np.ndarray], is_train: bool = False,
             rng: Draws | None = None) -> list[np.ndarray]:
    """All outputs of one operator node, hidden ones too, in the dtypes that inference gives.

    inputs: in the node's order, auxiliary states last. Raises MXNetError when their shapes or dtypes do not fit, and
    naming the node when its operator has no reference.
    """
    assert node.op is not None
    if isinstance(node.op, LoopOperator):
        return _loop(node.op, inputs, is_train, rng)
    shapes, dtypes = infer_node(node, [a.shape for a in inputs], [dtype_name(a.dtype) for a in inputs])
    if any(0 in shape for shape in (*shapes, *(a.shape for a in inputs))):
        return of_nothing(node, inputs, shapes, dtypes, is_train)
    try:
        return node.op.reference(node.params, inputs, dtypes, is_train, rng)
    except MXNetError as error:
        kind = ArgumentIndexError if isinstance(error, ArgumentIndexError) else MXNetError
        raise kind(f"node {node.name!r}: {error}") from None


def _loop(op: LoopOperator, inputs: Sequence[np.ndarray], is_train: bool, rng: Draws | None) -> list[np.ndarray]:
    """All outputs of a loop, step by step."""
    form, names = op.form, [node.name for node in op.form.variables]
    data, states, whole = inputs[:form.data], list(inputs[form.data:form.data + form.states]), inputs[
        form.data + form.states:]
    stacks = [np.zeros(shape, numpy_dtype(dtype)) for shape, dtype in op.facts[:form.stacks]]
    for step in reversed(range(form.length)) if form.is_reversed else range(form.length):
        slices = [array[step].reshape(slice_shape(array.shape)) for array in data]
        given = dict(zip(names, (*slices, *states, *whole), strict=True))
        if form.test is not None and not run(form.test, given, {}, is_train, rng)[form.test.outputs[0]].any():
            if form.stops:
                break
            continue
        values = run(form.body, given, {}, is_train, rng)
        made = [values[entry] for entry in form.body.outputs]
        for stack, value in zip(stacks, made, strict=False):
            stack[step] = value
        states = made[form.stacks:]
    return [*stacks, *states]


def of_nothing(node: Node, inputs: Sequence[np.ndarray], shapes: Sequence[Shape], dtypes: Sequence[str],
               is_train: bool) -> list[np.ndarray]:
    """All outputs, of these shapes and dtypes, of a node some of whose inputs have no elements.

    Raises MXNetError where outputs with elements do not follow from inputs without.
    """
    assert node.op is not None
    if all(0 in shape for shape in shapes):
        return [np.empty(shape, numpy_dtype(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True)]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as that about a mean of nothing
            return node.op.reference(node.params, inputs, dtypes, is_train, Draws(0, 0))
    except Exception as error:  # references are written for arrays with elements
        raise MXNetError(f"operator {node.op.name}: of arrays without elements, of the shapes "
                         f"{', '.join(str(a.shape) for a in inputs)}: {error}") from None


def run(graph: Graph, args: Mapping[str, np.ndarray], aux: Mapping[str, np.ndarray], is_train: bool = False,
        rng: Draws | None = None,
        watch: Callable[[Node, list[np.ndarray]], None] | None = None) -> Values:
    """The value of every output of every node.

    args, aux: values of the variables by name. watch: called for each node, variables too, with its outputs as soon as
    they are computed. Raises MXNetError when a variable has no value.
    """
    rng = rng if rng is not None else Draws()
    values: Values = {}
    for node in graph.nodes:
        if node.is_variable:
            value = args.get(node.name, aux.get(node.name))
            if value is None:
                raise MXNetError(f"variable {node.name!r} has no value")
            outputs = [value]
        else:
            outputs = evaluate(node, [values[e] for e in node.inputs], is_train, rng)
        for i, output in enumerate(outputs):
            values[Entry(node, i)] = output
        if watch is not None:
            watch(node, outputs)
    return values
