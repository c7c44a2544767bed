"""Global pooling as reductions over space."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.shapes.pooling import windows
from mxc.compiler.passes.building import as_dtype, widened
from mxc.compiler.passes.registry import Options

_REDUCTIONS = {"avg": "mean", "sum": "sum", "max": "max"}


def pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """Global pooling: the mean, sum, largest value or p-norm over all of space, kept as axes of one element.

    Pooling over windows stays as it is.
    """
    params, data = node.params, inputs[0]
    if not params.global_pool:
        return None
    window = windows(params, builder.shape(data))
    axes = tuple(range(window.first, window.first + len(window.kernel)))
    if params.pool_type in _REDUCTIONS:
        return [builder.make(_REDUCTIONS[params.pool_type], data, axis=axes, keepdims=True, name=node.name)]
    root = {1: "", 2: "sqrt", 3: "cbrt"}[params.p_value]
    powers = x = widened(builder, data)  # without absolute values, as in MXNet
    for _ in range(params.p_value - 1):
        powers = builder.make("elemwise_mul", powers, x)
    out = builder.make("sum", powers, axis=axes, keepdims=True)
    return [as_dtype(builder, builder.make(root, out) if root else out, builder.dtype(data))]
