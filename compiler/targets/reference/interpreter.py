"""Runs graphs node by node with the operators' NumPy references: slow, and what the other targets are compared with."""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.philox import Draws

Values = dict[Entry, np.ndarray]


def evaluate(node: Node, inputs: list[np.ndarray], is_train: bool = False,
             rng: Draws | None = None) -> list[np.ndarray]:
    """All outputs of one operator node, hidden ones too, in the dtypes that inference gives.

    inputs: in the node's order, auxiliary states last. Raises MXNetError when their shapes or dtypes do not fit, and
    naming the node when its operator has no reference.
    """
    assert node.op is not None
    _, dtypes = infer_node(node, [a.shape for a in inputs], [a.dtype.name for a in inputs])
    try:
        return node.op.reference(node.params, inputs, dtypes, is_train, rng)
    except MXNetError as error:
        raise MXNetError(f"node {node.name!r}: {error}") from None


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
