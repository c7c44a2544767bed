"""Densities over parameters with as many axes as the sample, for decompositions and gradients."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops import table
from mxc.compiler.passes.building import as_shape


def lined(builder: GraphBuilder, parameter: Entry, rank: int, kept: int = 0) -> Entry:
    """A parameter (*s, *last) as (*s, 1, ..., 1, *last) of `rank` axes; `kept`: how many axes `last` has."""
    shape = builder.shape(parameter)
    place = len(shape) - kept
    return as_shape(builder, parameter, (*shape[:place], *(1,) * (rank - len(shape)), *shape[place:]))


def density_node(builder: GraphBuilder, node: Node, inputs: Sequence[Entry], name: str) -> Node:
    """A node of the operator that has the formula of `node`'s density: `_mxc_pdf_NAME` for `_random_pdf_NAME`."""
    assert node.op is not None
    sample, *parameters = inputs
    rank = len(builder.shape(sample))
    op = table.get(node.op.name.replace("_random_", "_mxc_"))
    return Node(op, name, None, node.params, [sample, *(lined(builder, p, rank) for p in parameters)])
