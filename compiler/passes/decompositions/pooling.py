"""Global pooling as reductions over space."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import as_dtype, widened
from mxc.compiler.passes.registry import Options


def pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """Global pooling: the mean, sum, largest value or p-norm over all of space, kept as axes of one element.

    Pooling over windows stays as it is.
    """
    params = node.params
    if not params.global_pool:
        return None
    data = inputs[0]
    first = 1 if (params.layout or "NC").endswith("C") and params.layout is not None else 2
    axes = tuple(range(first, first + len(builder.shape(data)) - 2))
    dtype = builder.dtype(data)
    if params.pool_type != "lp":
        name = {"avg": "mean", "sum": "sum", "max": "max"}[params.pool_type]
        return [builder.make(name, data, axis=axes, keepdims=True)]
    x = widened(builder, data)
    power = params.p_value
    powers = builder.make("abs", x) if power == 1 else builder.make("_power_scalar", x, scalar=float(power))
    total = builder.make("sum", powers, axis=axes, keepdims=True)
    out = total if power == 1 else builder.make("_power_scalar", total, scalar=1 / power)
    return [as_dtype(builder, out, dtype)]
