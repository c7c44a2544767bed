"""Questions about arrays of several precisions, made of reductions and casts."""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape, finished, widened
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.precision.shape import WIDTHS


def all_finite(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The least of 1 for each finite element, and 0 for each other: one whose difference to itself is no number."""
    parts = []
    for data in inputs:
        zero = builder.make("elemwise_sub", data, data)
        least = builder.make("min", builder.make("_equal", zero, builder.make("zeros_like", data)))
        parts.append(builder.make("Cast", as_shape(builder, least, (1,)), dtype="float32"))
    while len(parts) > 1:
        parts = [builder.make("elemwise_mul", *parts[:2]), *parts[2:]]
    return finished(builder, node, parts)


def allclose(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The least of 1 for each pair of elements that are close, and 0 for each other. Integers are compared in
    float64."""
    a, b = (e if builder.dtype(e) in WIDTHS else builder.make("Cast", e, dtype="float64") for e in inputs)
    close = builder.make("_mxc_isclose", widened(builder, a), widened(builder, b), rtol=node.params.rtol,
                         atol=node.params.atol, equal_nan=node.params.equal_nan)
    return finished(builder, node, [builder.make("min", close)])


def sum_sq(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A sum of each array in float32, or in float64 where it is, joined."""
    parts = []
    for data in inputs:
        total = builder.make("sum", builder.make("square", widened(builder, data)))
        parts.append(builder.make("Cast", as_shape(builder, total, (1,)), dtype="float32"))
    joined = parts[0] if len(parts) == 1 else builder.make("Concat", *parts, num_args=len(parts), dim=0)
    return finished(builder, node, [joined])


def multicast(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """A cast of each array whose dtype is another."""
    assert builder.old is not None
    made = []
    for i, data in enumerate(inputs):
        dtype = builder.old.dtype(Entry(node, i))
        made.append(builder.make("Cast", data, dtype=dtype))
    return made
