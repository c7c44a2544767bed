"""Gradients of pooling."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops import table
from mxc.compiler.ops.shapes.pooling import windows
from mxc.compiler.passes.building import filled, widened
from mxc.compiler.passes.gradients.context import Gradient

LARGEST, SPREAD = "_mxc_max_pool_grad", "_mxc_avg_pool_grad"


def pooling(g: Gradient) -> list[Entry | None]:
    """max: og goes to the first largest element of its window. avg, sum: og goes to the whole window, for avg divided
    as forward did. lp, whose forward is (sum of x^p)^(1/p): dx = x^(p-1) * (the sum over windows of og * out^(1-p)),
    where out is not 0.
    """
    data, kind = g.inputs[0], g.params.pool_type
    if kind == "max":
        return [g.make(LARGEST, data, g.og, **_common(g, LARGEST))]
    if kind != "lp":
        return [_spread(g, g.og, kind)]
    x, og, out = (widened(g.builder, e) for e in (data, g.og, g.outputs[0]))
    power = g.params.p_value
    if power == 1:
        return [_spread(g, og, "sum")]
    each = g.make("elemwise_mul", og, g.make("_power_scalar", out, scalar=1.0 - power))
    zero = filled(g.builder, g.shape(out), 0.0, g.dtype(out))
    slope = x if power == 2 else g.make("_power_scalar", x, scalar=power - 1.0)
    return [g.make("elemwise_mul", slope, _spread(g, g.make("where", out, each, zero), "sum"))]


def _common(g: Gradient, op: str) -> dict[str, object]:
    """The pooling's parameters that the gradient operator has too, with the windows spelled out: global pooling's only
    one is as large as space."""
    w = windows(g.params, g.shape(g.inputs[0]))
    return {k: v for k, v in g.params.items() if k in table.get(op).params} | {
        "kernel": w.kernel, "stride": w.stride, "pad": w.pad, "global_pool": False}


def _spread(g: Gradient, grad: Entry, kind: str) -> Entry:
    """`grad` (of the output's shape) added up where the windows lie; for kind avg divided as forward did."""
    shape = g.shape(g.inputs[0])
    if g.params.global_pool:
        count = prod(windows(g.params, shape).kernel)
        return g.broadcast_to(g.scaled(grad, 1.0 / count if kind == "avg" else 1.0), shape)
    return g.make(SPREAD, grad, **{**_common(g, SPREAD), "pool_type": kind, "shape": shape})
