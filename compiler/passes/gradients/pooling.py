"""Gradients of pooling."""
from __future__ import annotations

from itertools import product
from math import inf, prod

from mxc.compiler.graph.graph import Entry, Shape
from mxc.compiler.ops import table
from mxc.compiler.ops.shapes.pooling import Windows, windows
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
        "kernel": w.kernel, "stride": w.stride, "pad": w.pad, "global_pool": False,
        **({"pooling_convention": "valid"} if g.params.global_pool else {})}


def _spread(g: Gradient, grad: Entry, kind: str) -> Entry:
    """`grad` (of the output's shape) added up where the windows lie; for kind avg divided as forward did."""
    shape = g.shape(g.inputs[0])
    if g.params.global_pool:
        count = prod(windows(g.params, shape).kernel)
        return g.broadcast_to(g.scaled(grad, 1.0 / count if kind == "avg" else 1.0), shape)
    return g.make(SPREAD, grad, **{**_common(g, SPREAD), "pool_type": kind, "shape": shape})


def spread(g: Gradient) -> list[Entry | None]:
    """Spreading gradients over windows is linear; its transpose is the pooling itself."""
    return [g.make("Pooling", g.og, **{k: v for k, v in g.params.items() if k != "shape"})]


def max_pool_grad(g: Gradient) -> list[Entry | None]:
    """To out_grad og where a window has its first largest element; nothing flows through the choice of it.

    Where no two windows overlap it is a sum over the windows of what is masked; else the elements of all windows at
    each place of the window are slices of the data with padding, of which the largest one's number picks.
    """
    data, out_grad = g.inputs
    params, shape, out = g.params, g.shape(data), g.shape(out_grad)
    w = windows(params, shape)
    if all(s >= k for s, k in zip(w.stride, w.kernel, strict=True)):
        ones = filled(g.builder, out, 1.0, g.dtype(out_grad))
        chosen = g.make("elemwise_mul", g.og, g.make(LARGEST, data, ones, **params))
        return [None, g.make("Pooling", chosen, **{**params, "pool_type": "sum"})]
    places = g.make("argmax", _at_places(g, data, w, out, -inf), axis=0)
    return [None, g.make("pick", _at_places(g, g.og, w, out, 0.0), places, axis=0)]


def _at_places(g: Gradient, entry: Entry, w: Windows, out: Shape, outside: float) -> Entry:
    """For each place of the window, on a new first axis, what `entry` has there for every element of the output."""
    shape, first = g.shape(entry), w.first
    extents = [max(pad + n, (o - 1) * stride + kernel) for pad, n, o, stride, kernel in
               zip(w.pad, shape[first:], out[first:], w.stride, w.kernel, strict=False)]
    count = len(extents)
    wide = (*shape[:first], *extents, *shape[first + count:])
    begin = (*[0] * first, *w.pad, *[0] * (len(shape) - first - count))
    end = tuple(b + n for b, n in zip(begin, shape, strict=True))
    padded = g.make("_slice_assign", filled(g.builder, wide, outside, g.dtype(entry)), entry, begin=begin, end=end)
    parts = []
    for place in product(*map(range, w.kernel)):
        starts = (*[0] * first, *place)
        stops = (*shape[:first], *(p + (o - 1) * s + 1 for p, o, s in zip(place, out[first:], w.stride, strict=False)))
        parts.append(g.make("slice", padded, begin=starts, end=stops, step=(*[1] * first, *w.stride)))
    return g.make("stack", *parts, axis=0, num_args=len(parts))
