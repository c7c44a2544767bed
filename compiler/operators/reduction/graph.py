"""Decompositions and gradients of reductions."""
from __future__ import annotations

from mxc.compiler.graph.building import as_dtype, as_shape, finished, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops.shapes import reduced_axes, reduced_shape

FLOATS = ("float32", "float64")


def argmax_channel(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """argmax over axis 1."""
    return [builder.make("argmax", inputs[0], axis=1, name=node.name)]


LONG = 8  # elements of a last axis from which on two sweeps of vectors take less than one that keeps positions
EXACT = 1 << 24  # whole numbers up to it are exact in float32


def first_extreme(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """argmax and argmin over a long last axis: of what equals the extreme, or is NaN, the first.

    Positions are weighed by what is behind them, so that the first has the largest weight.
    """
    data = widened(builder, inputs[0])
    shape = builder.shape(data)
    size = shape[-1] if shape else 0
    is_last = reduced_axes(node.params, len(shape)) == (len(shape) - 1,)
    if not is_last or not LONG <= size <= EXACT or builder.dtype(data) not in FLOATS:
        return None
    dtype, last = builder.dtype(data), (len(shape) - 1,)
    extreme = builder.make(node.op.name.removeprefix("arg"), data, axis=last, keepdims=True)  # type: ignore[union-attr]
    found = builder.make("broadcast_logical_or", builder.make("broadcast_equal", data, extreme),
                         builder.make("_not_equal", data, data))
    weights = builder.make("_arange", start=float(size), stop=0.0, step=-1.0, dtype=dtype)
    weighed = builder.make("broadcast_mul", as_dtype(builder, found, dtype), weights)
    first = builder.make("max", weighed, axis=last, keepdims=bool(node.params.keepdims))
    return finished(builder, node, [builder.make("_rminus_scalar", first, scalar=float(size))])


def norm_grad(g: Gradient) -> list[Entry | None]:
    """ord 1: og * sign(x). ord 2: og * x / out."""
    data = widened(g.builder, g.inputs[0])
    kept = reduced_shape(g.params, g.shape(data), keepdims=True)
    og = as_shape(g.builder, widened(g.builder, g.og), kept)
    if g.params.ord == 1:
        return [g.make("broadcast_mul", g.make("sign", data), og)]
    out = as_shape(g.builder, widened(g.builder, g.outputs[0]), kept)
    return [g.make("broadcast_mul", data, g.make("elemwise_div", og, out))]
