"""Operators that only rearrange or hand on their input: Reshape with the shape spelled out, or nothing at all."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import along, as_shape
from mxc.compiler.passes.registry import Options


def to_own_shape(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The first input's elements in the shape that the operator gives (Flatten, expand_dims)."""
    assert builder.old is not None
    return [as_shape(builder, inputs[0], builder.old.shape(Entry(node)))]


def where(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """A condition that is a vector over the rows of x gets x's shape."""
    condition, x, y = inputs
    shape = builder.shape(x)
    if builder.shape(condition) == shape:
        return None
    condition = builder.make("broadcast_to", along(builder, condition, 0, len(shape)), shape=shape)
    return [builder.make("where", condition, x, y, name=node.name)]


def first_input(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Operators that matter to the gradient alone (BlockGrad, MakeLoss, regression outputs): their first input."""
    return inputs[:1]


def logistic_output(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """LogisticRegressionOutput forward: sigmoid."""
    return [builder.make("sigmoid", inputs[0], name=node.name)]
