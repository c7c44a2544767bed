"""Decompositions and gradients of pooling.

Global pooling is a reduction over space.
"""
from __future__ import annotations

from itertools import product
from math import inf, prod

from mxc.compiler.graph.building import as_dtype, as_shape, filled, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.pooling.shape import Windows, windows
from mxc.compiler.ops import table

_REDUCTIONS = {"avg": "mean", "sum": "sum", "max": "max"}
LARGEST, SPREAD, SPREAD_ROWS = "_mxc_max_pool_grad", "_mxc_avg_pool_grad", "_mxc_pool_spread"


def zero_padded(builder: GraphBuilder, data: Entry, pad: tuple[int, ...]) -> Entry:
    """`data` (N, C, ...) with zeros around it in space."""
    for axis, width in enumerate(pad, 2):
        if width:
            shape = builder.shape(data)
            zeros = filled(builder, (*shape[:axis], width, *shape[axis + 1:]), 0.0, builder.dtype(data))
            data = builder.make("Concat", zeros, data, zeros, num_args=3, dim=axis)
    return data


def reaching(builder: GraphBuilder, node: Node, data: Entry) -> Entry:
    """Padded `data`, with -inf added behind it where the last window begins behind it: the maximum there is -inf."""
    assert builder.old is not None
    extents = builder.old.shape(Entry(node))[2:]
    strides = node.params.stride or (1, 1)
    for axis, (extent, kernel, stride) in enumerate(zip(extents, node.params.kernel, strides, strict=True), 2):
        shape = builder.shape(data)
        start = (extent - 1) * stride
        if start >= shape[axis]:
            more = (*shape[:axis], start + kernel - shape[axis], *shape[axis + 1:])
            data = builder.make("Concat", data, filled(builder, more, -inf, builder.dtype(data)), num_args=2, dim=axis)
    return data


def pooling_v1(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Pooling in which padding counts as zeros, in a maximum too, and an average divides by the kernel's size even
    where the convention `full` cuts a window short."""
    params, data = node.params, inputs[0]
    if params.global_pool:
        reduction = {"avg": "mean", "sum": "sum", "max": "max"}[params.pool_type]
        return [builder.make(reduction, data, axis=(2, 3), keepdims=True, name=node.name)]
    common = {"kernel": params.kernel, "stride": params.stride, "pooling_convention": params.pooling_convention}
    if params.pool_type == "max":
        padded = reaching(builder, node, zero_padded(builder, data, params.pad))
        return [builder.make("Pooling", padded, pool_type="max", name=node.name, **common)]
    total = builder.make("Pooling", widened(builder, data), pool_type="sum", pad=params.pad, **common)
    if params.pool_type == "avg":
        total = builder.make("_mul_scalar", total, scalar=1.0 / prod(params.kernel))
    return [as_dtype(builder, total, builder.dtype(data))]


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
    powers = x = widened(builder, data)  # MXNet takes no absolute values either.
    for _ in range(params.p_value - 1):
        powers = builder.make("elemwise_mul", powers, x)
    out = builder.make("sum", powers, axis=axes, keepdims=True)
    return [as_dtype(builder, builder.make(root, out) if root else out, builder.dtype(data))]


def pooling_v1_grad(g: Gradient) -> list[Entry | None]:
    """max: og goes to the first largest element of its window in the data padded with zeros. avg, sum: og goes to the
    whole window, for avg divided by the kernel's size."""
    data, params = g.inputs[0], g.params
    shape, og = g.shape(data), widened(g.builder, g.og)
    kernel = shape[2:] if params.global_pool else params.kernel
    pad = (0, 0) if params.global_pool else params.pad or (0, 0)
    common = {"kernel": kernel, "stride": () if params.global_pool else params.stride,
              "pooling_convention": params.pooling_convention}
    if params.pool_type == "max":
        back = g.make("_mxc_max_pool_grad", zero_padded(g.builder, data, pad), g.og, pool_type="max", **common)
        for axis, width in enumerate(pad, 2):
            if width:
                back = g.make("slice_axis", back, axis=axis, begin=width, end=width + shape[axis])
        return [back]
    if params.global_pool:
        back = g.broadcast_to(og, shape)
    else:
        back = g.make(SPREAD_ROWS, og, pool_type="sum", pad=pad, shape=shape, **common)
    return [g.scaled(back, 1.0 / prod(kernel)) if params.pool_type == "avg" else back]


def pooling_grad(g: Gradient) -> list[Entry | None]:
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
    """The pooling's parameters that the gradient operator has too, with the windows spelled out; the only window of
    global pooling is as large as space."""
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
    w = windows(g.params, shape)
    space = [(n, o, k, s, p) for n, o, k, s, p in zip(
        shape[w.first:], g.shape(grad)[w.first:], w.kernel, w.stride, w.pad, strict=False)]
    if all(k == s and not p and n == o * s for n, o, k, s, p in space):
        return tiled(g, g.scaled(grad, 1.0 / prod(w.kernel) if kind == "avg" else 1.0), shape, w.first, w.kernel)
    if w.first == 2:
        return g.make(SPREAD_ROWS, grad, **{**_common(g, SPREAD_ROWS), "pool_type": kind, "shape": shape})
    reach = tuple(-(-k // s) for k, s in zip(w.kernel, w.stride, strict=True))
    return g.make(SPREAD, grad, **{**_common(g, SPREAD), "pool_type": kind, "shape": shape, "reach": reach})


def tiled(g: Gradient, entry: Entry, shape: Shape, first: int, kernel: Shape) -> Entry:
    """Each element kernel[i] times along axis first + i: what windows get that lie side by side, and fill `shape`."""
    narrow, wide = list(shape[:first]), list(shape[:first])
    for count, times in zip(g.shape(entry)[first:], kernel, strict=False):
        narrow += [count, 1]
        wide += [count, times]
    rest = shape[first + len(kernel):]
    return as_shape(g.builder, g.broadcast_to(as_shape(g.builder, entry, (*narrow, *rest)), (*wide, *rest)), shape)


def spread_grad(g: Gradient) -> list[Entry | None]:
    """Spreading gradients over windows is linear; its transpose is the pooling itself."""
    return [g.make("Pooling", g.og, **{k: v for k, v in g.params.items() if k not in ("shape", "reach")})]


def max_pool_grad_grad(g: Gradient) -> list[Entry | None]:
    """out_grad gets og from the place where its window has its first largest element; the choice itself passes nothing.

    Where no two windows overlap, that is the sum over each window of og times a mask. Else there is a slice of the
    padded array for each place within a window, and the number of the place with the largest element picks one.
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
    """For each place within a window, along a new first axis: the elements of `entry` at that place of all windows."""
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
